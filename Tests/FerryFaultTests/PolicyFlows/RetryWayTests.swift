import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Retries together with the other policies, and runs that end while they wait for a retry.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct RetryWayTests {
    @Test("A retry after a redirect goes to the redirect's target, without the secrets")
    func retryBehindRedirect() async throws {
        let second = try LoopbackServer()
        second.script(path: "/hello", uses: 2, unwanted(503))
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { first, agent in
            for way in Way.allCases {
                let target = way == .awaited ? first.baseURL + "/close" : second.baseURL + "/hello"
                first.script(
                    path: "/start", uses: 1, unwanted(302, "Location: \(target)?\(Canary.query)\r\n"))
                if way == .awaited { first.script(path: "/close", uses: 2, unwanted(503)) }
                var call = HTTPRequest(.get, "/start")
                call.headers = ["Authorization": Canary.authorization]
                let reply = try await agent.result(call, way).get()
                #expect(reply.attempts == 4 && reply.redirects.count == 1 && reply.text == "Hello, ferry")
            }
            #expect(first.requests.map(\.path) == ["/start", "/close", "/close", "/close", "/start"])
            #expect(second.requests.map(\.path) == ["/hello", "/hello", "/hello"])
            #expect(second.requests.allSatisfy { $0.headers["Authorization"] == nil })
        }
    }

    @Test("Adapters run again for every attempt")
    func adaptersRunAgain() async throws {
        struct Stamp: RequestAdapter {
            let tally: Tally
            func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
                tally.add()
                request.headers["X-Attempt"] = "\(tally.value)"
            }
        }
        try await withFlow {
            $0.retryPolicy = .quick
            $0.adapters = [Stamp(tally: Tally())]
        } _: { server, agent in
            server.script(path: "/hello", uses: 2, unwanted(503))
            let reply = try await agent.send(Get("/hello"))
            #expect(reply.attempts == 3)
            #expect(server.requests.map { $0.headers["X-Attempt"] } == ["1", "2", "3"])
        }
    }

    enum End: CaseIterable, Sendable {
        case cancel, cancelAll, shutdown
    }

    @Test("R71: a run that waits for its retry ends at once", arguments: End.allCases, Play.allCases)
    func endedInBackOff(end: End, play: Play) async throws {
        let waits = Gate()
        try await withFlow {
            $0.retryPolicy = .exponential(
                maxAttempts: 3, baseDelay: .seconds(600), maxDelay: .seconds(600), jitter: .none)
            $0.retryPolicy.decide = { _ in
                waits.open()
                return .byPolicy
            }
        } _: { server, agent in
            server.script(path: "/x", unwanted(503))
            let run = try FaultRun(Get("/x"), play, agent)
            await waits.pass()
            switch end {
            case .cancel: run.cancel()
            case .cancelAll:
                // The rule is called a moment before the wait starts; in either case the run ends.
                agent.cancelAll()
            case .shutdown: await agent.shutdown(grace: .zero)
            }
            let outcome = await run.outcome
            let error = try #require(outcome.error)
            run.place.expectNoPartOfAFile(outcome, isDownload: play.form == .download, #_sourceLocation)
            #expect(error.code == (end == .shutdown ? .shutdown : .cancelled))
            #expect(error.attempts == 1 && error.mayHaveBeenProcessed)
            #expect(server.requestCount == 1 && run.callback.count == run.expectedCallbacks)
        }
    }
}
