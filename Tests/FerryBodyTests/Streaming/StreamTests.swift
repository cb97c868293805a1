import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Responses whose body is streamed.
@Suite(.timeLimit(.minutes(1))) struct StreamTests {
    @Test(arguments: ["/bytes/0", "/bytes/1", "/bytes/3000000", "/chunked/3000000", "/gzip/3000000"])
    func theWholeBodyComesInPieces(path: String) async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let response = try await agent.stream(Get(path))
        #expect(response.status == 200)
        var body: [UInt8] = []
        for try await piece in response.body {
            #expect(!piece.isEmpty)
            body += piece
        }
        let length = Int(path.split(separator: "/")[1]) ?? -1
        #expect(body.count == length)
        if !path.hasPrefix("/gzip") { #expect(body == LoopbackServer.pattern(0..<length)) }
        await agent.shutdown()
    }

    @Test func whatNobodyReadsTheServerDoesNotSend() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        do {
            let response = try await agent.stream(Get("/bytes/1000000000"))
            var iterator = response.body.makeAsyncIterator()
            let first = try await iterator.next()
            #expect(first?.isEmpty == false)
        }
        // The rest was abandoned: the connection is closed, and the next request succeeds.
        try await server.waitForOpenConnections(atMost: 0)
        #expect(try await agent.send(Get("/hello")).status == 200)
        await agent.shutdown()
    }

    @Test func anUnacceptedStatusThrowsWithTheBeginningOfItsBody() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        do throws(RequestError) {
            _ = try await agent.stream(Get("/status/404"))
            Issue.record("it was accepted")
        } catch {
            #expect(error.code == .invalidStatusCode(404))
            #expect(error.response?.status == 404)
        }
        #expect(try await agent.send(Get("/hello")).status == 200)
        await agent.shutdown()
    }

    @Test func theHealthOfTheHostIsToldByStreamsToo() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        #expect(agent.health(of: server.baseURL) == .unknown)
        let whole = try await agent.stream(Get("/bytes/10"))
        #expect(agent.health(of: server.baseURL).isReachable)
        _ = try await whole.body.collect(upTo: 10)
        server.script(path: "/cut", [.expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), .close])
        let cut = try await agent.stream(Get("/cut"))
        await #expect(throws: RequestError.self) { _ = try await cut.body.collect(upTo: 9) }
        guard case .failing(_, 1, .incompleteBody) = agent.health(of: server.baseURL) else {
            Issue.record("\(agent.health(of: server.baseURL))")
            return
        }
        await #expect(throws: RequestError.self) { _ = try await agent.stream(Get("/status/404")) }
        #expect(agent.health(of: server.baseURL).isReachable, "a 404 is an answer")
        server.stop()
        await #expect(throws: RequestError.self) { _ = try await agent.stream(Get("/hello")) }
        #expect(agent.health(of: server.baseURL).isFailing)
        #expect(agent.hostHealth[server.baseURL]?.isFailing == true)
        await agent.shutdown()
    }

    @Test(arguments: [
        (HTTPMethod.get, "204 No Content", "", true), (.get, "304 Not Modified", "Content-Length: 9\r\n", true),
        (.get, "200 OK", "Content-Length: 0\r\n", true), (.get, "200 OK", "Content-Length: 3\r\n\r\nabc", false),
        (.head, "200 OK", "Content-Type: text/html\r\nContent-Length: 3\r\n", true),
    ])
    func anAnswerWithoutABodyIsOfNoType(
        _ method: HTTPMethod, _ status: String, _ rest: String, _ isAccepted: Bool
    ) async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let answer = "HTTP/1.1 \(status)\r\n" + rest + (rest.hasSuffix("abc") ? "" : "\r\n")
        server.script(path: "/typed", [.expectHead, .send(answer), .serve])
        var request = HTTPRequest(method, "/typed")
        request.acceptedContentTypes = ["text/csv"]
        request.statusValidation = .any
        let whole = await fault { try await agent.send(request) }
        #expect((whole == nil) == isAccepted)
        let streamed = await fault { try await agent.stream(request).body.collect(upTo: 9) }
        #expect(streamed == whole && (isAccepted || streamed == .invalidContentType))
        await agent.shutdown()
    }

    @Test func collectingIsBounded() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let small = try await agent.stream(Get("/bytes/1000")).body.collect(upTo: 1000)
        #expect(Array(small) == LoopbackServer.pattern(0..<1000))
        let response = try await agent.stream(Get("/bytes/100000000"))
        do throws(RequestError) {
            _ = try await response.body.collect(upTo: 100_000)
            Issue.record("it was not bounded")
        } catch {
            #expect(error.code == .responseTooLarge)
        }
        try await server.waitForOpenConnections(atMost: 1)
        await agent.shutdown()
    }
}
