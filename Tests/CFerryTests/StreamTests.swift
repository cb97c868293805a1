import CFerry
import FerrySynchronization
import FerryTesting
import Foundation
import Testing

/// Pauses at chosen pieces.
final class Pauses: Sendable {
    private let count = Atomic(0)
    private let isPausing: @Sendable (Int) -> Bool

    /// `isPausing` is called with the number of the piece, from 1.
    init(_ isPausing: @escaping @Sendable (Int) -> Bool) { self.isPausing = isPausing }

    func onBody(_: [UInt8]) -> Int {
        isPausing(count.add(1, ordering: .relaxed).newValue) ? FERRY_PAUSE : FERRY_CONTINUE
    }

    var pieces: Int { count.load(ordering: .relaxed) }
}

extension CoreTests {
    /// Bodies that are delivered as they arrive.
    @Suite struct Streams {
        private func stream(_ url: String, _ pauses: Pauses? = nil) -> CoreRequest {
            CoreRequest("GET", url).with {
                $0.answer = .stream
                $0.flags = [.decode, .notifyStart]
                if let pauses { $0.onBody = { pauses.onBody($0) } }
            }
        }

        @Test func startHeadPiecesAndResultComeInThisOrder() async throws {
            try await withCore { core, server in
                let id = try core.submit(stream(server.baseURL + "/chunked/100000"))
                let result = await core.result(of: id)
                #expect(result.fault == .ok && result.body == nil && result.bodyLength == 100_000)
                #expect(core.streamed(id) == LoopbackServer.pattern(0..<100_000))
                let events = core.events(id)
                #expect(events.prefix(2) == [.started, .head(status: 200)] && events.last == .finished)
                #expect(events.dropFirst(2).dropLast().allSatisfy { if case .body = $0 { true } else { false } })
                let head = core.record.read { $0.heads[id] }
                #expect(head?.values("Transfer-Encoding") == ["chunked"] && head?.contentLength == -1)
            }
        }

        @Test func aHeadAloneIsToldOnce() async throws {
            try await withCore { core, server in
                for path in ["/status/204", "/bytes/0", "/status/404"] {
                    let id = try core.submit(stream(server.baseURL + path))
                    _ = await core.result(of: id)
                    let heads = core.events(id).filter { if case .head = $0 { true } else { false } }
                    #expect(heads.count == 1, "\(path)")
                }
            }
        }

        @Test(arguments: [
            "/bytes/2000000", "/chunked/2000000", "/until-close/2000000", "/gzip/2000000", "/deflate/2000000?raw=1",
        ])
        func pauseAndResumeAtEveryPiece(path: String) async throws {
            try await withCore { core, server in
                let pauses = Pauses { _ in true }
                let id = try core.submit(
                    stream(server.baseURL + path).with { request in
                        request.onBody = { bytes in
                            let answer = pauses.onBody(bytes)
                            Task { core.resume(1) }  // from another thread, often before the pause is known
                            return answer
                        }
                    })
                #expect(id == 1)
                let result = await core.result(of: id)
                #expect(result.fault == .ok)
                #expect(core.streamed(id) == LoopbackServer.pattern(0..<2_000_000))
            }
        }

        @Test func aPausedReceiverHearsNothing() async throws {
            try await withCore { core, server in
                let id = try core.submit(stream(server.baseURL + "/bytes/20000000", Pauses { $0 == 1 }))
                await core.untilBody(id)
                let length = core.streamed(id).count
                for _ in 0..<20 { await core.turn() }
                #expect(core.streamed(id).count == length)
                #expect(server.openConnectionCount == 1)
                core.resume(id)
                let result = await core.result(of: id)
                #expect(result.fault == .ok && core.streamed(id).count == 20_000_000)
            }
        }

        @Test func pauseInTheMiddleOfAnInflatedPiece() async throws {
            try await withCore { core, server in
                // 200 KB of zeros are a few hundred bytes on the wire: one read of libcurl's, four pieces of ours.
                let id = try core.submit(stream(server.baseURL + "/gzip/200000?zeros=1", Pauses { _ in true }))
                var seen = 0
                while seen < 200_000 {
                    await core.record.until { [seen] in ($0.streamed[id] ?? []).count > seen }
                    seen = core.streamed(id).count
                    #expect(core.record.read { $0.results[id] } == nil || seen == 200_000)
                    core.resume(id)
                }
                let result = await core.result(of: id)
                #expect(result.fault == .ok && result.bodyLength == 200_000)
                #expect(core.streamed(id) == Array(repeating: 0, count: 200_000))
            }
        }

