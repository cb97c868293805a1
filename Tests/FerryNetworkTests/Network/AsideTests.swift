import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Informational responses before a response, and trailers after its body.
@Suite(.timeLimit(.minutes(1))) struct AsideTests {
    private static let whole =
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nLink: </b.js>\r\n\r\n"
        + "HTTP/1.1 102 Processing\r\n\r\n"
        + "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Digest\r\n\r\n"
        + "5\r\nhello\r\n0\r\nDigest: \t sha-256=abc \r\nX-Cost: 3\r\n\r\n"
    private static let plain = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

    private func withScript(
        _ steps: [LoopbackScript.Step], _ body: (NetworkAgent) async throws -> Void
    ) async throws {
        let server = try LoopbackServer()
        server.script(path: "/x", LoopbackScript([.expectHead] + steps + [.serve]))
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        try await body(agent)
        await agent.shutdown()
    }

    private func expectAsides(_ response: Response) {
        #expect(response.informational.map(\.status) == [103, 102])
        #expect(response.informational.first?.headers.values(of: "link") == ["</a.css>; rel=preload", "</b.js>"])
        #expect(response.informational.last?.headers.isEmpty == true)
        #expect(response.headers["Link"] == nil)
        #expect(response.headers["Digest"] == nil)
    }

    @Test func aWholeResponseHasThem() async throws {
        try await withScript([.send(Self.whole)]) { agent in
            let reply = try await agent.send(Get("/x"))
            #expect(reply.value.text == "hello")
            expectAsides(reply.response)
            #expect(reply.trailers.fields.map(\.name) == ["Digest", "X-Cost"])
            #expect(reply.trailers["digest"] == "sha-256=abc")
        }
    }

    @Test func ofAStreamTheTrailersComeWithTheEnd() async throws {
        try await withScript([.send(Self.whole)]) { agent in
            let response = try await agent.stream(Get("/x"))
            expectAsides(response.head)
            #expect(response.head.trailers.isEmpty)
            var bytes: [UInt8] = []
            for try await piece in response.body { bytes += piece }
            #expect(bytes == Array("hello".utf8))
            #expect(response.body.trailers["X-Cost"] == "3")
        }
    }

    @Test func aPlainResponseHasNone() async throws {
        try await withScript([.send(Self.plain)]) { agent in
            let reply = try await agent.send(Get("/x"))
            #expect(reply.trailers.isEmpty && reply.informational.isEmpty)
            let response = try await agent.stream(Get("/hello"))
            _ = try await response.body.collect(upTo: 1000)
            #expect(response.body.trailers.isEmpty && response.head.informational.isEmpty)
        }
    }
}
