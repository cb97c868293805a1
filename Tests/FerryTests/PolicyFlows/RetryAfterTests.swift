import FaultTable
import FerryTesting
import Testing

@testable import Ferry

/// Waits that a server asks for: row R78.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct RetryAfterTests {
    @Test("R78: a wait that the server asks for is waited out")
    func retryAfter() async throws {
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            server.script(path: "/hello", uses: 1, unwanted(503, "Retry-After: 1\r\n"))
            let start = ContinuousClock.now
            let reply = try await agent.send(Get("/hello"))
            #expect(reply.attempts == 2)
            #expect(ContinuousClock.now - start >= .seconds(1))
        }
    }

    @Test(
        "R78: one that is over, or none at all, is not waited for", arguments: ["0", "Thu, 01 Jan 1970 00:00:00 GMT"])
    func retryAfterNow(value: String) async throws {
        // With the policy's own wait the test would not end.
        try await withFlow {
            $0.retryPolicy = .exponential(attempts: 2, base: .seconds(600), cap: .seconds(600), jitter: .none)
        } _: { server, agent in
            server.script(path: "/hello", uses: 1, unwanted(429, "Retry-After: \(value)\r\n"))
            let reply = try await agent.send(Get("/hello"))
            #expect(reply.attempts == 2)
        }
    }

    @Test(
        "R78: one that is too long is not waited for: the answer is delivered",
        arguments: ["2", "1000000000", "9223372036854775807", "Fri, 31 Dec 2100 23:59:59 GMT"])
    func retryAfterTooLong(value: String) async throws {
        try await withFlow {
            $0.retryPolicy = .quick { $0.retryAfterCap = .seconds(1) }
        } _: { server, agent in
            server.script(path: "/x", unwanted(503, "Retry-After: \(value)\r\n"))
            let error = try #require(await agent.result(Get("/x")).error)
            #expect(error.code == .invalidStatusCode(503) && error.attempts == 1)
            #expect(server.requestCount == 1)
        }
    }

    @Test(
        "R78: one that makes no sense is none: the policy's own wait holds",
        arguments: [
            "-5", "abc", "1e9", "1.5", "", "+3", "0x10", "99999999999999999999", "Fri, 99 Dec 2100 23:59:59 GMT",
        ])
    func retryAfterGarbage(value: String) async throws {
        try await withFlow {
            $0.retryPolicy = .quick { $0.retryAfterCap = .zero }
        } _: { server, agent in
            server.script(path: "/hello", uses: 2, unwanted(503, "Retry-After: \(value)\r\n"))
            let reply = try await agent.send(Get("/hello"))
            #expect(reply.attempts == 3)
        }
    }
}