        @Test func serverDoneWhilePausedInsideAnInflatedPiece() async throws {
            try await withCore { core, server in
                let id = try core.submit(stream(server.baseURL + "/gzip/200000?zeros=1", Pauses { $0 == 1 }))
                await core.untilBody(id)
                for _ in 0..<10 { await core.turn() }
                #expect(core.streamed(id).count < 200_000)
                let hello = try await core.get(server.baseURL + "/hello")
                #expect(hello.text == "Hello, ferry")
                core.resume(id)
                let seen1 = await core.result(of: id)
                #expect(seen1.fault == .ok)
                #expect(core.streamed(id).count == 200_000)
            }
        }

        @Test func cancelWhilePausedWithInflatedBytesHeld() async throws {
            try await withCore { core, server in
                for path in ["/gzip/200000?zeros=1", "/bytes/20000000"] {
                    let id = try core.submit(stream(server.baseURL + path, Pauses { $0 == 1 }))
                    await core.untilBody(id)
                    for _ in 0..<20 { await core.turn() }
                    core.cancel(id)
                    let result = await core.result(of: id)
                    #expect(result.fault == .cancelled && result.phase == FERRY_PHASE_BODY && result.status == 200)
                }
            }
        }

        @Test func theIdleClockStandsStillWhileWePause() async throws {
            try await withCore { core, server in
                let id = try core.submit(
                    stream(server.baseURL + "/bytes/5000000", Pauses { $0 == 1 }).with {
                        $0.idle = 500
                        $0.lowSpeedBytes = 1_000_000
                        $0.lowSpeedTime = 500
                    })
                await core.untilBody(id)
                try await core.pass(milliseconds: 1_200, server)  // longer than the limits
                #expect(core.record.read { $0.results[id] } == nil)
                core.resume(id)
                let seen2 = await core.result(of: id)
                #expect(seen2.fault == .ok)
            }
        }

        @Test func aLimitBrokenByTheBytesLibcurlHeldEndsAtTheResume() async throws {
            try await withCore { core, server in
                server.script(
                    path: "/hold",
                    [
                        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), .wait("more"),
                        .send("a\r\nhelloworld\r\n"), .mark("sent"), .keepOpen,
                    ])
                let id = try core.submit(
                    stream(server.baseURL + "/hold", Pauses { $0 == 1 }).with {
                        $0.maxBody = 10; $0.total = 10_000
                    })
                await core.untilBody(id)
                server.signal("more")
                try await server.waitForMark("sent")
                for _ in 0..<50 { await core.turn() }  // libcurl has read it and was told to keep it
                core.resume(id)
                let result = await core.result(of: id)
                #expect(result.fault == CoreFault(FERRY_E_BODY_TOO_LARGE))
                #expect(core.streamed(id) == Array("hello".utf8))
            }
        }

        @Test func aDescriptorGetsTheBody() async throws {
            try await withCore { core, server in
                let path = FileManager.default.temporaryDirectory.path + "/ferry-core-\(UUID().uuidString)"
                let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
                #expect(write(descriptor, "head:", 5) == 5)
                defer {
                    close(descriptor)
                    unlink(path)
                }
                let request = CoreRequest("GET", server.baseURL + "/gzip/1000000").with {
                    $0.answer = .descriptor(descriptor)
                    $0.flags = [.decode, .notifyHead]
                }
                let id = try core.submit(request)
                let result = await core.result(of: id)
                #expect(result.fault == .ok && result.bodyLength == 1_000_000 && result.body == nil)
                #expect(core.events(id).contains(.head(status: 200)))
                let found = FileManager.default.contents(atPath: path) ?? Data()
                #expect(Array(found) == Array("head:".utf8) + LoopbackServer.pattern(0..<1_000_000))
            }
        }

        @Test func aFullDescriptorIsAFaultOfTheFile() async throws {
            try await withCore { core, server in
                let descriptor = open("/dev/full", O_WRONLY)
                defer { close(descriptor) }
                let result = try await core.run(
                    CoreRequest("GET", server.baseURL + "/bytes/100000").with { $0.answer = .descriptor(descriptor) })
                #expect(result.fault == CoreFault(FERRY_E_FILE) && result.osErrno == ENOSPC)
                let closed = try await core.run(
                    CoreRequest("GET", server.baseURL + "/bytes/100000").with { $0.answer = .descriptor(-1) })
                #expect(closed.fault == CoreFault(FERRY_E_FILE) && closed.osErrno == EBADF)
            }
        }
    }
}
