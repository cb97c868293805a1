import FaultTable
import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Missing, oversized or damaged bodies: rows R13 and R27 to R31.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct BodyFaultTests {
    @Test(
        "R13: a response that cannot have a body has none, whatever it announces",
        arguments: ["204 No Content", "304 Not Modified"],
        ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", ""])
    func bodyless(status: String, fields: String) async throws {
        for body in ["", "hello", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"] {
            try await expectAnswer(
                [.expectHead, .send(head(status, fields) + body), .serve],
                setUp: {
                    $0.probe.statusValidation = .any
                    if status.hasPrefix("304") { $0.omit(.download, because: "no file") }
                }
            ) { response, _ in
                #expect(response.status == Int(status.prefix(3)))
                #expect(response.bodyLength == 0)
                #expect(response.body.isEmpty)
            }
        }
    }

    @Test(
        "R13: the response to HEAD has no body, whatever it announces",
        arguments: ["", "hello", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"])
    func headRequest(body: String) async throws {
        for fields in [
            "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n",
            "Content-Encoding: gzip\r\nContent-Length: 5\r\n",
        ] {
            try await expectAnswer(
                [.expectHead, .send(head("200 OK", fields) + body), .serve], setUp: { $0.probe.method = .head }
            ) { response, _ in
                #expect(response.status == 200)
                #expect(response.bodyLength == 0)
            }
        }
    }

    @Test(
        "R27: a decompression bomb is stopped at the limit",
        arguments: ["/gzip/200000000", "/deflate/200000000", "/br/200000000", "/zstd/200000000"])
    func bomb(path: String) async throws {
        try await expectFault([], .responseTooLarge, .body) {
            $0.probe.maxBodyBytes = 1_000_000
            $0.path = path
            $0.zeros()
        }
    }

    @Test(
        "R27: the limit applies to delivered bytes, exactly",
        arguments: ["/gzip/100000", "/bytes/100000", "/chunked/100000", "/until-close/100000"])
    func exactBound(path: String) async throws {
        try await expectAnswer(
            setUp: {
                $0.path = path
                $0.probe.maxBodyBytes = 100_000
            }
        ) { response, _ in
            #expect(response.bytes == LoopbackServer.pattern(0..<100_000))
        }
        try await expectFault([], .responseTooLarge, .body) {
            $0.path = path
            $0.probe.maxBodyBytes = 99_999
        }
    }

    @Test("R28: chunks are limited although nobody announces their sum")
    func chunkedBound() async throws {
        try await expectFault([], .responseTooLarge, .body) {
            $0.path = "/chunked/8192"
            $0.probe.maxBodyBytes = 1000
        }
        try await expectFault([], .responseTooLarge, .body) {
            $0.path = "/chunked/8192"
            $0.configuration.limits.maxBodyBytes = 1000
            $0.isHeldInMemory()
        }
    }

    @Test("R28: an endless body is limited by the request, and in memory by the configuration")
    func endlessBody() async throws {
        let script: LoopbackScript = [.expectHead, .send(head()), .pattern(bytes: 1_000_000_000), .close]
        try await expectFault(script, .responseTooLarge, .body) { $0.probe.maxBodyBytes = 4_000_000 }
        try await expectFault(script, .responseTooLarge, .body) {
            $0.configuration.limits.maxBodyBytes = 4_000_000
            $0.isHeldInMemory()
        }
    }

    @Test("R28: an announced length above the limit is refused before the body arrives")
    func announcedBound() async throws {
        let head = head("200 OK", "Content-Length: 1001\r\n")
        try await expectFault(
            [.expectHead, .send(head), .keepOpen], .responseTooLarge, .body, .head, received: head.utf8.count
        ) { $0.probe.maxBodyBytes = 1000 }
    }

    @Test(
        "R30: a truncated compressed stream is an error, even if its length agrees",
        arguments: [
            "/gzip/100000?cut=1", "/deflate/100000?cut=1", "/deflate/100000?cut=1&raw=1", "/gzip/50?cut=1",
            "/gzip/4000000?cut=1", "/br/100000?cut=1", "/zstd/100000?cut=1", "/zstd/50?cut=1",
        ])
    func truncated(target: String) async throws {
        try await expectFault([], .contentDecoding(.truncated), .body) { $0.ask(target) }
    }

    @Test("R30: one missing byte is enough, and so is a single byte")
    func truncatedByOne() async throws {
        let gzip = Gzip.hello
        for count in [1, 2, 9, 10, gzip.count - 8, gzip.count - 1] {
            let head = head("200 OK", "Content-Encoding: gzip\r\nContent-Length: \(count)\r\n")
            try await expectFault(
                [.expectHead, .send(head), .sendBytes(Array(gzip.prefix(count))), .serve], .contentDecoding(.truncated),
                .body)
        }
    }

    @Test(
        "R31: a damaged stream is an error",
        arguments: [
            "/gzip/100000?corrupt=1", "/deflate/100000?corrupt=1", "/br/100000?corrupt=1", "/zstd/100000?corrupt=1",
        ])
    func corrupt(target: String) async throws {
        try await expectFault([], .contentDecoding(.corrupt), .body) { $0.ask(target) }
    }

    @Test("R31: no damaged byte of a gzip stream is delivered as the body")
    func everyDamagedByte() async throws {
        let agent = NetworkAgent()
        let server = try LoopbackServer()
        for index in Gzip.hello.indices {
            var gzip = Gzip.hello
            gzip[index] ^= 0x04
            let fields = "Content-Encoding: gzip\r\nContent-Length: \(gzip.count)\r\n"
            server.script(path: "/\(index).", [.send(head("200 OK", fields)), .sendBytes(gzip), .serve])
            do throws(RequestError) {
                let reply = try await agent.send(Get(server.baseURL + "/\(index)."))
                // Time, system and extra flags are not checked (RFC 1952, 2.3.1), nor is the padding in the last byte
                // of the stream, nine before the end.
                #expect(reply.text == "Hello, gzip", "byte \(index)")
                #expect((4...9).contains(index) || index == gzip.count - 9, "byte \(index)")
            } catch {
                #expect(.contentDecoding ~= error, "byte \(index): \(error)")
            }
        }
        #expect(try await agent.send(Get(server.baseURL + "/hello")).text == "Hello, ferry")
        await agent.shutdown()
    }

    @Test("R31: bytes after the stream are an error, unless they are another stream")
    func trailingBytes() async throws {
        for (more, code) in [
            ("garbage", RequestError.Code.contentDecoding(.corrupt)), ("\u{1f}", .contentDecoding(.truncated)),
        ] {
            let bytes = Gzip.hello + Array(more.utf8)
            let head = head("200 OK", "Content-Encoding: gzip\r\nContent-Length: \(bytes.count)\r\n")
            try await expectFault([.expectHead, .send(head), .sendBytes(bytes), .serve], code, .body)
        }
        let twice = Gzip.hello + Gzip.hello
        let head = head("200 OK", "Content-Encoding: gzip\r\nContent-Length: \(twice.count)\r\n")
        try await expectAnswer([.expectHead, .send(head), .sendBytes(twice), .serve]) { response, _ in
            #expect(response.text == "Hello, gzipHello, gzip")
        }
    }

    @Test("R31: text declared as gzip is an error; an empty body is none")
    func notCompressed() async throws {
        try await expectFault(
            [.expectHead, .send(answer(Canary.body, "Content-Encoding: gzip\r\n")), .serve], .contentDecoding(.corrupt),
            .body)
        try await expectAnswer([.expectHead, .send(answer("", "Content-Encoding: gzip\r\n")), .serve]) { response, _ in
            #expect(response.bodyLength == 0)
        }
    }
}

extension FaultSetup {
    /// Requests a target with a query of its own.
    fileprivate mutating func ask(_ target: String) {
        let parts = target.split(separator: "?", maxSplits: 1)
        path = String(parts[0])
        query = parts.count > 1 ? String(parts[1]) : nil
    }

    fileprivate mutating func zeros() { query = "zeros=1" }

    /// The configuration's limit is for bodies in memory. Not noted as omitted: the request's own limit is played
    /// there.
    fileprivate mutating func isHeldInMemory() { forms = [.buffered] }
}

/// `Hello, gzip`, compressed by gzip(1) without a name.
private enum Gzip {
    static let hello: [UInt8] = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff, 0xf3, 0x48,
        0xcd, 0xc9, 0xc9, 0xd7, 0x51, 0x48, 0xaf, 0xca, 0x2c, 0x00, 0x00, 0x9d,
        0x14, 0x2d, 0xda, 0x0b, 0x00, 0x00, 0x00,
    ]
}
