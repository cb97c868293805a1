import Ferry
import FerryTesting
import FoundationEssentials
import Testing

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
