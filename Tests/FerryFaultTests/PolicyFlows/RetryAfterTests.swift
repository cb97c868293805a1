import FaultTable
import FerryTesting
import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Retry-After of a server: row R78.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct RetryAfterTests {
    @Test("R78: the server's Retry-After is waited for", arguments: Play.allCases)
    func retryAfter(play: Play) async throws {
        try await withFlow {
            $0.retryPolicy = .quick
        } _: { server, agent in
            server.script(path: "/hello", uses: 1, unwanted(503, "Retry-After: 1\r\n"))
            let start = ContinuousClock.now
            let reply = try await play.outcome(Get("/hello"), agent).get()
            #expect(reply.attempts == 2 && reply.text == "Hello, ferry")
            #expect(ContinuousClock.now - start >= .seconds(1))
        }
    }

    /// In the form of a server.
    private func date(in seconds: Int) -> String {
        var (moment, parts) = (time(nil) + seconds, tm())
        gmtime_r(&moment, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let length = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(decoding: text.prefix(length).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// A server, an agent, and the waits in its log so far.
    private func withLog(
        _ policy: RetryPolicy, _ body: (LoopbackServer, NetworkAgent, () -> [Duration]) async throws -> Void
    ) async throws {
        let (server, log) = (try LoopbackServer(), KeptLog(.debug))
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.retryPolicy = policy
        configuration.logSink = log
        let agent = NetworkAgent(configuration: configuration)
        try await body(server, agent) { log.entries.filter { $0.message == "retrying" }.compactMap(\.duration) }
        await agent.shutdown()
    }

    @Test("R78: so is one with a date", arguments: Play.allCases)
    func retryAfterDate(play: Play) async throws {
        try await withLog(.quick) { server, agent, told in
            server.script(path: "/hello", uses: 1, unwanted(503, "Retry-After: \(date(in: 2))\r\n"))
            let start = ContinuousClock.now
            let reply = try await play.outcome(Get("/hello"), agent).get()
            #expect(reply.attempts == 2 && reply.text == "Hello, ferry")
            let waits = told()
            // Two seconds, less the part of the first that has passed; none on a machine that stood still.
            #expect(waits.count == 1 && waits.allSatisfy { (Duration.zero ... .seconds(2)).contains($0) }, "\(waits)")
            #expect(waits.allSatisfy { ContinuousClock.now - start >= $0 })
        }
    }

    @Test(
        "R78: a random wait is added, so that not all runs come at once", arguments: Form.allCases)
    func retryAfterWithJitter(form: Form) async throws {
        let policy = RetryPolicy.exponential(maxAttempts: 9, baseDelay: .milliseconds(40), factor: 1, jitter: .equal)
        try await withLog(policy) { server, agent, told in
            server.script(path: "/hello", uses: 7, unwanted(503, "Retry-After: 0\r\n"))
            server.script(path: "/hello", uses: 1, unwanted(503, "Retry-After: 1\r\n"))
            let start = ContinuousClock.now
            let reply = try await Play(form: form).outcome(Get("/hello"), agent).get()
            #expect(reply.attempts == 9)
            let waits = told()
            #expect(
                waits.dropLast().allSatisfy { (Duration.milliseconds(20) ... .milliseconds(40)).contains($0) },
                "\(waits)")
            #expect(Set(waits.dropLast()).count > 1, "drawn anew each time: \(waits)")
            #expect(
                waits.last.map { (Duration.milliseconds(1020) ... .milliseconds(1040)).contains($0) } == true,
                "\(waits)")
            #expect(ContinuousClock.now - start >= waits.reduce(.zero, +))
        }
    }

    @Test(
        "R78: one in the past, or a missing one, is not waited for", arguments: ["0", "Thu, 01 Jan 1970 00:00:00 GMT"],
        Form.allCases)
    func retryAfterNow(value: String, form: Form) async throws {
        // With the policy's own wait the test would not end.
        try await withFlow {
            $0.retryPolicy = .exponential(
                maxAttempts: 2, baseDelay: .seconds(600), maxDelay: .seconds(600), jitter: .none)
        } _: { server, agent in
            server.script(path: "/hello", uses: 1, unwanted(429, "Retry-After: \(value)\r\n"))
            let reply = try await Play(form: form).outcome(Get("/hello"), agent).get()
            #expect(reply.attempts == 2)
        }
    }

    @Test(
        "R78: one that is too long is not waited for: the response is delivered",
        arguments: ["2", "1000000000", "9223372036854775807", "Fri, 31 Dec 2100 23:59:59 GMT"], Form.allCases)
    func retryAfterTooLong(value: String, form: Form) async throws {
        try await withFlow {
            $0.retryPolicy = .quick { $0.maxRetryAfter = .seconds(1) }
        } _: { server, agent in
            server.script(path: "/x", unwanted(503, "Retry-After: \(value)\r\n"))
            let error = try #require(await Play(form: form).outcome(Get("/x"), agent).error)
            #expect(error.code == .invalidStatusCode(503) && error.attempts == 1)
            #expect(server.requestCount == 1)
        }
    }

    @Test(
        "R78: an invalid one is ignored: the policy's own wait applies",
        arguments: [
            "-5", "abc", "1e9", "1.5", "", "+3", "0x10", "99999999999999999999", "Fri, 99 Dec 2100 23:59:59 GMT",
        ], Form.allCases)
    func retryAfterGarbage(value: String, form: Form) async throws {
        try await withFlow {
            $0.retryPolicy = .quick { $0.maxRetryAfter = .zero }
        } _: { server, agent in
            server.script(path: "/hello", uses: 2, unwanted(503, "Retry-After: \(value)\r\n"))
            let reply = try await Play(form: form).outcome(Get("/hello"), agent).get()
            #expect(reply.attempts == 3)
        }
    }
}

extension Play {
    /// The outcome of a run started in this way; a download leaves the whole file or none.
    fileprivate func outcome<R: Request>(
        _ request: R, _ agent: NetworkAgent
    ) async throws -> FaultOutcome where R.Value == Response {
        let run = try FaultRun(request, self, agent)
        let outcome = await run.outcome
        run.place.expectNoPartOfAFile(outcome, isDownload: form == .download, #_sourceLocation)
        return outcome
    }
}
