import FerryTesting
import Foundation
import Testing

extension LoopbackTests {
    @Suite("LoopbackServer: requests with bodies", .timeLimit(.minutes(1)))
    struct LoopbackBodyTests {
        private struct Echo: Decodable {
            var method, target, path, query: String
            var headers: [[String]]
            var body: String?
            var bodyBase64: String?
            var bytes: Int
        }

        private struct Upload: Decodable {
            var bytes: Int
            var sha256: String
        }

        private func decode<Value: Decodable>(_ response: RawResponse) throws -> Value {
            try JSONDecoder().decode(Value.self, from: Data(response.body))
        }

        private func post(_ target: String, _ body: String) -> String {
            "POST \(target) HTTP/1.1\r\nHost: t\r\nX-Quote: a\"b\\\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }

        @Test func echoTellsWhatCame() async throws {
            let server = try LoopbackServer()
            let echo: Echo = try decode(
                try await RawClient(port: server.port).exchange(post("/echo?a=1&b=%20", "grüße\n\u{1}")))
            #expect(echo.method == "POST")
            #expect(echo.target == "/echo?a=1&b=%20")
            #expect(echo.path == "/echo")
            #expect(echo.query == "a=1&b=%20")
            #expect(echo.headers.contains(["X-Quote", "a\"b\\"]))
            #expect(echo.body == "grüße\n\u{1}")
        }

        @Test func echoGivesOtherBodiesAsBase64() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            try await client.send("PUT /echo HTTP/1.1\r\nContent-Length: 3\r\n\r\n")
            try await client.send([0xFF, 0x00, 0xFE])
            let echo: Echo = try decode(try await client.readResponse())
            #expect(echo.body == nil)
            #expect(echo.bodyBase64 == Data([0xFF, 0x00, 0xFE]).base64EncodedString())
        }

        @Test func headersAreEchoedInOrder() async throws {
            let server = try LoopbackServer()
            let answer = try await RawClient(port: server.port).get("/headers", "B: 2\r\na: 1\r\nB: 3\r\n")
            #expect(answer.text == #"{"headers":[["Host","test"],["B","2"],["a","1"],["B","3"]]}"#)
        }

        @Test func chunkedBodyIsUndoneByteByByte() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let request =
                "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n00a\r\n0123456789\r\n"
            for byte in (request + "0\r\nT: 1\r\n\r\n").utf8 { try await client.send([byte]) }
            let echo: Echo = try decode(try await client.readResponse())
            #expect(echo.body == "abc0123456789")
        }

        @Test(arguments: ["zz\r\n", "\r\n", "fffffffffffffffff\r\n", "3\r\nabcX\r\n"])
        func badChunksAreRefused(chunk: String) async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let answer = try await client.exchange("POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)")
            #expect(answer.status == 400)
            #expect(try await client.receiveAll().isEmpty)
        }

        @Test(arguments: [
            "GARBAGE\r\n\r\n", "GET /hello HTTP/2.0\r\n\r\n", "GET /hello HTTP/1.1\r\nno colon\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        ])
        func badHeadsAreRefused(head: String) async throws {
            let server = try LoopbackServer()
            #expect(try await RawClient(port: server.port).exchange(head).status == 400)
        }

        @Test func echoBodyStreamsMoreThanItHolds() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let body = LoopbackServer.pattern(0..<5_000_000)
            async let sent: Void = client.send(
                Array("POST /echo/body HTTP/1.1\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body)
            #expect(try await client.readResponse().body == body)
            try await sent
        }

        @Test func echoBodyAnswersBeforeTheEnd() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            try await client.send("POST /echo/body HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
            _ = try await client.readResponse(toHead: true)
            #expect(try await client.receive(exactly: 7) == Array("2\r\nab\r\n".utf8))
            try await client.send("0\r\n\r\n")
            #expect(try await client.receive(exactly: 5) == Array("0\r\n\r\n".utf8))
            #expect(try await client.get("/echo/body").body.isEmpty)
        }

        @Test func uploadCountsAndHashes() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let empty: Upload = try decode(try await client.exchange(post("/upload", "")))
            #expect(empty.sha256.hasPrefix("e3b0c44298fc1c149afbf4c8996fb924"))
            let upload: Upload = try decode(try await client.exchange(post("/upload", "abc")))
            #expect(upload.bytes == 3)
            #expect(upload.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
            let again: Upload = try decode(try await client.exchange(post("/upload", "abc")))
            #expect(again.sha256 == upload.sha256)
        }

        @Test func expectContinueIsAnswered() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let first = try await client.exchange(
                "POST /upload HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
            #expect(first.status == 100)
            #expect(try await client.exchange("abc").status == 200)
        }

        @Test func bodiesAboveTheBoundAre413() async throws {
            var options = LoopbackServer.Options()
            options.maximumBodyBytes = 10
            let server = try LoopbackServer(options)
            let client = try RawClient(port: server.port)
            #expect(try await client.exchange(post("/echo", "0123456789")).status == 200)
            #expect(try await client.exchange(post("/echo", "0123456789a")).status == 413)
            #expect(try await client.receiveAll().isEmpty)
        }

        @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let body = "POST /echo/body HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
            try await client.send(
                "GET /delay/20 HTTP/1.1\r\n\r\n\(body)GET /bytes/100000 HTTP/1.1\r\n\r\nGET /status/404 HTTP/1.1\r\n\r\n"
            )
            #expect(try await client.readResponse().text == "Hello, ferry")
            #expect(try await client.readResponse().text == "abc")
            #expect(try await client.readResponse().body.count == 100_000)
            #expect(try await client.readResponse().status == 404)
        }

        @Test func manyPipelinedRequestsAreAllAnswered() async throws {
            let server = try LoopbackServer()
            let client = try RawClient(port: server.port)
            let request = Array(String(repeating: "GET /bytes/30000 HTTP/1.1\r\n\r\n", count: 200).utf8)
            async let sent: Void = client.send(request)
            for _ in 0..<200 { #expect(try await client.readResponse().body.count == 30_000) }
            try await sent
        }
    }
}
