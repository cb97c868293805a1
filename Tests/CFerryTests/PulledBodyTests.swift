import CFerry
import FerrySynchronization
import FerryTesting
import Glibc
import Testing

/// A source of bytes for on_pull.
final class PullSource: Sendable {
    private let left: Mutex<[UInt8]>
    private let piece: Int
    private let atEnd: Int
    /// Pauses once, when this many bytes are left.
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
    /// Pulled bodies.
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

        /// A file whose rest is provided as pieces, with descriptors that the core closes.
        private final class Pieces: Sendable {
            private let path: String
            private let state: Mutex<(at: Int, given: [Int32], taken: Bool)>
            private let size: Int
            private let piece: Int

            init(_ bytes: [UInt8], piece: Int, from start: Int = 0) throws {
                var template = Array("/tmp/ferry-pieces-XXXXXX".utf8CString)
                let descriptor = mkstemp(&template)
                try #require(descriptor >= 0)
                path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
                #expect(write(descriptor, bytes, bytes.count) == bytes.count)
                close(descriptor)
                (size, self.piece) = (bytes.count, piece)
                state = Mutex((start, [], false))
            }

            deinit { unlink(path) }

            /// Whether the core ever asked for pieces.
            var wasTaken: Bool { state.withLock { $0.taken } }
            /// Whether no descriptor of the file is open. A number may have been reused for another file since.
            var areClosed: Bool { state.withLock { $0.given.allSatisfy { Self.target(of: $0) != path } } }

            private static func target(of descriptor: Int32) -> String {
                var bytes = [UInt8](repeating: 0, count: 256)
                let length = bytes.withUnsafeMutableBytes {
                    readlink("/proc/self/fd/\(descriptor)", $0.baseAddress!, $0.count)
                }
                return String(decoding: bytes.prefix(max(length, 0)), as: UTF8.self)
            }

            func shorten(to size: Int) { truncate(path, size) }

            func fill(_ space: UnsafeMutableRawBufferPointer, whole: Int? = nil) -> Int {
                state.withLock { state in
                    if ferry_takes_piece(space.baseAddress) != 0 { state.taken = true }
                    let count = min(piece, (whole ?? size) - state.at)
                    if count == 0 { return 0 }
                    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
                    if space.count < MemoryLayout<ferry_piece>.size {  // no room for a piece
                        defer { close(descriptor) }
                        let got = pread(descriptor, space.baseAddress!, min(count, space.count), off_t(state.at))
                        state.at += got
                        return got
                    }
                    space.storeBytes(
                        of: ferry_piece(offset: Int64(state.at), length: UInt64(count), fd: descriptor),
                        as: ferry_piece.self)
                    state.at += count
                    state.given.append(descriptor)
                    return FERRY_PIECE
                }
            }
        }

