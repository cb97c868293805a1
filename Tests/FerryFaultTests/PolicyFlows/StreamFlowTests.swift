import FaultTable
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Streamed responses: how they end, and what comes before them.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct StreamFlowTests {
    // MARK: Ends

    @Test("R71: a reader that is cancelled while it waits gets the error, and the connection is closed")
    func cancelledReader() async throws {
        try await withFlow { server, agent in
            server.script(path: "/x", [.send(head("200 OK", "Content-Length: 100\r\n") + "abc"), .keepOpen])
            let response = try await agent.stream(Get())
            let first = Gate()
            let reader = Task { () -> (Int, RequestError?) in
                var bytes = 0
                do throws(RequestError) {
                    for try await piece in response.body {
                        bytes += piece.count
                        first.open()
                    }
                    return (bytes, nil)
                } catch {
                    return (bytes, error)
                }
            }
            await first.pass()
            reader.cancel()
            let (bytes, error) = await reader.value
            #expect(bytes == 3 && error?.code == .cancelled && error?.phase == .body)
            try await server.waitForOpenConnections(atMost: 0)
        }
    }

    @Test("R71: cancelling before the head ends the run, too")
    func cancelledBeforeHead() async throws {
        try await withFlow { server, agent in
            server.script(path: "/x", [.mark("asked"), .keepOpen])
            let task = Task { await agent.streamFailure(Get()) }
            try await server.waitForMark("asked")
            task.cancel()
            #expect(await task.value?.code == .cancelled)
            try await server.waitForOpenConnections(atMost: 0)
            let late = Task {
                while !Task.isCancelled { await Task.yield() }
                return await agent.streamFailure(Get("/hello"))
            }
            late.cancel()
            #expect(await late.value?.code == .cancelled)
            #expect(server.requestCount == 1)
        }
    }

    @Test("R71: so does any end of a run while the body of a rejected response is read", arguments: Ending.allCases)
    func endedBehindRefusedHead(by end: Ending) async throws {
        try await withFlow { server, agent in
            server.script(path: "/start", unwanted(302, "Location: /x\r\n"))
            server.script(path: "/x", [.send(head("404 X", "Content-Length: 100\r\n") + "abc"), .keepOpen])
            let refused = Gate()
            var call = HTTPRequest(.get, "/start")
            call.statusValidation = .custom { _ in
                refused.open()
                return false
            }
            if end == .deadline { call.deadline = .seconds(1) }
            let task = Task { [call] in await agent.streamFailure(call) }
            if end != .deadline { await refused.pass() }
            switch end {
            case .task: task.cancel()
            case .all: agent.cancelAll()
            case .shutdown: await agent.shutdown(grace: .zero)
            case .deadline: break
            }
            let error = try #require(await task.value)
            #expect(error.code == end.code && error.phase == .body && error.mayHaveBeenProcessed, "\(error)")
            #expect(error.attempts == 2 && error.redirects.count == 1)
        }
    }

    enum Ending: CaseIterable {
        case task, all, shutdown, deadline

        var code: RequestError.Code {
            switch self {
            case .task, .all: .cancelled
            case .deadline: .timeout(.deadline)
            case .shutdown: .shutdown
            }
        }
    }

    @Test("Observers are told why a body was rejected") func observersOfRejectedBodies() async throws {
        let ends = RunEnds()
        var configuration = NetworkConfiguration.test
        configuration.observers = [ends]
        let stub = StubTransport(always: .response(body: "0123456789"))
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let streamed = try await agent.stream(Get())
        await #expect(throws: RequestError.self) { try await streamed.body.collect(upTo: 5) }
        await #expect(throws: RequestError.self) {
            for try await _ in agent.events(Get(), reconnection: .none) {}
        }
        #expect(ends.all.map { $0.prefix(16) } == ["failed: response", "failed: invalidC"], "\(ends.all)")
        await agent.shutdown()
    }

    @Test("An endless body does not delay the error of a rejected response")
    func endlessBodyOfARefusal() async throws {
        try await withFlow { server, agent in
            // Longer than the time limit of this suite.
            let drips = [LoopbackScript.Step.send("1\r\n.\r\n"), .pause(.milliseconds(100))]
            let steps = (0..<2000).flatMap { _ in drips }
            server.script(
                path: "/x", LoopbackScript([.send(head("404 X", "Transfer-Encoding: chunked\r\n"))] + steps))
            var request = HTTPRequest(.get, "/x")
            request.timeouts = Timeouts(idle: .seconds(30))
            let error = await agent.streamFailure(request)
            #expect(error?.code == .invalidStatusCode(404) && error?.response?.body.first == UInt8(ascii: "."))
            #expect(error?.response?.isTruncated == true)
        }
    }

    @Test("The bytes before an error are read, then the error")
    func faultInTheMiddle() async throws {
        let cut = head("200 OK", "Content-Length: 1000000\r\n")
        let chunks = head("200 OK", "Transfer-Encoding: chunked\r\n") + "186a0\r\n"
        let cases: [([LoopbackScript.Step], RequestError.Code)] = [
            ([.send(cut), .pattern(bytes: 100_000), .close], .incompleteBody(expected: 1_000_000, got: 100_000)),
            ([.send(chunks), .pattern(bytes: 100_000), .send("\r\nZZ\r\n"), .keepOpen], .malformedResponse(.chunk)),
            ([.send(chunks), .pattern(bytes: 100_000), .send("\r\n"), .close], .incompleteBody),
        ]
        for (steps, code) in cases {
            try await withFlow { server, agent in
                server.script(path: "/x", LoopbackScript(steps))
                var bytes = 0
                let found = try await agent.stream(Get()).body.failure(into: &bytes)
                let error = try #require(found)
                #expect(code ~= error && error.phase == .body && error.mayHaveBeenProcessed, "\(error)")
                #expect(bytes == 100_000 && error.attempts == 1)
                expectNoSecret(in: error)
            }
        }
    }

    @Test("R30: a truncated compressed stream is an error, however much of it arrived")
    func cutGzip() async throws {
        try await withFlow { server, agent in
            var bytes = 0
            let response = try await agent.stream(Get("/gzip/4000000?cut=1"))
            let end = await response.body.failure(into: &bytes)
            #expect(end?.code == .contentDecoding(.truncated))
        }
    }

    @Test("A compressed stream is read decoded, piece by piece")
    func gzip() async throws {
        try await withFlow { server, agent in
            var whole: [UInt8] = []
            for try await piece in try await agent.stream(Get("/gzip/300000")).body { whole += piece }
            #expect(whole == LoopbackServer.pattern(0..<300_000))
        }
    }

    @Test("Deadline and shutdown end a stream that is being read", arguments: [true, false])
    func endedFromOutside(byDeadline: Bool) async throws {
        try await withFlow { server, agent in
            server.script(path: "/x", [.send(head("200 OK", "Content-Length: 100\r\n") + "abc"), .keepOpen])
            var call = HTTPRequest(.get, "/x")
            if byDeadline { call.deadline = .milliseconds(800) }
            let response = try await agent.stream(call)
            let reader = Task {
                var bytes = 0
                return await response.body.failure(into: &bytes)
            }
            if !byDeadline { await agent.shutdown(grace: .zero) }
            #expect(await reader.value?.code == (byDeadline ? .timeout(.deadline) : .shutdown))
        }
    }

    @Test("An endless body is limited only if the request sets a limit")
    func ownBound() async throws {
        try await withFlow {
            $0.limits.maxBodyBytes = 1000
        } _: { server, agent in
            var bytes = 0
            let end = try await agent.stream(Get("/chunked/5000")).body.failure(into: &bytes)
            #expect(end == nil)
            #expect(bytes == 5000)
            var call = HTTPRequest(.get, "/chunked/50000")
            call.maxBodyBytes = 10_000
            bytes = 0
            let bounded = try await agent.stream(call).body.failure(into: &bytes)
            #expect(bounded?.code == .responseTooLarge)
            #expect(bytes <= 10_000)
        }
    }

    // MARK: Collecting

    @Test("Collecting takes bytes up to the limit, exactly", arguments: [0, 1, 70_000])
    func collect(size: Int) async throws {
        try await withFlow { server, agent in
            let all = try await agent.stream(Get("/bytes/\(size)")).body.collect(upTo: size)
            #expect(Array(all) == LoopbackServer.pattern(0..<size))
            if size == 0 { return }
            let body = try await agent.stream(Get("/bytes/\(size)")).body
            let error = await fault { () throws(RequestError) in try await body.collect(upTo: size - 1) }
            #expect(error?.code == .responseTooLarge)
        }
    }

    @Test("Collecting takes the rest after a partial read")
    func collectRest() async throws {
        try await withFlow { server, agent in
            let response = try await agent.stream(Get("/bytes/300000"))
            var iterator = response.body.makeAsyncIterator()
            var all = Array(try await iterator.next() ?? Data())
            all += Array(try await response.body.collect(upTo: 300_000))
            #expect(all == LoopbackServer.pattern(0..<300_000))
        }
    }

    // MARK: Before the stream

    @Test("Redirect, refresh, challenge and retry come before the stream")
    func policiesBefore() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1), jitter: .none)
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            server.script(
                path: "/start", uses: 1, [.send(head("503 X", "Content-Length: 3\r\n") + "abc"), .serve])
            server.handle("/start") { _ in
                LoopbackResponse(status: 302, headers: ["Location": "/data"], text: "elsewhere")
            }
            let response = try await agent.stream(Get("/start"))
            #expect(response.status == 200 && response.attempts == 4 && response.redirects.count == 1)
            #expect(try await response.body.collect(upTo: 100) == Data("data ".utf8))
            #expect(server.requests.map(\.path) == ["/start", "/start", "/data", "/token", "/data"])
            #expect(tokens.issued == 1)
            // Short bodies of skipped responses were read to their ends.
            #expect(server.connectionCount <= 2)
        }
    }

    @Test("A rejected response that no recovery helps is thrown with the start of its body")
    func refusal() async throws {
        try await withFlow { server, agent in
            server.handle("/x") { _ in LoopbackResponse(status: 401, text: Canary.body) }
            let error = try await #require(agent.streamFailure(Get()))
            #expect(error.code == .invalidStatusCode(401) && error.response?.body == Array(Canary.body.utf8))
            server.script(path: "/loop", [.send(head("302 X", "Location: /loop\r\nContent-Length: 0\r\n")), .serve])
            #expect(await agent.streamFailure(Get("/loop"))?.code == .tooManyRedirects)
        }
    }

    @Test("An error in the stream has the attempts before it")
    func attemptsBeforeFault() async throws {
        try await withFlow {
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1), jitter: .none)
        } _: { server, agent in
            server.script(path: "/x", uses: 2, [.expectHead, .close])
            server.script(path: "/x", [.send(head("200 OK", "Content-Length: 10\r\n") + "abc"), .close])
            var bytes = 0
            let found = try await agent.stream(Get()).body.failure(into: &bytes)
            let error = try #require(found)
            #expect(bytes == 3 && error.attempts == 3)
            #expect(error.code == .incompleteBody(expected: 10, got: 3), "a body half read is not asked for again")
            #expect(server.requestCount == 3)
        }
    }
}
