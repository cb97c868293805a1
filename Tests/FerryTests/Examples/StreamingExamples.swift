import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The code of the article "Streaming".
@Suite(.timeLimit(.minutes(1))) struct StreamingExamples {
    struct Export: Request {
        var path: String { "/export" }
    }

    private func read(_ agent: NetworkAgent) async throws -> Int {
        var count = 0
        let export = try await agent.stream(Export())
        print(export.status, export.contentLength ?? -1)
        for try await piece in export.body {
            count += piece.count
        }
        return count
    }

    private func collect(_ agent: NetworkAgent) async throws -> Int {
        let export = try await agent.stream(Export())
        let small = try await export.body.collect(upTo: 1_000_000)
        return small.count
    }

    private func events(_ agent: NetworkAgent) async throws {
        for try await event in agent.events(HTTPRequest(.get, "/prices")) {
            print(event.event, event.data)
        }
    }

    func write(_ lines: [String], to body: RequestBodyWriter) async throws {
        for line in lines { try await body.write(line + "\n") }
        try body.finish()
    }

    private func translate(_ lines: [String], _ agent: NetworkAgent) async throws -> [UInt8] {
        let translation = try await agent.exchange(HTTPRequest(.post, "/translations")) { response, body in
            async let sent: Void = write(lines, to: body)
            var translation: [UInt8] = []
            for try await piece in try await response.body { translation += piece }
            try await sent
            return translation
        }
        return translation
    }

    private func hints(_ agent: NetworkAgent, _ preload: @escaping @Sendable ([String]) -> Void) async throws -> Int {
        let page = try await agent.stream(HTTPRequest(.get, "/page")) { informational in
            preload(informational.headers.values(of: "Link"))  // on the event loop's thread: do not block
        }
        return page.status
    }

    @Test func linesAreWrittenWhileOthersAreRead() async throws {
        try await withLoopbackServer { server in
            server.handle("/translations") { LoopbackResponse(body: Array($0.text.uppercased().utf8)) }
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
            let translation = try await translate(["one", "two"], agent)
            #expect(translation == Array("ONE\nTWO\n".utf8))
            await agent.shutdown(grace: .zero)
        }
    }

    @Test func earlyHintsArriveBeforeThePage() async throws {
        try await withLoopbackServer { server in
            server.script(
                path: "/page",
                [
                    .send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"), .wait("hint"),
                    .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
                ])
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
            let status = try await hints(agent) { links in
                if links == ["</a.css>"] { server.signal("hint") }
            }
            #expect(status == 200)
            await agent.shutdown(grace: .zero)
        }
    }

    @Test func theEventsEndWhenTheServerSaysSo() async throws {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response(status: 204)))
        try await events(agent)
    }

    @Test func theBodyIsReadToItsEnd() async throws {
        try await withLoopbackServer { server in
            server.handle("/export") { _ in LoopbackResponse(body: LoopbackServer.pattern(0..<500_000)) }
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
            #expect(try await read(agent) == 500_000)
            let collected = try await collect(agent)
            #expect(collected == 500_000)
            await agent.shutdown(grace: .zero)
        }
    }
}
