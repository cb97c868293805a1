import Dispatch
import FerrySynchronization
import FerryTesting
import FerryTransport
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The count of bytes sent, and when it is reported.
@Suite(.timeLimit(.minutes(2))) struct UploadMeterTests {
    /// The reports.
    private final class Reports: Sendable {
        private let list = Mutex<[UploadProgress]>([])

        var all: [UploadProgress] { list.withLock { $0 } }
        var sent: [UInt64] { all.map(\.bytesSent) }

        func take(_ progress: UploadProgress) { list.withLock { $0.append(progress) } }
    }

    private let queue = DispatchQueue(label: "ferry.test.meter")

    private func settled() { queue.sync {} }

    @Test func reportsComeAtMostEveryFiftyMillisecondsAndForTheLastByte() {
        let reports = Reports()
        let meter = UploadMeter(on: queue) { reports.take($0) }
        var now = UploadMeter.interval
        meter.begin(total: 100, now: now)
        settled()
        for _ in 0..<99 {
            now += UploadMeter.interval / 10
            meter.count(.bytes(1), now: now)
            settled()
        }
        #expect(reports.sent == [0] + (1...9).map { $0 * 10 })
        meter.count(.bytes(1), now: now)
        settled()
        #expect(reports.sent.last == 100 && reports.sent.count == 11)
        #expect(reports.all.last?.fraction == 1)
        #expect(meter.progress == reports.all.last)
    }

    @Test func aBlockedQueueGetsOneReportAndThatSaysAll() {
        let reports = Reports()
        let meter = UploadMeter(on: queue) { reports.take($0) }
        queue.suspend()
        meter.begin(total: 10, now: 1)
        for index in 1...10 { meter.count(.bytes(1), now: UInt64(index) * UploadMeter.interval) }
        queue.resume()
        settled()
        #expect(reports.sent == [10])
    }

    @Test func anUnknownLengthIsKnownAtTheEnd() {
        let reports = Reports()
        let meter = UploadMeter(on: queue) { reports.take($0) }
        meter.begin(total: nil, now: 1)
        settled()
        meter.count(.bytes(7), now: 2)
        #expect(meter.progress.bytesToSend == nil && meter.progress.fraction == nil)
        meter.count(.later, now: 3)
        meter.count(.end, now: 4)
        settled()
        #expect(reports.sent == [0, 7])
        #expect(reports.all.last?.bytesToSend == 7)
    }

    @Test func aBodyInMemoryCountsWhenAllOfItHasLeft() {
        let reports = Reports()
        let meter = UploadMeter(on: queue) { reports.take($0) }
        meter.begin(total: 7, now: 1)
        meter.end(sent: 3, now: 2)
        settled()
        #expect(reports.sent == [0])
        meter.end(sent: 7, now: 3)
        meter.end(sent: 7, now: 4)
        settled()
        #expect(reports.sent == [0, 7])
    }

    @Test func anotherAttemptBeginsAnew() {
        let meter = UploadMeter(on: queue)
        meter.begin(total: 10, now: 1)
        meter.count(.bytes(10), now: 2)
        meter.begin(total: 10, now: 3)
        #expect(meter.progress == UploadProgress(bytesSent: 0, bytesToSend: 10))
    }

    @Test func anAttemptWithoutABodyLeavesTheCountAlone() {
        let reports = Reports()
        let meter = UploadMeter(on: queue) { reports.take($0) }
        meter.begin(total: 0, hasBody: false, now: 1)
        settled()
        meter.begin(total: 10, now: 2)
        settled()
        meter.count(.bytes(10), now: 3)
        meter.begin(total: 0, hasBody: false, now: 4)
        settled()
        #expect(reports.sent == [0, 0, 10])
        #expect(meter.progress == UploadProgress(bytesSent: 10, bytesToSend: 10))
    }

    @Test func nothingToSendIsAllOfIt() {
        #expect(UploadProgress(bytesSent: 0, bytesToSend: 0).fraction == 1)
        #expect(UploadProgress(bytesSent: 1, bytesToSend: 4).fraction == 0.25)
    }

    // MARK: Runs

    private func bodies() throws -> [(RequestBody, total: UInt64, file: TemporaryFile)] {
        let file = try TemporaryFile(size: 5_000_000)
        var form = Multipart()
        form.append("f", file: file.path)
        let length = try #require(try form.makeSource().length)
        return [
            (.file(file.path), 5_000_000, file), (.multipart(form), length, file),
            (
                .stream { Pieces(pieces: Array(repeating: [UInt8](repeating: 0, count: 1000), count: 1000)) },
                1_000_000, file
            ),
            (.bytes([UInt8](repeating: 0, count: 3_000_000)), 3_000_000, file), (.bytes([]), 0, file),
        ]
    }

    /// Among the overloads with such a closure the intended one is chosen: the call compiles without a label.
    @Test func aTrailingClosureWithoutALabelIsToldOfTheUpload() async throws {
        try await withLoopbackServer { server in
            let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
            let sent = Mutex<[UInt64]>([])
            try await agent.send(put("/upload", .string("12345"))) { progress in
                let count = progress.bytesSent
                sent.withLock { $0.append(count) }
            }
            #expect(sent.withLock { $0.last } == 5)
            try await agent.send(put("/upload", .string("12345"))) { p in _ = p }
            let outcome = Outcome<Response>()
            agent.start(put("/upload", .string("123456"))) { progress in
                let count = progress.bytesSent
                sent.withLock { $0.append(count) }
            } completion: { result in
                outcome.take(result)
            }
            _ = try await outcome.result.get()
            #expect(sent.withLock { $0.last } == 6)
            agent.start(put("/upload", .string("1"))) { p in
                _ = p
            } completion: { _ in
            }
            await agent.shutdown()
        }
    }

    @Test func aClosuresReportsComeOnItsQueueAndBeforeTheResult() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        for (body, total, _) in try bodies() {
            let reports = Reports()
            let seen = Mutex<[UInt64]?>(nil)
            let outcome = Outcome<Response>()
            let task = agent.start(put("/upload", body), on: queue) { progress in
                dispatchPrecondition(condition: .onQueue(self.queue))
                reports.take(progress)
            } completion: { result in
                seen.withLock { $0 = reports.sent }
                outcome.take(result)
            }
            _ = try await outcome.result.get()
            let sent = try #require(seen.withLock { $0 })
            #expect(sent.last == total && sent == sent.sorted())
            settled()
            #expect(reports.sent == sent)
            #expect(task.uploadProgress == UploadProgress(bytesSent: total, bytesToSend: total))
        }
        await agent.shutdown()
    }

    @Test func byAwaitAllReportsComeBeforeTheReply() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        for (body, total, _) in try bodies() {
            let reports = Reports()
            let processing = agent.core.processingQueue
            try await agent.send(put("/upload", body)) { progress in
                dispatchPrecondition(condition: .notOnQueue(processing))
                reports.take(progress)
            }
            #expect(reports.sent.last == total && reports.sent == reports.sent.sorted())
            #expect(reports.all.last?.fraction == 1)
        }
        await agent.shutdown()
    }

    @Test func aRunCanBeAskedWithoutReports() async throws {
        let server = try LoopbackServer()
        server.script(path: "/upload", [.mark("head"), .wait("go"), .expectBody, .send(answer("")), .serve])
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let file = try TemporaryFile(size: 64 << 20)
        let outcome = Outcome<Response>()
        let task = agent.start(put("/upload", .file(file.path)), completion: outcome.take)
        try await server.waitForMark("head")
        #expect(await eventually { task.uploadProgress?.bytesSent ?? 0 > 0 })
        let midway = try #require(task.uploadProgress)
        #expect(midway.bytesSent < 64 << 20 && midway.bytesToSend == 64 << 20)
        server.signal("go")
        _ = try await outcome.result.get()
        #expect(task.uploadProgress?.fraction == 1)
        let plain = Outcome<Response>()
        #expect(agent.start(Get("/hello"), completion: plain.take).uploadProgress == nil)
        _ = try await plain.result.get()
        await agent.shutdown()
    }

    @Test func aRedirectThatKeepsTheBodyCountsItAgain() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let file = try TemporaryFile(size: 1_000_000)
        let reports = Reports()
        let outcome = Outcome<Response>()
        let put = put("/redirect-to?status=307&url=/upload", .file(file.path))
        agent.start(put, on: queue) {
            reports.take($0)
        } completion: {
            outcome.take($0)
        }
        #expect(try await outcome.result.get().text.contains("\"bytes\":1000000"))
        #expect(reports.sent.last == 1_000_000)
        #expect(reports.sent.count { $0 == 0 } <= 2)
        await agent.shutdown()
    }

    @Test("After a redirect that drops the body its bytes stay counted", arguments: [true, false])
    func aRedirectThatDropsTheBody(isInMemory: Bool) async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        server.script(path: "/upload", unwanted(303, "Location: /hello\r\n"))
        let file = try TemporaryFile(size: 100_000)
        let body: RequestBody = isInMemory ? .bytes([UInt8](repeating: 0, count: 100_000)) : .file(file.path)
        let reports = Reports()
        let outcome = Outcome<Response>()
        let task = agent.start(put("/upload", body), on: queue) {
            reports.take($0)
        } completion: {
            outcome.take($0)
        }
        #expect(try await outcome.result.get().redirects.count == 1)
        #expect(reports.all.last == UploadProgress(bytesSent: 100_000, bytesToSend: 100_000))
        #expect(task.uploadProgress == reports.all.last)
        await agent.shutdown()
    }
}
