import Ferry
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// How exchanges end before both sides are done.
@Suite(.timeLimit(.minutes(1))) struct DuplexEndTests {
    static let piece = [UInt8](repeating: 0x61, count: 64 * 1024)
    static func writeOn(_ body: RequestBodyWriter, most: Int = .max) async throws {
        var written = 0
        while written < most {
            try await body.write(piece)
            written += piece.count
        }
    }

    // MARK: By the closure

    @Test func anUnfinishedBodyNeverLooksComplete() async throws {
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
        let ends = RunEnds()
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
            let error = await exchangeError {
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
            server.script(path: "/silent", [.mark("there"), .wait("over"), .expectClose])
            server.script(
                path: "/open",
                [
                    .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), .mark("there"), .wait("over"),
                    .expectClose,
                ])
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
            let error = await exchangeError { try await task.value }
            #expect(error?.code == .cancelled)
        }
    }

    @Test func aTaskThatIsCancelledBeforeSendsNothing() async throws {
        try await withExchanges { agent, server in
            let task = Task {
                await AsyncStream<Void> { _ in }.finished()
                try await agent.exchange(DuplexTests.echo) { response, _ in _ = try await response.head }
            }
            task.cancel()
            #expect(await exchangeError { try await task.value }?.code == .cancelled)
            #expect(server.requestCount == 0)
        }
    }

    @Test func aChildThatIsCancelledWhileItWritesEndsTheExchange() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/silent", [.mark("there"), .wait("over"), .expectClose])
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/silent")) { response, body in
                    async let _: Void = Self.writeOn(body)
                    try await server.waitForMark("there")
                    // Leaving the scope cancels it.
                    throw RequestError(.decoding, message: "enough")
                }
            }
            #expect(error?.code == .decoding)
        }
    }

    // MARK: By a refusal

    /// A body of this length would be read, to keep the connection.
    @Test(arguments: ["500 No", "307 Moved\r\nLocation: /x"]) func aRefusedExchangeLeavesNothing(
        status: String
    ) async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/x",
                [.expectBytes(3), .send("HTTP/1.1 \(status)\r\nContent-Length: 50000\r\n\r\n"), .pattern(bytes: 5_000)])
            var request = HTTPRequest(.post, "/x")
            request.timeouts = Timeouts(idle: .milliseconds(500))
            request.deadline = .seconds(20)
            let error = await exchangeError {
                try await agent.exchange(request) { response, body in
                    try await body.write([1, 2, 3])
                    _ = try await response.head
                }
            }
            #expect(error?.code == (status.hasPrefix("5") ? .invalidStatusCode(500) : .bodyNotReplayable))
            // The loop counts at the end of its turn.
            #expect(await eventually { agent.statistics.running == 0 })
        }
    }

    /// The writer's bytes would have no reader.
    @Test func anAdapterThatReplacesTheBodyIsRefused() async throws {
        for body in [RequestBody.string("other"), nil] {
            try await withExchanges({ $0.adapters = [BodyAdapter { _ in body }] }) { agent, server in
                var request = DuplexTests.echo
                request.deadline = .seconds(10)
                let error = await exchangeError {
                    try await agent.exchange(request) { _, body in try await Self.writeOn(body, most: 10_000_000) }
                }
                #expect(error?.code == .invalidRequest(.body))
                #expect(error?.message == "an adapter has replaced the body of an exchange", "\(error?.message ?? "")")
                #expect(server.requestCount == 0)
            }
        }
    }

    @Test func anAdapterMayCompressTheBodyAndAddTrailers() async throws {
        let adapter = BodyAdapter { $0?.compressed(.gzip).withTrailers(["X-B"]) { ["X-B": "2"] } }
        try await withExchanges({ $0.adapters = [adapter] }) { agent, server in
            server.script(path: "/sum", [.expectBody, .send(answer("ok")), .serve])
            try await agent.exchange(HTTPRequest(.post, "/sum"), trailers: ["X-A"]) { response, body in
                try await body.write(Array("abc".utf8))
                try body.finish(trailers: ["X-A": "1"])
                #expect(try await response.head.status == 200)
            }
            let headers = try #require(server.requests.first).headers
            #expect(headers["Content-Encoding"] == "gzip")
            #expect(headers.values(of: "Trailer").joined(separator: ", ") == "X-A, X-B", "\(headers)")
        }
    }

    // MARK: By time

    /// The writer waits for the server, which waits for the reader, who waits for the writer.
    @Test func aWriterThatNobodyReadsForIsIdle() async throws {
        try await withExchanges({ $0.timeouts.idle = .milliseconds(300) }) { agent, _ in
            var request = DuplexTests.echo
            request.deadline = .seconds(20)
            let error = await exchangeError {
                try await agent.exchange(request) { _, body in try await Self.writeOn(body) }
            }
            #expect(error?.code == .timeout(.read))
        }
    }

    @Test func theDeadlineEndsAWriterThatNobodyReads() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/silent", [.wait("over"), .expectClose])
            var request = HTTPRequest(.post, "/silent")
            request.deadline = .milliseconds(300)
            let written = Atomic(0)
            let error = await exchangeError {
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

    @Test func theDeadlineEndsAnIdleReader() async throws {
        try await withExchanges { agent, server in
            server.script(
                path: "/much",
                [.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"), .pattern(bytes: 1_000_000_000)])
            var request = HTTPRequest(.post, "/much")
            request.deadline = .milliseconds(300)
            let error = await exchangeError {
                try await agent.exchange(request) { response, body in
                    _ = try await response.head
                    while true { try await body.write([1]) }
                }
            }
            #expect(error?.code == .timeout(.deadline))
            #expect((error?.bytesReceived ?? 0) < 32_000_000, "what the sockets hold, and no more")
        }
    }

    @Test func silenceInBothDirectionsIsATimeout() async throws {
        try await withExchanges({ $0.timeouts.idle = .milliseconds(600) }) { agent, server in
            server.script(
                path: "/x", [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")])
            let error = await exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/x")) { response, _ in
                    _ = try await response.body.collect(upTo: 10)
                }
            }
            #expect(error?.code == .timeout(.read))
        }
    }

    @Test func theShutdownEndsTheExchange() async throws {
        try await withExchanges { agent, server in
            server.script(path: "/silent", [.mark("there"), .wait("over"), .expectClose])
            async let ended = exchangeError {
                try await agent.exchange(HTTPRequest(.post, "/silent")) { _, body in try await Self.writeOn(body) }
            }
            try await server.waitForMark("there")
            await agent.shutdown(grace: .zero)
            #expect(await ended?.code == .shutdown)
        }
    }
}

/// Sets the body of each request.
struct BodyAdapter: RequestAdapter {
    let change: @Sendable (RequestBody?) -> RequestBody?

    func adapt(_ request: inout OutgoingRequest, of run: RunInfo) { request.body = change(request.body) }
}
