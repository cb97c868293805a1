import CFerry
import FerryTesting
import Synchronization
import Testing

/// A source of bytes for on_pull.
final class PullSource: Sendable {
    private let left: Mutex<[UInt8]>
    private let piece: Int
    private let atEnd: Int
    /// Pauses once, when so many bytes are left.
    private let pausesAt: Mutex<Int?>

    init(_ bytes: [UInt8], piece: Int = .max, atEnd: Int = 0, pausesAt: Int? = nil) {
        left = Mutex(bytes)
        self.piece = piece
        self.atEnd = atEnd
        self.pausesAt = Mutex(pausesAt)
    }

    func fill(_ space: UnsafeMutableRawBufferPointer) -> Int {
        left.withLock { left in
            let pauses = pausesAt.withLock { at in
                guard let mark = at, left.count <= mark else { return false }
                at = nil
                return true
            }
            if pauses { return FERRY_PAUSE }
            if left.isEmpty { return atEnd }
            let count = min(left.count, space.count, piece)
            space.copyBytes(from: left.prefix(count))
            left.removeFirst(count)
            return count
        }
    }
}

extension CoreTests {
    /// Bodies that are pulled.
    @Suite struct PulledBodies {
        private func put(_ server: LoopbackServer, _ source: PullSource, length: UInt64?, path: String = "/upload")
            -> CoreRequest
        {
            CoreRequest("PUT", server.baseURL + path).with {
                $0.body = .pull(length)
                $0.onPull = { source.fill($0) }
            }
        }

        @Test(arguments: [0, 1, 100_000, 1_000_000])
        func knownLengthIsAnnouncedAndArrives(size: Int) async throws {
            try await withCore { core, server in
                let bytes = LoopbackServer.pattern(0..<size)
                let request = put(server, PullSource(bytes, piece: 7_777), length: UInt64(size))
                let result = try await core.run(request)
                #expect(result.fault == .ok && result.bodySent == UInt64(size))
                let seen = server.requests.first!
                #expect(seen.headers.fields.map(\.name) == ["Host", "Content-Length"])
                #expect(seen.headers["Content-Length"] == "\(size)")
                #expect(seen.bodyLength == UInt64(size) && seen.body == Array(bytes.prefix(65_536)))
            }
        }

        @Test(arguments: [0, 1, 100_000])
        func unknownLengthIsChunked(size: Int) async throws {
            try await withCore { core, server in
                let bytes = LoopbackServer.pattern(0..<size)
                let result = try await core.run(put(server, PullSource(bytes, piece: 7_777), length: nil))
                #expect(result.fault == .ok)
                let seen = server.requests.first!
                #expect(seen.headers["Transfer-Encoding"] == "chunked" && seen.headers["Content-Length"] == nil)
                #expect(seen.headers["Expect"] == nil && seen.headers["Content-Type"] == nil)
                #expect(seen.bodyLength == UInt64(size) && seen.body == Array(bytes.prefix(65_536)))
            }
        }

        @Test(arguments: [nil, 100_000])
        func pauseWaitsForResume(length: UInt64?) async throws {
            try await withCore { core, server in
                let source = PullSource(LoopbackServer.pattern(0..<100_000), piece: 10_000, pausesAt: 50_000)
                let id = try core.submit(put(server, source, length: length).with { $0.idle = 100 })
                try await server.waitForReceivedBytes(50_000)
                // The idle clock stands still meanwhile, and nothing is asked for.
                try await core.pass(milliseconds: 300, server)
                #expect(core.events(id).last == .pull && core.record.read { $0.results[id] } == nil)
                core.resume(id)
                let result = await core.result(of: id)
                #expect(result.fault == .ok)
                #expect(server.requests.first { $0.path == "/upload" }?.bodyLength == 100_000)
            }
        }

