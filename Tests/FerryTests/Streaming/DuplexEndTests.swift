import Ferry
import FerryTesting
import FoundationEssentials
import Synchronization
import Testing

/// How exchanges end before both sides are done.
@Suite(.timeLimit(.minutes(1))) struct DuplexEndTests {
    private static let piece = [UInt8](repeating: 0x61, count: 64 * 1024)
    private static let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"

    private static func writeOn(_ body: RequestBodyWriter, most: Int = .max) async throws {
        var written = 0
        while written < most {
            try await body.write(piece)
            written += piece.count
        }
    }

    private func error(_ run: () async throws -> Void) async -> RequestError? {
        do {
            try await run()
            Issue.record("it did not fail")
        } catch let error as RequestError {
            return error
        } catch {
            Issue.record("\(error)")
        }
        return nil
    }

    // MARK: By the closure

    @Test func aBodyThatWasNotFinishedIsNeverWhole() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/x", [.expectBody, .mark("whole"), .send(answer("no"))])
            let isWhole = Atomic(false)
            let watch = Task {
                try? await server.waitForMark("whole")
                isWhole.store(true, ordering: .relaxed)
            }
            await #expect(throws: Oops.self) {
                try await agent.exchange(HTTPRequest(.post, "/x")) { _, body in
                    try await body.write([1, 2, 3])
                    try await server.waitForReceivedBytes(100)
                    throw Oops()
                }
            }
            try await server.waitForOpenConnections(atMost: 0)
            try await agent.exchange(HTTPRequest(.post, "/x")) { _, body in
                try await body.write([1, 2, 3])
                try await server.waitForRequests(2)
            }
            try await server.waitForOpenConnections(atMost: 0)
            let wasWhole = isWhole.load(ordering: .relaxed)
            #expect(!wasWhole)
            watch.cancel()
            server.stop()
        }
    }

    @Test func aClosureThatReturnsAtOnceLeavesNothing() async throws {
        try await withExchanges { agent, server in
            let number = try await agent.exchange(DuplexTests.echo) { _, _ in 7 }
            #expect(number == 7)
            try await server.waitForOpenConnections(atMost: 0)
            try await agent.exchange(DuplexTests.echo) { response, _ in _ = try await response.head }
            try await server.waitForOpenConnections(atMost: 0)
            #expect(await eventually { agent.statistics.running == 0 })
        }
    }

    @Test func theRunEndsWithTheClosure() async throws {
        let ends = Ends()
        try await withExchanges({ $0.observers = [ends] }) { agent, _ in
            try await agent.exchange(DuplexTests.echo) { response, body in
                try await body.write([1])
                try body.finish()
                #expect(try await response.body.collect(upTo: 1).count == 1)
                #expect(ends.all.isEmpty)
            }
            #expect(ends.all == ["finished 200"])
            await #expect(throws: Oops.self) {
                try await agent.exchange(DuplexTests.echo) { response, _ in
                    _ = try await response.head
                    throw Oops()
                }
            }
            await #expect(throws: Oops.self) {
                try await agent.exchange(DuplexTests.echo) { _, _ in throw Oops() }
            }
            let error = await error {
                try await agent.exchange(HTTPRequest(.post, "/status/404")) { response, body in
                    try body.finish()
                    _ = try await response.head
                }
            }
            #expect(error?.code == .invalidStatusCode(404))
            #expect(
                ends.all.map { String($0.prefix(26)) } == [
                    "finished 200", "cancelled", "cancelled", "failed: invalidStatusCode(",
                ])
        }
    }

    // MARK: By cancelling

    enum Point: CaseIterable, Sendable {
        case beforeTheHead, writing, reading, between
    }

    @Test(arguments: Point.allCases) func itIsCancelledAtAnyPoint(point: Point) async throws {
        try await withExchanges { agent, server in
            server.script(path: "/silent", [.mark("there"), .stopReading])
            server.script(
                path: "/open", [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .mark("there")])
            let task = Task {
                let path = point == .beforeTheHead || point == .writing ? "/silent" : "/open"
                try await agent.exchange(HTTPRequest(.post, path)) { response, body in
                    switch point {
                    case .beforeTheHead: _ = try await response.head
                    case .writing: try await Self.writeOn(body)
                    case .reading: _ = try await response.body.collect(upTo: 1)
                    case .between:
                        _ = try await response.head
                        await AsyncStream<Void> { _ in }.finished()
                        try await Self.writeOn(body)
                    }
                }
            }
            try await server.waitForMark("there")
            task.cancel()
            let error = await error { try await task.value }
            #expect(error?.code == .cancelled)
            try await server.waitForOpenConnections(atMost: 0)
        }
    }

    @Test func aTaskThatIsCancelledBeforeSendsNothing() async throws {
        try await withExchanges { agent, server in
            let task = Task {
                await AsyncStream<Void> { _ in }.finished()
                try await agent.exchange(DuplexTests.echo) { response, _ in _ = try await response.head }
            }
            task.cancel()
            #expect(await error { try await task.value }?.code == .cancelled)
            #expect(server.requestCount == 0)
        }
    }

    @Test func aChildThatIsCancelledWhileItWritesEndsTheExchange() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/silent", [.mark("there"), .stopReading])
            let error = await error {
                try await agent.exchange(HTTPRequest(.post, "/silent")) { response, body in
                    async let _: Void = Self.writeOn(body)
                    try await server.waitForMark("there")
                    // Leaving the scope cancels it.
                    throw RequestError(.decoding, message: "enough")
                }
            }
            #expect(error?.code == .decoding)
            try await server.waitForOpenConnections(atMost: 0)
        }
    }

    // MARK: By the server

    @Test(arguments: [whole, chunked]) func theEndOfTheResponseIsSeenWhileTheRequestGoesOn(answer: String) async throws
    {
        try await withExchanges { agent, server in
            server.script(path: "/x", [.expectBytes(3), .send(answer), .wait("go"), .close])
            let error = await error {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                    try await body.write([1, 2, 3])
                    let read = try await response.body
                    #expect(try await read.collect(upTo: 10) == Data("ok".utf8))
                    #expect(read.trailers["X-T"] == (answer == Self.whole ? nil : "1"))
                    server.signal("go")
                    try await Self.writeOn(body)
                }
            }
            #expect(error?.code == .uploadStopped)
            #expect(error?.response?.status == 200)
        }
    }

    @Test(arguments: [whole, chunked]) func aClosureMayLeaveTheRestUnsent(answer: String) async throws {
        let ends = Ends()
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

    @Test func aServerThatReadsOnBehindItsResponseGetsAll() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/x", [.send(Self.whole), .expectBody, .mark("whole"), .serve])
            try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                #expect(try await response.body.collect(upTo: 10) == Data("ok".utf8))
                try await Self.writeOn(body, most: 10_000_000)
                try body.finish()
            }
            try await server.waitForMark("whole")
            #expect(try await agent.send(Get("/hello")).status == 200)
            #expect(server.connectionCount == 1, "the connection is kept")
        }
    }

    @Test func anAcceptedRefusalStopsTheWriter() async throws {
        try await withExchanges { agent, server in
            let no = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
            server.script(path: "/x", [.expectBytes(3), .send(no)])
            var request = Full(path: "/x")
            request.method = .post
            let refused = await error {
                try await agent.exchange(request) { _, body in try await Self.writeOn(body) }
            }
            #expect(refused?.code == .invalidStatusCode(413))
            #expect(refused?.response?.body == Array("no".utf8))
            request.statusValidation = .any
            let stopped = await error {
                try await agent.exchange(request) { response, body in
                    #expect(try await response.head.status == 413)
                    try await Self.writeOn(body)
                }
            }
            #expect(stopped?.code == .uploadStopped && stopped?.status == 413)
        }
    }

    @Test func aLargeRefusalStopsTheWriterThoughNobodyReadsIt() async throws {
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
            let error = await error {
                try await agent.exchange(request) { _, body in try await Self.writeOn(body) }
            }
            #expect(error?.code == .uploadStopped && error?.status == 500)
        }
    }

    @Test func aResetFailsBothSides() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/x",
                [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .wait("go"), .reset])
            let error = await error {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                    _ = try await response.head
                    async let sent: Void = Self.writeOn(body)
                    server.signal("go")
                    let read = await self.error { _ = try await response.body.collect(upTo: 10) }
                    #expect(read?.code == .connectionReset)
                    try await sent
                }
            }
            #expect(error?.code == .connectionReset)
        }
    }

    @Test func aResponseThatIsCutShortIsAFault() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/x", [.expectBytes(8), .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), .close])
            let error = await error {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, body in
                    try await body.write([1, 2, 3])
                    _ = try await response.body.collect(upTo: 10)
                }
            }
            #expect(error?.code == .incompleteBody(expected: 9, got: 3))
        }
    }

    @Test func noConnectionFailsBothSides() async throws {
        let server = try LoopbackServer()
        server.stop()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        for writes in [true, false] {
            let error = await error {
                try await agent.exchange(DuplexTests.echo) { response, body in
                    if writes { try await Self.writeOn(body) } else { _ = try await response.head }
                }
            }
            #expect(error?.code == .connect(.refused))
        }
        await agent.shutdown()
    }

    // MARK: By time

    @Test func theDeadlineEndsAWriterThatNobodyReads() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/silent", [.stopReading])
            var request = HTTPRequest(.post, "/silent")
            request.deadline = .milliseconds(300)
            let written = Atomic(0)
            let error = await error {
                try await agent.exchange(request) { _, body in
                    while true {
                        try await body.write(Self.piece)
                        written.add(Self.piece.count, ordering: .relaxed)
                    }
                }
            }
            #expect(error?.code == .timeout(.deadline))
            let count = written.load(ordering: .relaxed)
            #expect(count < 32_000_000, "what the sockets hold, and no more")
        }
    }

    @Test func theDeadlineEndsAReaderThatRests() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/much",
                [.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"), .pattern(bytes: 1_000_000_000)])
            var request = HTTPRequest(.post, "/much")
            request.deadline = .milliseconds(300)
            let error = await error {
                try await agent.exchange(request) { response, body in
                    _ = try await response.head
                    while true { try await body.write([1]) }
                }
            }
            #expect(error?.code == .timeout(.deadline))
            #expect((error?.bytesReceived ?? 0) < 32_000_000, "what the sockets hold, and no more")
        }
    }

    @Test func silenceOnBothSidesIsATimeout() async throws {
        try await withExchanges({ $0.timeouts.idle = .milliseconds(200) }) { agent, server in
            server.script(
                path: "/x", [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")])
            let error = await error {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, _ in
                    _ = try await response.body.collect(upTo: 10)
                }
            }
            #expect(error?.code == .timeout(.read))
        }
    }

    @Test func theShutdownEndsIt() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/silent", [.mark("there"), .stopReading])
            async let ended = error {
                try await agent.exchange(HTTPRequest(.post, "/silent")) { _, body in try await Self.writeOn(body) }
            }
            try await server.waitForMark("there")
            await agent.shutdown(grace: .zero)
            #expect(await ended?.code == .shutdown)
        }
    }
}

/// Notes how runs end.
private final class Ends: RequestObserver {
    private let outcomes = Mutex<[String]>([])

    var all: [String] { outcomes.withLock { $0 } }

    func didStop(_ run: RunInfo, _ outcome: RunOutcome) { outcomes.withLock { $0.append("\(outcome)") } }
}
