import FerrySynchronization
import FerryTesting
import FerryTransport
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Exchanges that meet redirects, tokens, proxies and retries.
@Suite(.timeLimit(.minutes(1))) struct DuplexPolicyTests {
    /// A 303 leads to a GET, which has no body.
    @Test(arguments: [false, true]) func aRedirectToGETStopsTheWriter(isRead: Bool) async throws {
        try await withExchanges { agent, server in
            let moved = "HTTP/1.1 303 See Other\r\nLocation: /hello\r\nContent-Length: 0\r\n\r\n"
            server.script(path: "/x", isRead ? [.expectBytes(3), .send(moved)] : [.send(moved)])
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                    async let text = response.body.collect(upTo: 100)
                    let error = await exchangeError { try await DuplexEndTests.writeOn(body) }
                    #expect(try await text == Data("Hello, ferry".utf8))
                    if let error { throw error }
                }
            }
            #expect(error?.code == .uploadStopped && error?.response?.status == 200, "\(String(describing: error))")
            #expect(server.requests.map(\.method) == ["POST", "GET"])
        }
    }

    /// Nothing of the body was ever read.
    @Test func aRedirectToGETOfAnInterceptorStopsTheWriter() async throws {
        let interceptor = Intercept { request, _ in
            request.method == .post ? InterceptedResponse(status: 303, headers: ["Location": "/hello"]) : nil
        }
        try await withExchanges({ $0.interceptors = [interceptor] }) { agent, server in
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                    _ = try await response.head
                    try await DuplexEndTests.writeOn(body)
                }
            }
            #expect(error?.code == .uploadStopped && error?.response?.status == 200, "\(String(describing: error))")
            #expect(server.requests.map(\.method) == ["GET"])
        }
    }

    @Test func aRedirectToGETDeliversItsResponseWithoutAWriter() async throws {
        try await withExchanges { agent, server in
            let moved = "HTTP/1.1 303 See Other\r\nLocation: /hello\r\nContent-Length: 0\r\n\r\n"
            server.script(path: "/x", [.send(moved)])
            let text = try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                let text = try await response.body.collect(upTo: 100)
                try body.finish()
                return text
            }
            #expect(text == Data("Hello, ferry".utf8))
        }
    }

    @Test func aTokenIsRefreshedAsLongAsNothingWasSent() async throws {
        try await withExchanges({ $0.authenticator = Session(token: TokenServer.expired) }) { agent, server in
            let tokens = TokenServer(on: server)
            server.handle("/take") { request in
                tokens.isValid(request) ? LoopbackResponse(text: request.text) : LoopbackResponse(status: 401)
            }
            server.script(
                path: "/take", uses: 1,
                [.expectHead, .send("HTTP/1.1 401 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), .close])
            let text = try await agent.exchange(HTTPRequest(.post, "/take")) { response, body in
                #expect(await eventually { server.requests.contains { $0.path == "/token" } })
                try await body.write("here")
                try body.finish()
                return try await response.body.collect(upTo: 100)
            }
            #expect(text == Data("here".utf8))
        }
    }

    /// The refusal comes after the first bytes.
    @Test func aTokenThatIsRefusedLaterEndsTheWriter() async throws {
        try await withExchanges({ $0.authenticator = Session(token: TokenServer.expired) }) { agent, server in
            _ = TokenServer(on: server)
            server.script(
                path: "/take",
                [.expectBytes(3), .send("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"), .expectBody])
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/take")) { _, body in
                    try await DuplexEndTests.writeOn(body)
                }
            }
            #expect(error?.code == .invalidStatusCode(401), "\(String(describing: error))")
        }
    }

    private final class Provider: CredentialProvider {
        let asked = Atomic(0)

        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            asked.add(1, ordering: .relaxed)
            return Credential(user: "kim", password: "secret")
        }
    }

    /// libcurl answers challenges, and carries no exchanges.
    @Test(arguments: [false, true], [false, true])
    func aChallengeIsOfTheCaller(isOfProxy: Bool, hasTrailers: Bool) async throws {
        let (provider, proxy) = (Provider(), try LoopbackServer())
        proxy.script([
            .expectHead,
            .send("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\n\r\n"), .close,
        ])
        try await withExchanges({
            $0.credentialProvider = provider
            if isOfProxy { $0.proxy = .http("127.0.0.1", port: Int(proxy.port)) }
            if hasTrailers { $0.adapters = [BodyAdapter { $0?.withTrailers(["X-B"]) { [:] } }] }
        }) { agent, server in
            server.script(
                path: "/x",
                [
                    .expectHead,
                    .send("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"r\"\r\nContent-Length: 0\r\n\r\n"),
                ])
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, isOfProxy ? "https://localhost:1/x" : "/x")) {
                    response, _ in _ = try await response.head
                }
            }
            #expect(error?.code == (isOfProxy ? .proxy(.authRequired) : .invalidStatusCode(401)))
            #expect(provider.asked.load(ordering: .relaxed) == 0)
        }
    }

    /// An attempt that has ended reads nothing more.
    @Test func anAttemptThatHasEndedLeavesTheBodyToTheNext() async throws {
        let body = WriterBody(trailerNames: [])
        let first = try body.makeSource()
        try await body.pipe.write([1, 2, 3])
        first.close()
        var space = [UInt8](repeating: 0, count: 10)
        let late = space.withUnsafeMutableBytes { first.fill($0) }
        guard case .failed = late else { return #expect(Bool(false), "it has read \(late)") }
        #expect(body.isReplayable)
        let second = try body.makeSource()
        let filled = space.withUnsafeMutableBytes { second.fill($0) }
        guard case .bytes(3) = filled else { return #expect(Bool(false), "it has read \(filled)") }
    }

    @Test func whoKeepsTheWriterDoesNotKeepTheAgent() async throws {
        let server = try LoopbackServer()
        server.handle("/x") { LoopbackResponse(text: $0.text) }
        var kept: (ExchangeResponse, RequestBodyWriter)?
        weak var core: AgentCore?
        do {
            let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
            core = agent.core
            kept = try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                try body.finish()
                _ = try await response.body.collect(upTo: 10)
                return (response, body)
            }
            await agent.shutdown()
        }
        #expect(await eventually { core == nil })
        let (response, body) = try #require(kept)
        #expect(try await response.head.status == 200)
        await #expect(throws: RequestError.self) { try await body.write("late") }
    }

    /// Only libcurl sends requests for http through a proxy.
    @Test func aProxyWithoutATunnelCarriesNoExchangeAndTheWriterEnds() async throws {
        let proxy = try LoopbackServer()
        try await withExchanges({ $0.proxy = .http("127.0.0.1", port: Int(proxy.port)) }) { agent, server in
            for isRead in [true, false] {
                let error = await exchangeError {
                    try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                        if isRead { _ = try await response.head }
                        try await DuplexEndTests.writeOn(body)
                    }
                }
                #expect(error?.code == .invalidRequest, "\(String(describing: error))")
            }
            #expect(proxy.requestCount == 0 && server.requestCount == 0)
        }
    }

    enum Ending: CaseIterable, Sendable {
        case cancel, cancelAll, shutdown, deadline
    }

    /// The writer has filled the buffer, and nothing is connected yet.
    @Test(arguments: Ending.allCases) func aWriterThatWaitsForAnAdapterEndsWithTheRun(ending: Ending) async throws {
        let gate = Gate()
        let adapter = Adapt { _, _ in await gate.pass() }
        try await withExchanges({ $0.adapters = [adapter] }) { agent, server in
            let full = Gate()
            let task = Task {
                var request = HTTPRequest(.post, "/x")
                if ending == .deadline { request.deadline = .milliseconds(300) }
                return await exchangeError {
                    try await agent.exchange(request) { _, body in
                        try await DuplexEndTests.writeOn(body, most: BytePipe.capacity)
                        full.open()
                        try await DuplexEndTests.writeOn(body)
                    }
                }
            }
            await full.pass()
            #expect(await eventually { gate.arrived == 1 })
            switch ending {
            case .cancel: task.cancel()
            case .cancelAll: agent.cancelAll()
            case .shutdown: await agent.shutdown(grace: .zero)
            case .deadline: break
            }
            let error = await task.value
            let codes: [Ending: RequestError.Code] = [.shutdown: .shutdown, .deadline: .timeout(.deadline)]
            #expect(error?.code == codes[ending] ?? .cancelled, "\(String(describing: error))")
            #expect(server.connectionCount == 0)
            gate.open()
        }
    }

    /// The reader takes nothing, so the server does not read, so the writer waits, too.
    @Test(arguments: [Ending.shutdown, .deadline]) func aReaderThatHoldsBackIsNotWaitedFor(ending: Ending) async throws
    {
        try await withExchanges { agent, server in
            server.script(
                path: "/much",
                [
                    .send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"), .mark("head"),
                    .pattern(bytes: 1_000_000_000),
                ])
            var request = HTTPRequest(.post, "/much")
            if ending == .deadline { request.deadline = .milliseconds(500) }
            let task = Task { [request] in
                await exchangeError {
                    try await agent.exchange(request) { response, body in
                        _ = try await response.head
                        try await DuplexEndTests.writeOn(body)
                    }
                }
            }
            try await server.waitForMark("head")
            if ending == .shutdown { await agent.shutdown(grace: .zero) }
            let error = await task.value
            #expect(
                error?.code == (ending == .shutdown ? .shutdown : .timeout(.deadline)), "\(String(describing: error))")
        }
    }

    @Test func theWriterThatIsBlockedBeforeTheConnectionEndsWithTheDeadline() async throws {
        // The proxy never responds to CONNECT.
        let proxy = try LoopbackServer()
        proxy.script([.expectHead, .keepOpen])
        try await withExchanges({
            $0.proxy = .http("127.0.0.1", port: Int(proxy.port))
        }) { agent, server in
            var request = HTTPRequest(.post, "https://localhost:1/x")
            request.deadline = .milliseconds(400)
            let error = await exchangeError {
                try await agent.exchange(request) { _, body in try await DuplexEndTests.writeOn(body) }
            }
            #expect(error?.code == .timeout(.deadline), "\(String(describing: error))")
        }
    }

    /// The child that reads is cancelled between the head and the end.
    @Test func aReaderThatIsCancelledEndsTheWriterToo() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/x",
                [
                    .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"), .wait("over"),
                    .expectClose,
                ])
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                    let gate = Gate()
                    let reader = Task {
                        var pieces = (try await response.body).makeAsyncIterator()
                        _ = try await pieces.next()
                        gate.open()
                        return try await pieces.next()
                    }
                    await gate.pass()
                    reader.cancel()
                    _ = try? await reader.value
                    try await DuplexEndTests.writeOn(body)
                }
            }
            #expect(error?.code == .cancelled, "\(String(describing: error))")
        }
    }

    @Test func cancelAllEndsAnExchangeThatWaitsForARetry() async throws {
        try await withExchanges({
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .seconds(3600), maxDelay: .seconds(3600))
        }) { agent, server in
            server.script(path: "/x", [.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), .mark("busy"), .close])
            async let ended = exchangeError {
                try await agent.exchange(HTTPRequest(.put, "/x")) { response, body in
                    _ = try await response.head
                }
            }
            try await server.waitForMark("busy")
            #expect(await eventually { agent.statistics.running == 0 })
            agent.cancelAll()
            #expect(await ended?.code == .cancelled)
        }
    }

    @Test func finishIsRefusedTwiceAlsoWithTrailers() async throws {
        try await withExchanges { agent, server in
            let text = try await agent.exchange(HTTPRequest(.post, "/echo/body"), trailers: ["X-Sum"]) {
                response, body in
                try await body.write("abc")
                try body.finish(trailers: ["X-Sum": "1"])
                #expect(throws: RequestError.self) { try body.finish(trailers: ["X-Sum": "2"]) }
                #expect(throws: RequestError.self) { try body.finish(trailers: ["X-Other": "2"]) }
                return try await response.body.collect(upTo: 10)
            }
            #expect(text == Data("abc".utf8))
        }
    }
}
