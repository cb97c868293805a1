import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Exchanges that the server ends before the request has ended.
@Suite(.timeLimit(.minutes(1))) struct DuplexServerTests {
    private static let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"

    @Test(arguments: [whole, chunked]) func theReaderSeesTheEndWhileTheWriterContinues(answer: String) async throws {
        try await withExchanges { agent, server in
            server.script(path: "/x", [.expectBytes(3), .send(answer), .wait("go"), .close])
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                    try await body.write([1, 2, 3])
                    let read = try await response.body
                    #expect(try await read.collect(upTo: 10) == Data("ok".utf8))
                    #expect(read.trailers["X-T"] == (answer == Self.whole ? nil : "1"))
                    server.signal("go")
                    try await DuplexEndTests.writeOn(body)
                }
            }
            #expect(error?.code == .uploadStopped)
            #expect(error?.response?.status == 200)
        }
    }

    @Test(arguments: [whole, chunked]) func aClosureMayLeaveTheRestUnsent(answer: String) async throws {
        let ends = RunEnds()
        try await withExchanges({ $0.observers = [ends] }) { agent, server in
            server.script(path: "/x", [.expectBytes(3), .send(answer)])
            let text = try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                try await body.write([1, 2, 3])
                return try await response.body.collect(upTo: 10)
            }
            #expect(text == Data("ok".utf8) && ends.all == ["finished 200"])
            try await server.waitForOpenConnections(atMost: 0)
        }
    }

    @Test func aServerThatReadsAfterItsResponseGetsTheWholeBody() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/x", [.send(Self.whole), .expectBody, .mark("whole"), .serve])
            try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                #expect(try await response.body.collect(upTo: 10) == Data("ok".utf8))
                try await DuplexEndTests.writeOn(body, most: 10_000_000)
                try body.finish()
            }
            try await server.waitForMark("whole")
            #expect(try await agent.send(Get("/hello")).status == 200)
            #expect(server.connectionCount == 1, "the connection is kept")
        }
    }

    @Test func aRetryBeforeTheFirstByteSendsTheBody() async throws {
        try await withExchanges { agent, server in
            server.script(
                connection: 1,
                [.expectHead, .send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), .close])
            var request = HTTPRequest(.put, "/echo/body")
            request.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero)
            request.timeouts = Timeouts(idle: .seconds(5))
            let text = try await agent.exchange(request) { response, body in
                #expect(try await response.head.status == 200)
                try await body.write(Array("here".utf8))
                try body.finish()
                return try await response.body.collect(upTo: 100)
            }
            #expect(text == Data("here".utf8) && server.connectionCount == 2)
        }
    }

    /// Nobody tells the source that its transfer is no longer wanted, and the server keeps the connection.
    @Test(arguments: [whole, chunked]) func aResponseThatIsNotAcceptedLeavesNothing(answer: String) async throws {
        try await withExchanges { agent, server in
            server.script(path: "/x", [.expectBytes(3), .send(answer)])
            var request = HTTPRequest(.post, "/x")
            request.statusValidation = .codes([201])
            let error = await exchangeError {
                try await agent.exchange(request) { response, body in
                    try await body.write([1, 2, 3])
                    _ = try await response.head
                }
            }
            #expect(error?.code == .invalidStatusCode(200) && error?.response?.body == Array("ok".utf8))
            try await server.waitForOpenConnections(atMost: 0)
            #expect(await eventually { agent.statistics.running == 0 })
        }
    }

    @Test func anAcceptedRefusalStopsTheWriter() async throws {
        try await withExchanges { agent, server in
            let no = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
            server.script(path: "/x", [.expectBytes(3), .send(no)])
            var request = Full(path: "/x")
            request.method = .post
            let refused = await exchangeError {
                try await agent.exchange(request) { _, body in try await DuplexEndTests.writeOn(body) }
            }
            #expect(refused?.code == .invalidStatusCode(413))
            #expect(refused?.response?.body == Array("no".utf8))
            request.statusValidation = .any
            let stopped = await exchangeError {
                try await agent.exchange(request) { response, body in
                    try await body.write([1, 2, 3])
                    #expect(try await response.head.status == 413)
                    try await DuplexEndTests.writeOn(body)
                }
            }
            #expect(stopped?.code == .uploadStopped && stopped?.status == 413)
        }
    }

    @Test func aLargeErrorResponseStopsTheWriterEvenIfNobodyReadsIt() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/x",
                [
                    .expectBytes(3), .send("HTTP/1.1 500 No\r\nContent-Length: 20000000\r\n\r\n"),
                    .pattern(bytes: 20_000_000),
                ])
            var request = Full(path: "/x")
            request.method = .post
            request.statusValidation = .any
            let error = await exchangeError {
                try await agent.exchange(request) { _, body in try await DuplexEndTests.writeOn(body) }
            }
            #expect(error?.code == .uploadStopped && error?.status == 500)
        }
    }

    /// RFC 9110, 10.1.1: the server need not send a 100 before.
    @Test func aResponseAtOnceEndsTheWaitForContinue() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/x",
                [
                    .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .expectBody,
                    .send("2\r\nok\r\n0\r\n\r\n"), .serve,
                ])
            var request = HTTPRequest(.post, "/x", headers: ["Expect": "100-continue"])
            request.timeouts = Timeouts(idle: .seconds(2))
            let text = try await agent.exchange(request) { response, body in
                try await DuplexEndTests.writeOn(body, most: 1_000_000)
                try body.finish()
                return try await response.body.collect(upTo: 10)
            }
            #expect(text == Data("ok".utf8))
        }
    }

    @Test func aResetBeforeTheFirstByteFailsTheWriter() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/x",
                [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .wait("go"), .reset])
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                    let read = try await response.body
                    server.signal("go")
                    #expect(await exchangeError { _ = try await read.collect(upTo: 10) }?.code == .connectionReset)
                    try await DuplexEndTests.writeOn(body)
                }
            }
            #expect(error?.code == .connectionReset)
        }
    }

    @Test func aResetFailsBothSides() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/x",
                [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .wait("go"), .reset])
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                    _ = try await response.head
                    async let sent: Void = DuplexEndTests.writeOn(body)
                    server.signal("go")
                    let read = await exchangeError { _ = try await response.body.collect(upTo: 10) }
                    #expect(read?.code == .connectionReset)
                    try await sent
                }
            }
            #expect(error?.code == .connectionReset)
        }
    }

    @Test func aTruncatedResponseIsAnError() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/x", [.expectBytes(8), .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), .close])
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                    try await body.write([1, 2, 3])
                    _ = try await response.body.collect(upTo: 10)
                }
            }
            #expect(error?.code == .incompleteBody(expected: 9, got: 3))
        }
    }

    @Test func aFailedConnectFailsBothSides() async throws {
        let server = try LoopbackServer()
        server.stop()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.engine = .automatic
        let agent = NetworkAgent(configuration: configuration)
        for writes in [true, false] {
            let error = await exchangeError {
                try await agent.exchange(DuplexTests.echo) { response, body in
                    if writes { try await DuplexEndTests.writeOn(body) } else { _ = try await response.head }
                }
            }
            #expect(error?.code == .connect(.refused))
        }
        await agent.shutdown()
    }

    @Test func aTruncatedEncodedBodyIsAnError() async throws {
        try await withExchanges { agent, server in
            let head: [UInt8] = Array("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 13\r\n\r\n".utf8)
            // The beginning of «hello», and the response is whole without the rest.
            let gzip: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd]
            server.script(path: "/x", [.expectBytes(3), .sendBytes(head + gzip)])
            var request = HTTPRequest(.post, "/x")
            request.timeouts = Timeouts(idle: .milliseconds(500))
            let error = await exchangeError {
                try await agent.exchange(request) { response, body in
                    try await body.write([1, 2, 3])
                    _ = try await response.body.collect(upTo: 100)
                }
            }
            #expect(error?.code == .contentDecoding(.truncated))
        }
    }
}
