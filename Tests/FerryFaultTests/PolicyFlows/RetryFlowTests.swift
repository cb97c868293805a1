import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Retries over a network: row R78 and related cases.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct RetryFlowTests {
    @Test("A request that is not sent pays for no retry")
    func whatIsNotSentPaysNothing() async throws {
        let bench = CacheBench()
        let stub = StubTransport { $0.url.hasSuffix("/down") ? .response(status: 503) : .response() }
        let agent = bench.agent(stub) {
            $0.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero)
            $0.retryBudget = RetryBudget(ratio: 1, minimumPerSecond: 0, burst: 1)
            $0.interceptors = [
                Intercept { request, _ in request.url.hasSuffix("/own") ? InterceptedResponse() : nil }
            ]
        }
        func attempts() async -> Int? { await agent.result(Kept(path: "/down", cachePolicy: .none)).error?.attempts }
        _ = try await agent.sendBothWays(Kept())
        // There is only room for its own payment.
        #expect(await attempts() == 2)
        // The account is empty; the request that is sent pays for its own retry, and no more.
        for _ in 0..<3 {
            #expect(try await agent.sendBothWays(Kept()).allSatisfy(\.isFromCache))
            _ = try await agent.sendBothWays(Kept(path: "/own", cachePolicy: .none))
        }
        let host = try #require(HostKey(url: "http://h/"))
        #expect(!agent.core.retryAccounts.withdraw(host.authority))
        #expect(await attempts() == 2)
        await agent.shutdown()
    }

    @Test("R78: it is sent until it succeeds, and every attempt counts", arguments: Way.allCases)
    func attemptsAreCounted(way: Way) async throws {
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            server.script(path: "/hello", uses: 2, unwanted(503))
            let reply = try await agent.result(Get("/hello"), way).get()
            #expect(reply.text == "Hello, ferry" && reply.attempts == 3)
            #expect(reply.metrics.attempts == 3)
            #expect(server.requestCount == 3 && server.connectionCount == 1)
        }
    }

    @Test("R78: after the last attempt the last response is delivered", arguments: [408, 429, 502, 503, 504])
    func exhausted(status: Int) async throws {
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            server.script(path: "/x", unwanted(status))
            for result in await agent.resultsOfBothWays(Get("/x")) {
                let error = try #require(result.error)
                #expect(error.code == .invalidStatusCode(status) && error.attempts == 4)
                expectNoSecret(in: error)
            }
            #expect(server.requestCount == 8)
        }
    }

    @Test("R78: other responses are not retried", arguments: [400, 401, 403, 404, 407, 413, 500, 501])
    func notRetried(status: Int) async throws {
        try await withFlow {
            $0.retryPolicy = .quick { if status == 401 || status == 407 { $0.statuses.insert(status) } }
        } _: { server, agent in
            server.script(path: "/x", unwanted(status, "WWW-Authenticate: Basic realm=\"canary\"\r\n"))
            for result in await agent.resultsOfBothWays(Get("/x")) {
                #expect(result.error?.code == .invalidStatusCode(status) && result.error?.attempts == 1)
            }
            #expect(server.requestCount == 2)
        }
    }

    @Test("R78: if a connection breaks before its response, another one is tried")
    func closedConnection() async throws {
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            for end in [LoopbackScript.Step.close, .reset] {
                server.script(path: "/hello", uses: 2, [.expectHead, end])
                let reply = try await agent.send(Get("/hello"))
                #expect(reply.text == "Hello, ferry" && reply.attempts == 3)
            }
            server.script(path: "/x", [.send(head("200 OK", "Content-Length: 10\r\n") + "abc"), .close])
            let error = try #require(await agent.result(Get("/x")).error)
            #expect(error.code == .incompleteBody(expected: 10, got: 3) && error.attempts == 4)
        }
    }

    @Test("The waits grow by the policy, and the log shows them")
    func waits() async throws {
        let log = KeptLog(.debug)
        let server = try LoopbackServer()
        server.script(path: "/x", unwanted(503))
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.retryPolicy = .exponential(
            maxAttempts: 6, baseDelay: .milliseconds(2), factor: 3, maxDelay: .milliseconds(20), jitter: .none)
        configuration.logSink = log
        let agent = NetworkAgent(configuration: configuration)
        let start = ContinuousClock.now
        _ = await agent.result(Get("/x"))
        let waits = log.entries.filter { $0.message == "retrying" }
        #expect(
            waits.map { ($0.duration ?? .zero) / .microseconds(1) }.map { $0.rounded() } == [
                2000, 6000, 18000, 20000, 20000,
            ])
        #expect(waits.map(\.attempt) == [1, 2, 3, 4, 5])
        #expect(waits.allSatisfy { $0.error == .invalidStatusCode(503) })
        #expect(ContinuousClock.now - start >= .milliseconds(66), "no wait is cut short")
        await agent.shutdown()
    }

    // MARK: Limits

    @Test("A spent budget prevents retries of all runs to that host; another host has its own")
    func budget() async throws {
        let other = try LoopbackServer()
        other.script(path: "/hello", uses: 1, unwanted(503))
        try await withFlow {
            $0.retryPolicy = .quick { $0.maxAttempts = 10 }
            $0.retryBudget = RetryBudget(ratio: 0, minimumPerSecond: 0, burst: 3)
        } _: { server, agent in
            server.script(path: "/x", unwanted(503))
            #expect(await agent.result(Get("/x")).error?.attempts == 4)
            #expect(await agent.result(Get("/x"), .closure).error?.attempts == 1)
            #expect(server.requestCount == 5)
            let reply = try await agent.send(Get(other.baseURL + "/hello"))
            #expect(reply.attempts == 2)
        }
    }

    @Test("Requests that may be retried pay into the budget")
    func deposits() async throws {
        try await withFlow {
            $0.retryPolicy = .quick
            $0.retryBudget = RetryBudget(ratio: 0.5, minimumPerSecond: 0, burst: 1)
        } _: { server, agent in
            server.script(path: "/x", unwanted(503))
            #expect(await agent.result(Get("/x")).error?.attempts == 2)
            #expect(await agent.result(Get("/x")).error?.attempts == 1)
            #expect(await agent.result(Get("/x")).error?.attempts == 2)
        }
    }

    @Test("A wait beyond the deadline is not started")
    func deadlineBeforeWait() async throws {
        try await withFlow {
            $0.retryPolicy = .exponential(
                maxAttempts: 3, baseDelay: .seconds(600), maxDelay: .seconds(600), jitter: .none)
        } _: { server, agent in
            server.script(path: "/x", unwanted(503))
            var call = HTTPRequest(.get, "/x")
            call.deadline = .seconds(60)
            for result in await agent.resultsOfBothWays(call) {
                #expect(result.error?.code == .invalidStatusCode(503) && result.error?.attempts == 1)
            }
        }
    }

    @Test("The deadline covers all attempts together", arguments: Way.allCases)
    func deadlineInSecondAttempt(way: Way) async throws {
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            server.script(path: "/x", uses: 1, unwanted(503))
            server.script(path: "/x", [.expectHead, .keepOpen])
            var call = HTTPRequest(.get, "/x")
            call.deadline = .milliseconds(800)
            let error = try #require(await agent.result(call, way).error)
            #expect(error.code == .timeout(.deadline) && error.attempts == 2 && error.phase == .waitingHead)
            #expect(error.mayHaveBeenProcessed)
        }
    }
}
