import FaultTable
import Ferry
import FerryTesting
import FoundationEssentials
import Testing

/// Exchanges over HTTP/2, which libcurl carries.
@Suite(.timeLimit(.minutes(5))) struct HTTP2DuplexTests {
    private func withHTTP2(
        _ change: (inout NetworkConfiguration) -> Void = { _ in },
        _ body: (NetworkAgent, FaultyHTTP2Server) async throws -> Void
    ) async throws {
        let server = try FaultyHTTP2Server()
        var configuration = try NetworkConfiguration.trusting
        configuration.http2 = .negotiated
        change(&configuration)
        let agent = NetworkAgent(configuration: configuration)
        try await body(agent, server)
        await agent.shutdown(grace: .zero)
    }

    private static func post(_ url: String) -> HTTPRequest<Response> { HTTPRequest(.post, url) }

    private static let piece = [UInt8](repeating: 0x61, count: 64 * 1024)

    @Test func whatIsWrittenComesBackPieceByPiece() async throws {
        try await withHTTP2 { agent, server in
            try await agent.exchange(Self.post(server.url("/duplex"))) { response, body in
                #expect(try await response.head.httpVersion == .http2)
                let echo = try await response.body
                var pieces = echo.makeAsyncIterator()
                for number in 0..<50 {
                    let line = Array("line \(number)\n".utf8)
                    try await body.write(line)
                    var echoed: [UInt8] = []
                    while echoed.count < line.count { echoed += try await #require(pieces.next()) }
                    #expect(echoed == line)
                }
                try body.finish()
                #expect(try await pieces.next() == nil)
                #expect(echo.trailers["x-sum"] == "7")
            }
            #expect(try await agent.send(Get(server.url("/echo"))).status == 200)
        }
    }

    /// `make test-integration` plays 32 MB of it, with `FERRY_LONG_TESTS` it is 1 GB.
    @Test func anyAmountGoesBothWaysInEightMegabytes() async throws {
        let size = LongTests.count(1_000_000_000, share: 32_000_000) / Self.piece.count * Self.piece.count
        try await withHTTP2 { agent, server in
            func echo(_ size: Int) async throws {
                let received = try await agent.exchange(Self.post(server.url("/duplex"))) { response, body in
                    async let sent: Void = {
                        for _ in 0..<size / Self.piece.count { try await body.write(Self.piece) }
                        try body.finish()
                    }()
                    var received = 0
                    for try await piece in try await response.body { received += piece.count }
                    try await sent
                    return received
                }
                #expect(received == size)
            }
            try await echo(Self.piece.count * 64)
            let before = residentBytes()
            let watch = Task {
                var most = 0
                while !Task.isCancelled {
                    most = max(most, residentBytes() - before)
                    try? await Task.sleep(for: .milliseconds(5))
                }
                return most
            }
            try await echo(size)
            watch.cancel()
            let most = await watch.value
            #expect(most < 8_000_000, "\(most) bytes more")
        }
    }

    @Test func theEndOfTheResponseIsSeenWhileTheRequestGoesOn() async throws {
        try await withHTTP2 { agent, server in
            try await agent.exchange(Self.post(server.url("/ends/sized"))) { response, body in
                #expect(try await response.body.collect(upTo: 10) == Data("ok".utf8))
                try await body.write([1, 2, 3])
                try body.finish()
            }
            #expect(try await agent.send(Get(server.url("/echo"))).status == 200)
        }
    }

    @Test(arguments: ["unsized", "trailed"])
    func withoutALengthTheEndIsSeenWithThatOfTheRequest(kind: String) async throws {
        try await withHTTP2 { agent, server in
            try await agent.exchange(Self.post(server.url("/ends/\(kind)"))) { response, body in
                let read = try await response.body
                var pieces = read.makeAsyncIterator()
                #expect(try await pieces.next() == Data("ok".utf8))
                try body.finish()
                #expect(try await pieces.next() == nil)
                #expect(read.trailers["x-sum"] == (kind == "trailed" ? "2" : nil))
            }
        }
    }

    @Test(arguments: [true, false]) func itIsCancelledWhereverItIs(writes: Bool) async throws {
        try await withHTTP2 { agent, server in
            let (begun, begin) = AsyncStream<Void>.makeStream()
            let task = Task {
                try await agent.exchange(Self.post(server.url("/stuck"))) { response, body in
                    _ = try await response.head
                    begin.finish()
                    if writes {
                        while true { try await body.write(Self.piece) }
                    } else {
                        _ = try await response.body.collect(upTo: 10)
                    }
                }
            }
            for await _ in begun {}
            task.cancel()
            let error = await #expect(throws: RequestError.self) { try await task.value }
            #expect(error?.code == .cancelled)
            let after = try await agent.send(Get(server.url("/echo")))
            #expect(after.status == 200)
        }
    }

    @Test func theDeadlineEndsAWriterThatNobodyReads() async throws {
        try await withHTTP2 { agent, server in
            var request = Self.post(server.url("/stuck"))
            request.deadline = .milliseconds(500)
            let error = await #expect(throws: RequestError.self) {
                try await agent.exchange(request) { _, body in
                    while true { try await body.write(Self.piece) }
                }
            }
            #expect(error?.code == .timeout(.deadline))
        }
    }

    @Test func anUploadWithTrailersHasHTTP11() async throws {
        let nginx = try Nginx.shared
        var configuration = try NetworkConfiguration.trusting
        configuration.http2 = .negotiated
        let agent = NetworkAgent(configuration: configuration)
        let url = nginx.url("/hello.txt", .http2)
        let body = RequestBody.bytes([1]).withTrailers(["X-Sum"]) { ["X-Sum": "1"] }
        for _ in 0..<2 {
            #expect(try await agent.send(HTTPRequest(.get, url)).httpVersion == .http2)
            #expect(try await agent.send(HTTPRequest(.get, url, body: body)).httpVersion == .http11)
        }
        await agent.shutdown(grace: .zero)
    }
}