        @Test func aResumeOfSendingLeavesTheAnswerHeld() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/both",
                    [.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), .expectBody, .mark("all"), .serve])
                let source = PullSource(LoopbackServer.pattern(0..<100_000), piece: 10_000, pausesAt: 50_000)
                let request = put(server, source, length: 100_000, path: "/both").with {
                    $0.answer = .stream
                    $0.flags.insert(.holdBody)
                }
                let id = try core.submit(request)
                await core.untilHead(id)
                await core.record.until { state in (state.events[id] ?? []).count { $0 == .pull } >= 6 }
                core.resumeSending(id)
                try await server.waitForMark("all")
                for _ in 0..<20 { await core.turn() }
                #expect(core.streamed(id).isEmpty)
                core.resume(id)
                let result = await core.result(of: id)
                #expect(result.fault == .ok)
                #expect(core.streamed(id) == Array("hello".utf8))
            }
        }

        @Test(arguments: [nil, 100_000])
        func aSourceThatFailsLeavesAnAbortedMessage(length: UInt64?) async throws {
            try await withCore { core, server in
                let source = PullSource(Array(repeating: 1, count: 50_000), atEnd: FERRY_ABORT)
                server.script(path: "/script", [.expectBody, .mark("whole"), .send(answer("no"))])
                let result = try await core.run(put(server, source, length: length, path: "/script"))
                #expect(result.fault == CoreFault(FERRY_E_UPLOAD_SOURCE))
                #expect(result.isProcessed && result.attempts == 1)
                try await server.waitForRequests(1)
                try await server.waitForOpenConnections(atMost: 0)
                #expect(server.requests.first!.bodyLength <= 50_000)
            }
        }

        @Test func aSourceThatEndsEarlyLeavesAnAbortedMessage() async throws {
            try await withCore { core, server in
                let source = PullSource(Array(repeating: 1, count: 50_000))
                let result = try await core.run(put(server, source, length: 60_000))
                #expect(result.fault == CoreFault(FERRY_E_UPLOAD_SOURCE))
                try await server.waitForRequests(1)
                try await server.waitForOpenConnections(atMost: 0)
                #expect(server.requests.first!.bodyLength <= 50_000)
            }
        }

        @Test func aSourceIsNotAskedBeyondItsLength() async throws {
            try await withCore { core, server in
                let source = PullSource(Array(repeating: 1, count: 50_000))
                let result = try await core.run(put(server, source, length: 10))
                #expect(result.fault == .ok)
                #expect(server.requests.first!.bodyLength == 10)
            }
        }

        @Test func cancelWhileTheSourceIsPaused() async throws {
            try await withCore { core, server in
                let source = PullSource(LoopbackServer.pattern(0..<100), piece: 50, pausesAt: 50)
                let id = try core.submit(put(server, source, length: 100))
                await core.record.until { ($0.events[id] ?? []).filter { $0 == .pull }.count == 2 }
                core.cancel(id)
                let result = await core.result(of: id)
                #expect(result.fault == .cancelled && result.phase == FERRY_PHASE_SEND)
            }
        }

        @Test func anAnswerBeforeTheEndOfTheUploadIsDelivered() async throws {
            try await withCore { core, server in
                // Not a close: what of the upload lay unread would make it an RST, and that may throw the answer away.
                server.script(
                    path: "/full", [.send(answer("too much", status: "413 Too Large", "Connection: close")), .keepOpen])
                let source = PullSource(LoopbackServer.pattern(0..<3_000_000))
                let result = try await core.run(put(server, source, length: 3_000_000, path: "/full"))
                #expect(result.fault == .ok && result.status == 413)
            }
        }

        @Test func aPulledBodyIsNeverSentTwice() async throws {
            try await withCore { core, server in
                server.script(path: "/die", [.expectBody, .drop])
                _ = try await core.get(server.baseURL + "/hello")
                let source = PullSource(LoopbackServer.pattern(0..<10))
                let request = put(server, source, length: 10, path: "/die").with { $0.flags = .idempotent }
                let result = try await core.run(request)
                #expect(result.fault == CoreFault(FERRY_E_CONNECTION_CLOSED))
                #expect(result.isProcessed)
                #expect(server.requestCount == 2)
            }
        }
    }
}
