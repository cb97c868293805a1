import CCoreParts
import FaultTable
import Ferry
import FerryTesting
import FoundationEssentials
import Glibc
import Testing

@testable import FerryTestSupport

/// Exchanges in which the response is read while the request's body is written.
@Suite(.timeLimit(.minutes(3))) struct DuplexTests {
    static let echo = HTTPRequest(.post, "/echo/body")

    @Test func writtenPiecesComeBackOneByOne() async throws {
        try await withExchanges { agent, _ in
            let lines = try await agent.exchange(Self.echo) { response, body in
                var lines: [String] = []
                for number in 0..<100 {
                    let line = "line \(number)\n"
                    try await body.write(Array(line.utf8))
                    // Nothing else is written before it has come back.
                    var echoed: [UInt8] = []
                    while echoed.count < line.utf8.count { echoed += try await #require(response.next()) }
                    lines.append(String(decoding: echoed, as: UTF8.self))
                }
                try body.finish()
                #expect(try await response.next() == nil)
                return lines
            }
            #expect(lines == (0..<100).map { "line \($0)\n" })
            #expect(try await agent.send(Get("/hello")).status == 200)
        }
    }

    private struct Compressing: RequestAdapter {
        let coding: RequestBody.Coding

        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
            request.body = request.body?.compressed(coding)
        }
    }

    /// The decoded bytes of a compressed body so far.
    private static func decoded(_ bytes: [UInt8], _ coding: RequestBody.Coding) -> String {
        var body = parts_body()
        parts_decode(&body, Int32(coding == .gzip ? PARTS_GZIP : PARTS_ZSTD), bytes, bytes.count, 0, 1 << 20)
        defer { parts_body_free(&body) }
        return String(decoding: UnsafeBufferPointer(start: body.bytes, count: body.length), as: UTF8.self)
    }

    @Test(arguments: [RequestBody.Coding.gzip, .zstd])
    func compressedPiecesDoNotWaitForMore(coding: RequestBody.Coding) async throws {
        try await withExchanges {
            $0.adapters = [Compressing(coding: coding)]
            $0.timeouts.idle = .seconds(10)
        } _: { agent, _ in
            let echoed = try await agent.exchange(Self.echo) { response, body in
                var (echoed, sent) = ([UInt8](), "")
                for number in 0..<20 {
                    let line = "line \(number)\n"
                    sent += line
                    try await body.write(line)
                    // Nothing else is written before it has come back, and can be decoded.
                    while Self.decoded(echoed, coding) != sent { echoed += try await #require(response.next()) }
                }
                try body.finish()
                while let piece = try await response.next() { echoed += piece }
                #expect(Self.decoded(echoed, coding) == sent)
                return echoed
            }
            #expect(echoed.count < 1_000)
        }
    }

    /// `make test` plays 64 MB of it, in `make test-long` it is 1 GB.
    @Test func anyAmountFlowsBothWaysInEightMegabytesOfMemory() async throws {
        let size = LongTests.count(1_000_000_000, share: 64_000_000)
        let server = try LoopbackServer(.quiet)
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.engine = .automatic
        let agent = NetworkAgent(configuration: configuration)
        // What is needed once is there.
        try await agent.expectRoundTrip(10_000_000, Self.echo)
        ProcessHoldings.resetPeak()
        let before = ProcessHoldings.memory
        try await agent.expectRoundTrip(size, Self.echo)
        let grown = ProcessHoldings.peakMemory - before
        #if !FERRY_TSAN && !FERRY_ASAN
        #expect(grown < 8_000_000 || !ProcessHoldings.isAlone, "\(grown) bytes more")
        #endif
        await agent.shutdown()
    }

    @Test func overTLSToo() async throws {
        let certificate = try ServerCertificate()
        var options = LoopbackServer.Options.quiet
        options.certificate = certificate
        let server = try LoopbackServer(options)
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.tls.authorityFile = certificate.authorityFile
        configuration.engine = .automatic
        let agent = NetworkAgent(configuration: configuration)
        try await agent.expectRoundTrip(20_000_000, Self.echo)
        await agent.shutdown()
    }

    @Test func theHeadMayComeBeforeTheBody() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/early",
                [
                    .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Early: yes\r\n\r\n"), .expectBody,
                    .send("2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n"), .serve,
                ])
            try await agent.exchange(HTTPRequest(.post, "/early")) { response, body in
                #expect(try await response.head.headers["X-Early"] == "yes")
                try await body.write([1, 2, 3])
                try body.finish()
                let read = try await response.body
                #expect(try await read.collect(upTo: 10) == Data("ok".utf8))
                #expect(read.trailers["X-Sum"] == "7")
            }
            #expect(try await agent.send(Get("/hello")).status == 200)
            #expect(server.connectionCount == 1, "the connection is kept")
        }
    }

    @Test func theRequestIsSentAsItWasDescribed() async throws {
        try await withExchanges { agent, server in
            let request = HTTPRequest(.put, "/echo/body", headers: ["Content-Type": "text/x-rows", "X-A": "b"])
            let type = try await agent.exchange(request) { response, body in
                try body.finish()
                return try await response.head.headers["Content-Type"]
            }
            #expect(type == "text/x-rows")
            let sent = try #require(server.requests.first)
            #expect(sent.method == "PUT" && sent.headers["x-a"] == "b")
            #expect(sent.headers["transfer-encoding"] == "chunked" && sent.headers["trailer"] == nil)
        }
    }

    @Test func trailersFollowTheBody() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/sum", [.expectBody, .send(answer("ok")), .serve])
            try await agent.exchange(HTTPRequest(.post, "/sum"), trailers: ["X-Sum", "X-Other"]) { response, body in
                try await body.write(Array("abc".utf8))
                try body.finish(trailers: ["X-Sum": "3"])
                #expect(try await response.head.status == 200)
            }
            #expect(server.requests.first?.headers["trailer"] == "X-Sum, X-Other")
            await #expect(throws: RequestError.self) {
                try await agent.exchange(HTTPRequest(.post, "/sum"), trailers: ["Content-Length"]) { response, _ in
                    _ = try await response.head
                }
            }
            #expect(server.requestCount == 1)
            let error = await #expect(throws: RequestError.self) {
                try await agent.exchange(HTTPRequest(.post, "/sum"), trailers: ["X-Sum"]) { _, body in
                    try body.finish(trailers: ["X-Secret": "3"])
                }
            }
            #expect(error?.code == .uploadSource)
        }
    }

    @Test func aRedirectIsFollowedAsLongAsNothingWasSent() async throws {
        try await withExchanges { agent, server in
            let moved = "Location: /echo/body\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            server.script(path: "/moved", [.send("HTTP/1.1 307 Moved\r\n" + moved), .close])
            let text = try await agent.exchange(HTTPRequest(.post, "/moved")) { response, body in
                #expect(try await response.head.redirects.count == 1)
                try await body.write(Array("here".utf8))
                try body.finish()
                return try await response.body.collect(upTo: 100)
            }
            #expect(text == Data("here".utf8))
            server.script(path: "/late", [.expectBytes(4), .send("HTTP/1.1 307 Moved\r\n" + moved), .close])
            let error = await #expect(throws: RequestError.self) {
                try await agent.exchange(HTTPRequest(.post, "/late")) { response, body in
                    try await body.write(Array("here".utf8))
                    _ = try await response.head
                }
            }
            #expect(error?.code == .bodyNotReplayable)
        }
    }

    @Test func aStubRespondsWhenTheBodyIsComplete() async throws {
        let agent = NetworkAgent(
            configuration: .test,
            stub: StubTransport { .response(status: 200, body: "\($0.body.count) bytes") })
        let text = try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
            try await body.write([UInt8](repeating: 1, count: 1_000_000))
            try body.finish()
            return try await response.body.collect(upTo: 100)
        }
        #expect(text == Data("1000000 bytes".utf8))
    }

    @Test func unsuitableRequestsAreRefused() async throws {
        try await withExchanges { agent, server in
            func refusal(_ request: HTTPRequest<Response>) async -> RequestError.Code? {
                await #expect(throws: RequestError.self) {
                    try await agent.exchange(request) { response, _ in _ = try await response.head }
                }?.code
            }
            #expect(await refusal(HTTPRequest(.post, "/x", body: .string("own"))) == .invalidRequest(.body))
            #expect(await refusal(HTTPRequest(.head, "/x")) == .invalidRequest(.framing))
            #expect(await refusal(HTTPRequest(.post, "http://")) == .invalidURL)
            try await agent.exchange(Self.echo) { response, body in
                try body.finish()
                #expect(throws: RequestError.self) { try body.finish() }
                let error = await #expect(throws: RequestError.self) { try await body.write([1]) }
                #expect(error?.code == .invalidRequest(.body))
                #expect(try await response.body.collect(upTo: 1).isEmpty)
            }
            #expect(server.requestCount == 1)
        }
    }
}

extension ExchangeResponse {
    /// The next piece of its body.
    func next() async throws -> Data? {
        var pieces = try await body.makeAsyncIterator()
        return try await pieces.next()
    }
}

extension LoopbackServer.Options {
    /// Keeps none of the bodies.
    static var quiet: LoopbackServer.Options {
        var options = LoopbackServer.Options()
        options.recordedBodyBytes = 0
        return options
    }
}