        /// As over plain TCP, but read and framed differently.
        @Test(arguments: [(false, true), (false, false), (true, true)])
        func piecesOfAFileArrive(isSecure: Bool, isKnown: Bool) async throws {
            let certificate = try ServerCertificate()
            var options = CoreLoop.Options()
            options.caFile = certificate.authorityFile
            let bytes = LoopbackServer.pattern(0..<1_500_000)
            for piece in [1, 700_001, 1_500_000].dropFirst(isSecure ? 1 : 0) {
                let sent = piece == 1 ? Array(bytes.prefix(300)) : bytes
                try await withCore(options, server: isSecure ? .init(certificate: certificate) : .init()) {
                    core, server in
                    let pieces = try Pieces(sent, piece: piece)
                    let request = CoreRequest("PUT", server.baseURL + "/upload").with {
                        $0.body = .pull(isKnown ? UInt64(sent.count) : nil)
                        $0.onPull = { pieces.fill($0) }
                    }
                    let result = try await core.run(request)
                    #expect(result.fault == .ok && result.bodySent >= UInt64(sent.count), "\(result.fault)")
                    let seen = server.requests.first!
                    #expect(seen.bodyLength == UInt64(sent.count) && seen.body == Array(sent.prefix(65_536)))
                    #expect(pieces.areClosed)
                    if isKnown, !isSecure { #expect(pieces.wasTaken == (testedEngine == FERRY_ENGINE_HTTP1)) }
                    #expect(!pieces.wasTaken || (isKnown && !isSecure))
                }
            }
        }

        @Test(arguments: [100, 200_000])
        func aFileThatHasBecomeShorterIsNoWholeBody(size: Int) async throws {
            try await withCore { core, server in
                let pieces = try Pieces(LoopbackServer.pattern(0..<200_000), piece: 200_000)
                pieces.shorten(to: 50)
                let result = try await core.run(
                    CoreRequest("PUT", server.baseURL + "/upload").with {
                        $0.body = .pull(200_000)
                        $0.onPull = { pieces.fill($0) }
                    })
                #expect(result.fault == CoreFault(FERRY_E_UPLOAD_SOURCE) && pieces.areClosed)
                let long = try Pieces(LoopbackServer.pattern(0..<200_000), piece: 200_000)
                let over = try await core.run(
                    CoreRequest("PUT", server.baseURL + "/upload").with {
                        $0.body = .pull(UInt64(size) - 50)
                        $0.onPull = { long.fill($0) }
                    })
                #expect(over.fault == CoreFault(FERRY_E_UPLOAD_SOURCE) && long.areClosed)
            }
        }

        /// The server reads none of it.
        @Test func aCancelClosesThePiece() async throws {
            try await withCore(seesClose: false) { core, server in
                server.script(path: "/stuck", [.expectHead, .stopReading])
                let bytes = [UInt8](repeating: 1, count: 30_000_000)
                let pieces = try Pieces(bytes, piece: bytes.count)
                let id = try core.submit(
                    CoreRequest("PUT", server.baseURL + "/stuck").with {
                        $0.body = .pull(UInt64(bytes.count))
                        $0.onPull = { pieces.fill($0) }
                    })
                try await server.waitForConnections(1)
                core.cancel(id)
                #expect(await core.result(of: id).fault == .cancelled)
                #expect(pieces.areClosed)
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
                let id = try core.submit(put(server, source, length: length).with { $0.idle = 500 })
                try await server.waitForReceivedBytes(50_000)
                // The idle clock is suspended meanwhile, and the source is not asked.
                try await core.pass(milliseconds: 1_200, server)
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
                // Not a close: unread bytes of the upload would make it an RST, which may discard the response.
                server.script(
                    path: "/full", [.send(answer("too much", status: "413 Too Large", "Connection: close")), .keepOpen])
                let source = PullSource(LoopbackServer.pattern(0..<3_000_000))
                let result = try await core.run(put(server, source, length: 3_000_000, path: "/full"))
                #expect(result.fault == .ok && result.status == 413)
            }
        }

        /// The server closes the kept connection while the source has no bytes yet.
        @Test(arguments: [FERRY_ENGINE_HTTP1, FERRY_ENGINE_LIBCURL])
        func aPulledBodyThatHasNotBegunIsSentOnANewConnection(engine: Int) async throws {
            var options = CoreLoop.Options()
            options.engine = engine
            try await withCore(options) { core, server in
                server.script(connection: 1, [.expectHead, .send(answer("ok")), .expectHead, .wait("close"), .close])
                let first = try await core.get(server.baseURL + "/hello")
                #expect(first.text == "ok")
                let source = PullSource([1, 2, 3], pausesAt: 3)
                let request = put(server, source, length: 3).with {
                    $0.flags = .idempotent
                    $0.deadline = 20_000
                }
                let id = try core.submit(request)
                try await server.waitForRequests(2)
                await core.record.until { ($0.events[id] ?? []).contains(.pull) }
                for _ in 0..<20 { await core.turn() }
                server.signal("close")
                let result = await core.result(of: id)
                #expect(result.fault == .ok && result.attempts == 2 && !result.isReused, "\(result.fault)")
                #expect(server.connectionCount == 2 && server.requestCount == 3)
                #expect(server.requests.last?.body == [1, 2, 3])
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
