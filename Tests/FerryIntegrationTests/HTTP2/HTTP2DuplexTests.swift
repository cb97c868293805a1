import FaultTable
import Ferry
import FerryTesting
import FoundationEssentials
import Glibc
import Testing

@testable import FerryTestSupport

/// Exchanges over HTTP/2 that both sides carry to their end, and the choice of the protocol.
@Suite(.timeLimit(.minutes(3))) struct HTTP2DuplexTests {
    // MARK: Both ways

    @Test(arguments: HTTP2Way.allCases) func writtenPiecesComeBackOneByOne(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            let lines = try await agent.exchange(live.request()) { response, body in
                var lines: [String] = []
                for number in 0..<100 {
                    let line = "line \(number)\n"
                    try await body.write(line)
                    // Nothing else is written before it has come back.
                    var echoed: [UInt8] = []
                    while echoed.count < line.utf8.count { echoed += try await #require(response.next()) }
                    lines.append(String(decoding: echoed, as: UTF8.self))
                }
                try body.finish()
                #expect(try await response.next() == nil)
                #expect(try await response.head.httpVersion == .http2)
                return lines
            }
            #expect(lines == (0..<100).map { "line \($0)\n" })
            let end = try await live.ends()[0]
            #expect(end.end == .ended && end.length == lines.joined().utf8.count, "\(end)")
        }
    }

    /// `make test-integration` plays 64 MB of it, with `FERRY_LONG_TESTS` it is 1 GB.
    @Test(arguments: [HTTP2Way.negotiated, .plain]) func anyAmountFlowsBothWaysInEightMegabytesOfMemory(
        way: HTTP2Way
    ) async throws {
        let size = LongTests.count(1_000_000_000, share: 64_000_000)
        try await withLive(way) { agent, live in
            // What is needed once is there.
            try await agent.expectRoundTrip(10_000_000, live.request())
            ProcessHoldings.resetPeak()
            let before = ProcessHoldings.memory
            try await agent.expectRoundTrip(size, live.request())
            let grown = ProcessHoldings.peakMemory - before
            #if !FERRY_TSAN && !FERRY_ASAN
            #expect(grown < 8_000_000 || !ProcessHoldings.isAlone, "\(grown) bytes more")
            #endif
            #expect(try Set(live.requests.map(\.connection)).count == 1)
        }
    }

    /// The server sends PING and SETTINGS before every piece.
    @Test func framesOfTheConnectionDoNotDisturbTheBody() async throws {
        try await withLive { agent, live in
            try await agent.expectRoundTrip(5_000_000, live.request("ping"))
        }
    }

    @Test(arguments: HTTP2Way.allCases) func trailersGoBothWays(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            try await agent.exchange(live.request("echo?trailers=1"), trailers: ["X-Sum"]) { response, body in
                try await body.write("abc")
                try body.finish(trailers: ["X-Sum": "3"])
                let read = try await response.body
                #expect(try await read.collect(upTo: 10) == Data("abc".utf8))
                #expect(read.trailers["X-End"] == "yes")
            }
            let end = try await live.ends()[0]
            #expect(end.end == .ended && end.length == 3 && end.trailers == ["x-sum": "3"], "\(end)")
            // The connection is as before.
            #expect(try await agent.echo("next", live.request()) == "next")
            #expect(try Set(live.requests.map(\.connection)).count == 1)
        }
    }

    @Test(arguments: [false, true]) func aBodyMayBeEmpty(hasTrailers: Bool) async throws {
        try await withLive { agent, live in
            try await agent.exchange(live.request(), trailers: hasTrailers ? ["X-Sum"] : []) { response, body in
                try body.finish(trailers: hasTrailers ? ["X-Sum": "0"] : [:])
                #expect(try await response.body.collect(upTo: 0).isEmpty)
            }
            let end = try await live.ends()[0]
            let trailers = hasTrailers ? ["x-sum": "0"] : [:]
            #expect(end.end == .ended && end.length == 0 && end.trailers == trailers, "\(end)")
        }
    }

    // MARK: Responses before the end of the request

    @Test(arguments: HTTP2Way.allCases, ["early/1000", "early/1000?length=1000", "early/1000?trailers=1"])
    func aServerThatReadsAfterItsResponseGetsTheWholeBody(way: HTTP2Way, path: String) async throws {
        try await withLive(way) { agent, live in
            let bytes = Nginx.pattern(3_000_000)
            try await agent.exchange(live.request(path)) { response, body in
                let read = try await response.body
                #expect(try await read.collect(upTo: 1_000) == Data(Nginx.pattern(1_000)))
                #expect(read.trailers["X-End"] == (path.hasSuffix("trailers=1") ? "yes" : nil))
                for from in stride(from: 0, to: bytes.count, by: 70_000) {
                    try await body.write(bytes[from..<min(from + 70_000, bytes.count)])
                }
                try body.finish()
            }
            #expect(try await agent.echo("next", live.request()) == "next")
            let ends = try await live.ends(2)
            #expect(ends.count == 2 && ends.allSatisfy { $0.end == .ended }, "\(ends)")
            #expect(ends[0].length == bytes.count && ends[0].sha256 == sha256(bytes))
            #expect(ends[0].connection == ends[1].connection, "the connection is kept")
        }
    }

    /// What is written fits into the buffer ahead of the socket.
    @Test func aBodyThatIsFinishedIsSentBeforeTheExchangeEnds() async throws {
        try await withLive { agent, live in
            let text = try await agent.exchange(live.request("early/5")) { response, body in
                let text = try await response.body.collect(upTo: 5)
                try await body.write([UInt8](repeating: 0x61, count: 200_000))
                try body.finish()
                return text
            }
            #expect(text == Data(Nginx.pattern(5)))
            let end = try await live.ends()[0]
            #expect(end.end == .ended && end.length == 200_000, "\(end)")
        }
    }

    /// The server reads slowly, so most of it waits in the buffers of both systems. A connection that was closed with
    /// frames that nobody has read would lose it: the server sends one for each piece.
    @Test(arguments: [HTTP2Way.negotiated, .plain], ["", "&goaway=1"])
    func aLongBodyAfterTheEndOfTheResponseArrivesWhole(way: HTTP2Way, query: String) async throws {
        let count = 120
        try await withLive(way) { agent, live in
            try await agent.exchange(live.request("early/5?slow=1" + query)) { response, body in
                #expect(try await response.body.collect(upTo: 5) == Data(Nginx.pattern(5)))
                for _ in 0..<count { try await body.write([UInt8](repeating: 0x61, count: 100_000)) }
                try body.finish()
            }
            let end = try await live.ends()[0]
            #expect(end.end == .ended && end.length == count * 100_000, "\(end)")
        }
    }

    /// The system has taken all of it when the response ends, and the server has read the beginning.
    @Test(arguments: [HTTP2Way.negotiated, .plain]) func aBodyThatTheServerHasStillToReadArrivesWhole(
        way: HTTP2Way
    ) async throws {
        let count = 2_000_000
        try await withLive(way) { agent, live in
            let path = "early/5?slow=1&goaway=1&after=100000"
            try await agent.exchange(live.request(path)) { response, body in
                try await body.write([UInt8](repeating: 0x61, count: count))
                try body.finish()
                #expect(try await response.body.collect(upTo: 5) == Data(Nginx.pattern(5)))
            }
            let end = try await live.ends()[0]
            #expect(end.end == .ended && end.length == count, "\(end)")
        }
    }

    @Test func aHeadOfManyFramesIsSent() async throws {
        try await withLive { agent, live in
            var request = live.request()
            request.headers["X-Large"] = String(repeating: "x", count: 300_000)
            try await agent.expectEcho("here", request)
        }
    }

    @Test func informationalResponsesArriveBeforeTheBodyIsWritten() async throws {
        try await withLive { agent, live in
            let (hints, hint) = AsyncStream<InformationalResponse>.makeStream()
            try await agent.exchange(live.request("hints"), onInformational: { hint.yield($0) }) { response, body in
                var iterator = hints.makeAsyncIterator()
                let first = await iterator.next()
                #expect(first?.status == 103 && first?.headers["Link"] == "</a.css>")
                try await body.write("here")
                try body.finish()
                #expect(try await response.body.collect(upTo: 10) == Data("here".utf8))
                #expect(try await response.head.informational.map(\.status) == [103])
            }
        }
    }

    @Test(arguments: HTTP2Way.allCases) func theBodyWaitsForContinue(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            var request = live.request("continue")
            request.headers["Expect"] = "100-continue"
            #expect(try await agent.echo("here", request) == "here")
            let end = try await live.ends()[0]
            #expect(end.end == .ended && end.early == 0, "\(end)")
        }
    }

    /// RFC 9110, 10.1.1: the server need not send a 100 before.
    @Test func aResponseAtOnceEndsTheWaitForContinue() async throws {
        try await withLive { agent, live in
            var request = live.request()
            request.headers["Expect"] = "100-continue"
            try await agent.expectEcho("here", request)
        }
    }

    // MARK: Connections

    @Test(arguments: HTTP2Way.allCases) func theConnectionIsKeptForTheNextExchange(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            for number in 0..<20 {
                #expect(try await agent.echo("text \(number)", live.request()) == "text \(number)")
            }
            let requests = try live.requests
            #expect(Set(requests.map(\.connection)).count == 1)
            #expect(requests.map(\.stream) == (0..<20).map { 2 * $0 + 1 })
            #expect(agent.statistics.connectionsOpened == 1)
        }
    }

    @Test(arguments: HTTP2Way.allCases) func exchangesAtOnceHaveConnectionsOfTheirOwn(way: HTTP2Way) async throws {
        try await withLive(way) { agent, live in
            let text = try await agent.exchange(live.request()) { response, body in
                _ = try await response.head
                #expect(try await agent.echo("two", live.request()) == "two")
                try await body.write("one")
                try body.finish()
                return try await response.body.collect(upTo: 10)
            }
            #expect(text == Data("one".utf8))
            #expect(try Set(live.requests.map(\.connection)).count == 2)
            // Both are kept.
            #expect(try await agent.echo("three", live.request()) == "three")
            #expect(try Set(live.requests.map(\.connection)).count == 2)
        }
    }

    @Test func otherRequestsHaveConnectionsOfTheirOwn() async throws {
        try await withLive { agent, live in
            let other = HTTPRequest.to(live.server.url("/unsized/1000?id=\(live.mark)"))
            try await agent.exchange(live.request()) { response, body in
                _ = try await response.head
                let reply = try await agent.send(other)
                #expect(reply.bytes == Nginx.pattern(1_000) && reply.httpVersion == .http2)
                #expect(reply.metrics.engine == .libcurl)
                try body.finish()
                #expect(try await response.body.collect(upTo: 0).isEmpty)
            }
            _ = try await agent.send(other)
            #expect(try await agent.echo("next", live.request()) == "next")
            let connections = try live.requests.map(\.connection)
            #expect(connections.count == 4 && Set(connections).count == 2, "\(connections)")
            #expect(connections.first == connections.last, "\(connections)")
        }
    }

    // MARK: The choice of the protocol

    /// A server with ALPN that does not have HTTP/2, and one without ALPN.
    @Test(arguments: [["http/1.1"], []]) func whereHTTP2IsNotOfferedAnExchangeUsesHTTP1(
        protocols: [String]
    ) async throws {
        let certificate = try ServerCertificate()
        var options = LoopbackServer.Options(certificate: certificate)
        options.applicationProtocols = protocols
        let server = try LoopbackServer(options)
        var configuration = NetworkConfiguration(baseURL: "https://localhost:\(server.port)")
        configuration.tls.authorityFile = certificate.authorityFile
        (configuration.engine, configuration.http2) = (.automatic, .negotiated)
        try await withAgent(configuration) { agent in
            for _ in 0..<2 {
                try await agent.exchange(HTTPRequest(.post, "/echo/body")) { response, body in
                    try await body.write("here")
                    #expect(try await response.next() == Data("here".utf8))
                    try body.finish()
                    #expect(try await response.next() == nil)
                    #expect(try await response.head.httpVersion == .http11)
                }
            }
            #expect(server.connectionCount == 1 && server.requestCount == 2)
        }
    }

    @Test(arguments: [Nginx.Site.tls, .http, .http2]) func nginxChooses(site: Nginx.Site) async throws {
        let nginx = try Nginx.shared
        var configuration = try NetworkConfiguration.trusting
        (configuration.engine, configuration.http2) = (.automatic, .negotiated)
        let bytes = Nginx.pattern(1_000_000)
        try await withAgent(configuration) { agent in
            try await agent.exchange(HTTPRequest(.post, nginx.url("/echo", site))) { response, body in
                try await body.write(bytes)
                try body.finish()
                let echo = try JSONDecoder().decode(Echo.self, from: await response.body.collect(upTo: 10_000))
                #expect(echo.sha256 == sha256(bytes) && echo.length == bytes.count)
                #expect(try await response.head.httpVersion == (site == .http2 ? .http2 : .http11))
            }
        }
    }

    @Test func withPriorKnowledgeAServerWithoutHTTP2FailsTheExchange() async throws {
        let (nginx, server) = (try Nginx.shared, try LoopbackServer())
        server.script([.expectBytes(24), .send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), .close])
        var configuration = try NetworkConfiguration.trusting
        (configuration.engine, configuration.http2) = (.automatic, .priorKnowledge)
        configuration.timeouts.idle = .seconds(20)
        try await withAgent(configuration) { agent in
            for url in [server.baseURL + "/x", nginx.url("/hello.txt", .tls)] {
                let error = await exchangeError {
                    try await agent.exchange(HTTPRequest(.post, url)) { response, _ in _ = try await response.head }
                }
                #expect(error?.is(.timeout) == false, "\(String(describing: error))")
                #expect(!url.hasPrefix("https:") || error?.is(.tls) == true, "\(String(describing: error))")
            }
        }
    }
}
