import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Tokens over a network: one refresh for many runs, and the runs that wait for it.
@Suite(.timeLimit(.minutes(2))) struct AuthenticatorFlowTests {
    /// Starts runs at once, half by await, half by closure, and collects their outcomes.
    private func results(_ agent: NetworkAgent, _ count: Int, _ path: String = "/data") async
        -> [Result<Reply<Response>, RequestError>]
    {
        await withTaskGroup(of: Result<Reply<Response>, RequestError>.self) { group in
            for index in 0..<count {
                group.addTask { await agent.result(Get(path), index.isMultiple(of: 2) ? .awaited : .closure) }
            }
            var results: [Result<Reply<Response>, RequestError>] = []
            for await result in group { results.append(result) }
            return results
        }
    }

    @Test("Fifty runs with an expired token cause one refresh, and each is sent again once")
    func oneRefreshForAll() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let all = Gate()
            // All are in transfer with the old token before the first of them is refused.
            let tokens = TokenServer(on: server, refuses: { await all.pass(openingAt: 50) })
            for result in await results(agent, 50) {
                let reply = try result.get()
                #expect(reply.attempts == 2)
            }
            #expect(tokens.issued == 1 && tokens.count("/token") == 1 && tokens.count("/data") == 100)
            // The token is kept.
            #expect(try await agent.send(Get("/data")).attempts == 1)
        }
    }

    @Test("One refresh is enough, however the runs arrive")
    func oneRefreshInAnyOrder() async throws {
        for _ in 0..<5 {
            try await withFlow {
                $0.authenticator = Session(token: TokenServer.expired)
            } _: { server, agent in
                let tokens = TokenServer(on: server)
                for result in await results(agent, 50) {
                    let reply = try result.get()
                    #expect(reply.status == 200)
                }
                #expect(tokens.issued == 1 && tokens.count("/data") <= 100)
            }
        }
    }

    @Test("Without a token one is fetched first, once, and no run is sent without it")
    func fetchedFirst() async throws {
        try await withFlow {
            $0.authenticator = Session()
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            for result in await results(agent, 20) {
                let reply = try result.get()
                #expect(reply.attempts == 1)
            }
            #expect(tokens.issued == 1 && server.requests.first?.path == "/token" && tokens.count("/data") == 20)
            #expect(server.requests.first?.headers["Authorization"] == nil)
        }
    }

    @Test("A 401 that was in transfer during the refresh is out of date")
    func lateRefusal() async throws {
        let late = Gate()
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let tokens = TokenServer(on: server, firstRefusalWaitsFor: late)
            let first = Task { await agent.result(Get("/data")) }
            // The server counts it before its handler runs: the next request could overtake it there.
            try await server.waitForRequests(1)
            #expect(await eventually { late.arrived == 1 })
            #expect(try await agent.send(Get("/data")).attempts == 2)
            late.open()
            #expect(try await first.value.get().attempts == 2)
            #expect(tokens.issued == 1)
        }
    }

    // MARK: Refreshes that fail

    @Test("If the refresh fails, each run ends with its own 401, and none is sent again", arguments: [500, 401])
    func failedRefresh(status: Int) async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let all = Gate()
            // All are in transfer with the old token; some return after the refresh has failed.
            let tokens = TokenServer(on: server, refuses: { await all.pass(openingAt: 50) })
            tokens.refuseTokens(with: status)
            for result in await results(agent, 50) {
                let error = try #require(result.error)
                #expect(error.code == .invalidStatusCode(401) && error.attempts == 1)
                #expect(error.response?.body == Array(Canary.body.utf8))
            }
            #expect(tokens.count("/data") == 50 && tokens.count("/token") == 1)
            // The next refusal tries again.
            tokens.refuseTokens(with: nil)
            #expect(try await agent.send(Get("/data")).status == 200)
        }
    }

    @Test("A 401 that comes after a failed refresh starts no other, and is the run's response")
    func lateRefusalAfterAFailure() async throws {
        let late = Gate()
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let tokens = TokenServer(on: server, firstRefusalWaitsFor: late)
            tokens.refuseTokens(with: 500)
            let first = Task { await agent.result(Get("/data")) }
            // The server counts it before its handler runs: the next request could overtake it there.
            try await server.waitForRequests(1)
            #expect(await eventually { late.arrived == 1 })
            #expect(await agent.result(Get("/data")).error?.code == .invalidStatusCode(401))
            #expect(tokens.count("/token") == 1)
            late.open()
            let error = try #require(await first.value.error)
            #expect(error.code == .invalidStatusCode(401) && error.attempts == 1)
            #expect(tokens.count("/token") == 1 && tokens.count("/data") == 2)
        }
    }

    @Test("A run that is retried for another reason after a failed refresh requests no other token")
    func sentAgainAfterAFailure() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired, refusal: 503)
            $0.retryPolicy = .quick
        } _: { server, agent in
            let tokens = TokenServer(on: server, status: 503)
            tokens.refuseTokens(with: 403)
            let error = try #require(await agent.result(Get("/data")).error)
            #expect(error.code == .invalidStatusCode(503) && error.attempts == 4)
            #expect(tokens.count("/token") == 1 && tokens.count("/data") == 4)
        }
    }

    @Test("Runs that were never sent end with the error of the refresh", arguments: Way.allCases)
    func failedFirstToken(way: Way) async throws {
        try await withFlow {
            $0.authenticator = Session()
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            tokens.refuseTokens(with: 503)
            let error = try #require(await agent.result(Get("/data"), way).error)
            #expect(error.code == .invalidStatusCode(503) && error.url.hasSuffix("/data"))
            // It was not sent, although the request for the token was.
            #expect(error.attempts == 0 && error.bytesSent == 0 && !error.mayHaveBeenProcessed)
            #expect(error.phase == .preparing && error.status == nil)
            let cause = try #require(error.cause as? RequestError)
            #expect(cause.url.hasSuffix("/token") && cause.status == 503 && cause.attempts == 1)
            #expect(tokens.count("/data") == 0)
        }
        try await withFlow {
            $0.authenticator = Session(before: { _ in throw Oops() })
        } _: { server, agent in
            let error = try #require(await agent.result(Get("/data"), way).error)
            #expect(error.code == .applicationError && error.cause is Oops && error.attempts == 0)
            #expect(server.connectionCount == 0)
        }
    }

    @Test("If the server refuses the new token too, the 401 is delivered, without another refresh")
    func refusedTwice() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            server.handle("/never") { _ in LoopbackResponse(status: 401) }
            let tokens = TokenServer(on: server)
            let error = try #require(await agent.result(Get("/never")).error)
            #expect(error.code == .invalidStatusCode(401) && error.attempts == 2)
            #expect(tokens.issued == 1 && tokens.count("/never") == 2)
        }
    }

    @Test("A refresh whose own request gets a 401 does not wait for itself", arguments: [true, false])
    func refusedRefresh(hasToken: Bool) async throws {
        try await withFlow { configuration in
            configuration.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .milliseconds(1))
            configuration.authenticator = Session(token: hasToken ? TokenServer.expired : nil, path: "/data")
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            #expect(await agent.result(Get("/data")).error?.code == .invalidStatusCode(401))
            #expect(tokens.count("/data") == (hasToken ? 2 : 1))
        }
    }

    // MARK: Ends

    @Test("A run that waits for the refresh is cancelled at once; the refresh continues for the others")
    func cancelledWhileWaiting() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let gate = Gate()
            let tokens = TokenServer(on: server, givesOut: { await gate.pass() })
            let awaited = Task { await agent.result(Get("/data")) }
            let outcome = Outcome<Response>()
            let run = agent.start(Get("/data"), completion: outcome.take)
            let stays = Task { await agent.result(Get("/data")) }
            #expect(await eventually { gate.arrived == 1 && agent.statistics.running == 1 })
            run.cancel()
            awaited.cancel()
            #expect(await outcome.code == .cancelled)
            let error = try #require(await awaited.value.error)
            #expect(error.code == .cancelled)
            gate.open()
            #expect(try await stays.value.get().status == 200)
            #expect(tokens.issued == 1 && outcome.count == 1)
        }
    }

    @Test("Nothing is left of a run that was cancelled while it waited")
    func nothingIsLeftOfACancelledWait() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let gate = Gate()
            _ = TokenServer(on: server, givesOut: { await gate.pass() })
            // Any task started for the run inherits it, and holds it as long as it lives.
            let left = Logbook()
            let run = Witness.$current.withValue(Witness(left)) {
                Task { await agent.result(Get("/data")) }
            }
            #expect(await eventually { gate.arrived == 1 })
            run.cancel()
            #expect(await run.value.error?.code == .cancelled)
            gate.open()
            await left.waitForEntries(1)
        }
    }

    /// Notes its end.
    private final class Witness: Sendable {
        @TaskLocal static var current: Witness?
        private let book: Logbook

        init(_ book: Logbook) { self.book = book }
        deinit { book.note("gone") }
    }

    @Test("A cancelled run reports that it was sent before it waited")
    func cancelledAfterRefusal() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let gate = Gate()
            _ = TokenServer(on: server, givesOut: { await gate.pass() })
            let task = Task { await agent.result(Get("/data")) }
            #expect(await eventually { gate.arrived == 1 })
            task.cancel()
            let error = try #require(await task.value.error)
            #expect(error.code == .cancelled && error.attempts == 1)
            gate.open()
        }
    }

    @Test("The deadline applies to waiting runs, too")
    func deadlineWhileWaiting() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let gate = Gate()
            _ = TokenServer(on: server, givesOut: { await gate.pass() })
            var call = HTTPRequest(.get, "/data")
            call.deadline = .milliseconds(200)
            for result in await agent.resultsOfBothWays(call) {
                #expect(result.error?.code == .timeout(.deadline))
            }
            gate.open()
        }
    }

    @Test("A refresh may start within the grace of a shutdown, for runs in progress", arguments: Way.allCases)
    func refreshInTheGrace(way: Way) async throws {
        for hasToken in [true, false] {
            let gate = Gate()
            try await withFlow {
                $0.authenticator = Session(
                    token: hasToken ? TokenServer.expired : nil,
                    before: { _ in if !hasToken { await gate.pass() } })
            } _: { server, agent in
                let tokens = TokenServer(on: server, refuses: { await gate.pass() })
                let waiting = Task { await agent.result(Get("/data"), way) }
                #expect(await eventually { gate.arrived == 1 })
                let over = Task { await agent.shutdown(grace: .seconds(100)) }
                #expect(await eventually { agent.core.isClosed })
                #expect(await agent.result(Get("/data"), way).error?.code == .shutdown)
                gate.open()
                let reply = try await waiting.value.get()
                await over.value
                #expect(reply.text == "data ")
                #expect(tokens.issued == 1)
            }
        }
    }

    @Test("A refresh that nobody waits for sends nothing after the agent has ended")
    func refreshAfterTheEnd() async throws {
        let (gate, asked) = (Gate(), Logbook())
        try await withFlow {
            $0.authenticator = Late(gate: gate, asked: asked)
        } _: { server, agent in
            let task = Task { await agent.result(Get("/data")) }
            #expect(await eventually { gate.arrived == 1 })
            task.cancel()
            #expect(await task.value.error?.code == .cancelled)
            await agent.shutdown(grace: .zero)
            gate.open()
            await asked.waitForEntries(2)
            // The end of the agent has cancelled the task of the refresh.
            #expect(asked.events == ["cancelled", "shutdown"] && server.connectionCount == 0, "\(asked.events)")
        }
    }

    /// Sends when the gate is open, in both ways.
    private struct Late: Authenticator {
        let gate: Gate
        let asked: Logbook

        func apply(_ token: String, to request: inout OutgoingRequest) {}

        func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
            await gate.pass()
            for result in await agent.resultsOfBothWays(Get("/token")) {
                asked.note(result.error?.code.description ?? "sent")
            }
            return ""
        }
    }

    @Test("A shutdown during the refresh ends all waiting runs, even if the refresh ignores it")
    func shutdownWhileRefreshing() async throws {
        let gate = Gate()
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired, before: { _ in await gate.pass() })
        } _: { server, agent in
            _ = TokenServer(on: server)
            async let ended = results(agent, 10)
            #expect(await eventually { gate.arrived == 1 })
            await agent.shutdown(grace: .zero)
            for result in await ended {
                // Some wait for the refresh, some are in the transport, and some were not even sent. One whose refusal
                // arrives at this moment has a response.
                let code = result.error?.code
                #expect(code == .shutdown || code == .invalidStatusCode(401), "\(String(describing: code))")
            }
            #expect(await agent.result(Get("/data")).error?.code == .shutdown)
            gate.open()
        }
    }

    @Test func aRedirectToAPageForSigningInMayBeARefusal() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired, refusal: 302)
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            server.handle("/page") { request in
                if tokens.isValid(request) { return LoopbackResponse(text: "page") }
                return LoopbackResponse(status: 302, headers: ["Location": "/sign-in"])
            }
            server.handle("/sign-in") { _ in LoopbackResponse(text: "who are you?") }
            let page = try await agent.send(Get("/page")).text
            #expect(page == "page")
            // If the refresh does not help, the redirect is followed.
            tokens.expire()
            tokens.refuseTokens(with: 403)
            let other = try await agent.send(Get("/page")).text
            #expect(other == "who are you?")
        }
    }
}
