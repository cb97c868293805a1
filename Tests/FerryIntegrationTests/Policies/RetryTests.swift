import Ferry
import Testing

@testable import FerryTestSupport

/// Servers that are busy for a while.
@Suite(.timeLimit(.minutes(2))) struct RetryTests {
    private static let policy = RetryPolicy.exponential(maxAttempts: 3, baseDelay: .milliseconds(1))

    private func configuration(_ policy: RetryPolicy = Self.policy) -> NetworkConfiguration {
        var configuration = NetworkConfiguration()
        configuration.retryPolicy = policy
        return configuration
    }

    @Test("503 is retried, and the third response is delivered")
    func succeeds() async throws {
        let upstream = try Upstream.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            let reply = try await agent.send(HTTPRequest.to(upstream.url + "/flaky?id=\(mark)&fail=2"))
            #expect(reply.status == 200 && reply.attempts == 3)
            let requests = try upstream.requests(to: mark)
            #expect(requests.count == 3)
        }
    }

    @Test("after the last attempt the last response is delivered")
    func givesUp() async throws {
        let upstream = try Upstream.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(upstream.url + "/flaky?id=\(mark)&fail=9"))
            }
            #expect(error?.code == .invalidStatusCode(503) && error?.attempts == 3)
            let requests = try upstream.requests(to: mark)
            #expect(requests.count == 3)
        }
    }

    @Test("nothing is retried by default")
    func off() async throws {
        let upstream = try Upstream.shared
        let mark = token()
        try await withAgent { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(upstream.url + "/flaky?id=\(mark)&fail=1"))
            }
            #expect(error?.code == .invalidStatusCode(503))
            let requests = try upstream.requests(to: mark)
            #expect(requests.count == 1)
        }
    }

    @Test("nginx's Retry-After is waited for")
    func retryAfter() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent(configuration(.exponential(maxAttempts: 2, baseDelay: .milliseconds(1)))) { agent in
            let start = ContinuousClock.now
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/busy?\(mark)")))
            }
            #expect(error?.code == .invalidStatusCode(503))
            #expect(ContinuousClock.now - start >= .seconds(1))
            let lines = try await nginx.log(mark, count: 2)
            #expect(lines.count == 2)
        }
    }

    @Test("a Retry-After above the cap is not waited for")
    func retryAfterTooLong() async throws {
        let upstream = try Upstream.shared
        let mark = token()
        var policy = Self.policy
        policy.maxRetryAfter = .seconds(5)
        try await withAgent(configuration(policy)) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(upstream.url + "/flaky?id=\(mark)&fail=9&after=6"))
            }
            #expect(error?.code == .invalidStatusCode(503))
            let requests = try upstream.requests(to: mark)
            #expect(requests.count == 1)
        }
    }

    @Test("an invalid Retry-After is ignored", arguments: ["-5", "abc", ""])
    func retryAfterGarbage(value: String) async throws {
        let upstream = try Upstream.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            let reply = try await agent.send(HTTPRequest.to(upstream.url + "/flaky?id=\(mark)&fail=2&after=\(value)"))
            #expect(reply.attempts == 3)
        }
    }

    @Test("a POST is sent once, unless it is declared safe")
    func post() async throws {
        let upstream = try Upstream.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            let url = upstream.url + "/flaky?id=\(mark)&fail=1"
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(url, .post, body: .string("x")))
            }
            #expect(error?.code == .invalidStatusCode(503))
            let requests = try upstream.requests(to: mark)
            #expect(requests.count == 1)
            var request = HTTPRequest.echo(upstream.url + "/flaky?id=\(mark)-key&fail=2", .post, body: .string("text"))
            request.headers["Idempotency-Key"] = mark
            let reply = try await agent.send(request)
            #expect(reply.attempts == 3 && reply.value.length == 4)
        }
    }

    @Test("401 is not retried")
    func unauthorized() async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent(configuration()) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/private/secret.txt?\(mark)")))
            }
            #expect(error?.code == .invalidStatusCode(401) && error?.attempts == 1)
        }
    }

    @Test("a server that comes back is found by a retry")
    func comesBack() async throws {
        let port = try freePorts(1)[0]
        try await withAgent(configuration(.exponential(maxAttempts: 50, baseDelay: .milliseconds(500), factor: 1))) {
            agent in
            let run = Task { try await agent.send(HTTPRequest.to("http://127.0.0.1:\(port)/")) }
            _ = try await eventually("a first attempt") { agent.statistics.finished > 0 ? true : nil }
            let (server, _) = try ServerProcess.start(ports: 0) { _, _ in
                ["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", String(port)]
            }
            let reply = try await run.value
            #expect(reply.status == 200 && agent.statistics.finished > 1)
            server.stop()
        }
    }
}
