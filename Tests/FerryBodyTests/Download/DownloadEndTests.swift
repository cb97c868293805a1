import FerryMeasurement
import FerrySynchronization
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// How downloads end that never produce a file: refused, cancelled, timed out.
@Suite(.timeLimit(.minutes(1))) struct DownloadEndTests {
    private let two: DownloadOptions = {
        var options = DownloadOptions(segments: 2)
        options.minimumSegmentSize = 1000
        return options
    }()

    /// Responds to a range of ten thousand bytes, or with all of them.
    private static func piece(_ request: LoopbackRequest) -> LoopbackResponse {
        let bytes = LoopbackServer.pattern(0..<10_000)
        guard let range = range(request) else { return LoopbackResponse(headers: ["ETag": "\"v\""], body: bytes) }
        return LoopbackResponse(
            status: 206,
            headers: ["ETag": "\"v\"", "Content-Range": "bytes \(range.lowerBound)-\(range.upperBound)/10000"],
            body: Array(bytes[range]))
    }

    private static func range(_ request: LoopbackRequest) -> ClosedRange<Int>? {
        guard let ends = request.headers["Range"]?.dropFirst(6).split(separator: "-"), let first = Int(ends[0]) else {
            return nil
        }
        return first...(ends.count > 1 ? Int(ends[1]) ?? 9_999 : 9_999)
    }

    // MARK: Progress

    @Test func theProgressOfARunThatNeverBeganEnds() async throws {
        let folder = try Folder()
        let target = DownloadTarget.file(folder.file("f"))
        try await withFlow {
            $0.limits.maxConcurrentTransfers = 1
            $0.limits.queueLength = 0
        } _: { server, agent in
            func expectEnd(_ request: Get, _ code: RequestError.Code) async {
                let started = StartedDownload()
                let task = agent.download(request, to: target, completion: started.take)
                if code == .cancelled { task.cancel() }
                for await _ in task.progressUpdates {}
                #expect(await started.error()?.code == code)
                for await progress in task.progressUpdates { #expect(progress.received == 0) }
            }
            await expectEnd(Get("http://[x/"), .invalidURL)
            // It may have been sent by then.
            server.script(path: "/silent", [.keepOpen])
            await expectEnd(Get("/silent"), .cancelled)
            server.script(path: "/f", [.keepOpen])
            let first = StartedDownload()
            let running = agent.download(Get("/f"), to: .file(folder.file("g")), completion: first.take)
            #expect(await eventually { server.requests.contains { $0.path == "/f" } })
            await expectEnd(Get("/bytes/10"), .queueFull)
            running.cancel()
            _ = await first.error()
            await agent.shutdown(grace: .zero)
            await expectEnd(Get("/bytes/10"), .shutdown)
        }
    }

    // MARK: Cancel

    @Test func cancelledWhileTheBodyOfARefusedAnswerIsReadItEnds() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.script(
                path: "/f",
                [.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4000\r\n\r\nten bytes."), .keepOpen])
            let started = StartedDownload()
            let task = agent.download(Get("/f"), to: .file(folder.file("f")), completion: started.take)
            try await server.waitForRequests(1)
            // The head has arrived, and the body has not.
            #expect(await eventually { agent.core.state.withLock { $0.resting == 1 && $0.table.count == 1 } })
            task.cancel()
            #expect(await started.error()?.code == .cancelled)
            #expect(folder.names == [])
        }
    }

    @Test func outOfTimeWhileTheBodyOfARefusedAnswerIsReadItSaysSo() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.script(path: "/f", [.send(head("404 X", "Content-Length: 4000\r\n") + "ten bytes."), .keepOpen])
            var request = HTTPRequest(.get, "/f")
            request.deadline = .seconds(1)
            let error = await fault { () throws(RequestError) in
                try await agent.download(request, to: .file(folder.file("f")))
            }
            #expect(error?.code == .timeout(.deadline) && error?.attempts == 1)
            #expect(folder.names == [])
        }
    }

    @Test func cancelledWhileASegmentIsRefusedItEnds() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.handle("GET", "/f") { Self.piece($0) }
            server.script(
                path: "/f", uses: 1,
                [
                    .send("HTTP/1.1 206 OK\r\nETag: \"v\"\r\nContent-Range: bytes 0-999/10000\r\n"),
                    .send("Content-Length: 1000\r\n\r\n"), .sendBytes(LoopbackServer.pattern(0..<1000)), .serve,
                ])
            server.script(
                path: "/f",
                [.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4000\r\n\r\nten bytes."), .keepOpen])
            let started = StartedDownload()
            let task = agent.download(Get("/f"), to: .file(folder.file("f")), options: two, completion: started.take)
            try await server.waitForRequests(3)
            // Lead and helper read why their request was refused; the helper's is not a run of its own any more.
            #expect(await eventually { agent.core.state.withLock { $0.resting == 1 && $0.table.count == 2 } })
            task.cancel()
            #expect(await started.error()?.code == .cancelled)
        }
    }

    // MARK: Locks

    /// After a write that hung, the name of the partial file is known as left until another run has the lock.
    @Test func aPartFileThatAnotherProcessHasLockedSinceIsNotWaitedFor() async throws {
        let folder = try Folder()
        let holder = try ChildProcess([
            "flock", "--no-fork", folder.file("f.ferry-part"), "sh", "-c", "echo locked; exec cat",
        ])
        defer { holder.stop() }
        #expect(holder.readLine() == "locked")
        LeftParts.shared.add("f.ferry-part", in: try OpenDirectory(folder.path))
        try await withFlow { _, agent in
            var request = HTTPRequest(.get, "/bytes/10")
            request.deadline = .seconds(30)
            let path = folder.file("f")
            let error = await fault { [request] () throws(RequestError) in
                try await agent.download(request, to: .file(path))
            }
            #expect(error?.code == .fileIO && error?.errno == Int(EBUSY) && error?.phase == .preparing)
        }
    }

    // MARK: The deadline

    @Test(arguments: [1, 2]) func theDeadlineHoldsForAllSegments(segments: Int) async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let end = OneShot<Void>()
            server.handle("GET", "/f") { request in
                switch Self.range(request)?.lowerBound {
                // The helper's, which never comes, or the only one.
                case nil, 1000: await end.value()
                default: break
                }
                return Self.piece(request)
            }
            var request = HTTPRequest(.get, "/f")
            request.deadline = .milliseconds(500)
            var options = two
            options.segments = segments
            let began = ContinuousClock.now
            let error = await fault { () throws(RequestError) in
                try await agent.download(request, to: .file(folder.file("f")), options: options)
            }
            let took = ContinuousClock.now - began
            end.finish(())
            #expect(error?.code == .timeout(.deadline))
            #expect(took >= .milliseconds(495), "\(took)")
        }
    }

    @Test func aSegmentDoesNotGetTheTimeThatIsOver() async throws {
        let folder = try Folder()
        let transfers = TransferNotes()
        try await withFlow(transfers: transfers) { server, agent in
            let gate = Gate()
            server.handle("GET", "/f") { request in
                // This time is over when the segments begin.
                if Self.range(request)?.lowerBound == 0 { await elapse(.milliseconds(100)) } else { await gate.pass() }
                return Self.piece(request)
            }
            var request = HTTPRequest(.get, "/f")
            request.deadline = .seconds(3600)
            let started = StartedDownload()
            let task = agent.download(request, to: .file(folder.file("f")), options: two, completion: started.take)
            // The first piece, and two segments of the rest.
            #expect(await eventually { transfers.all.count == 3 })
            let deadlines = transfers.all.map(\.deadline)
            #expect(deadlines.allSatisfy { (1...3_600_000).contains($0) }, "\(deadlines)")
            #expect(deadlines.dropFirst().allSatisfy { $0 <= 3_599_900 }, "\(deadlines)")
            task.cancel()
            #expect(await started.error()?.code == .cancelled)
            gate.open()
        }
    }

    @Test func theDeadlineHoldsForTheDigestToo() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            // Eight gigabytes, as a sparse file: reading them takes many seconds.
            let size: Int64 = 8_000_000_000
            try folder.leavePart([], "f", of: server.baseURL + "/f", total: size)
            #expect(truncate(folder.file("f.ferry-part"), off_t(size)) == 0)
            server.answer(
                "/f", "416 Range Not Satisfiable", "Content-Range: bytes */\(size)", "ETag: \"v1\"",
                "Content-Length: 0",
                body: "")
            var request = HTTPRequest(.get, "/f")
            request.deadline = .milliseconds(500)
            let began = ContinuousClock.now
            let error = await fault { () throws(RequestError) in
                try await agent.download(
                    request, to: .file(folder.file("f")),
                    options: DownloadOptions(sha256: String(repeating: "0", count: 64)))
            }
            #expect(error?.code == .timeout(.deadline), "\(error as Any)")
            #expect(ContinuousClock.now - began < .seconds(5))
            #expect(folder.names == ["f.ferry-meta", "f.ferry-part"], "it is as good as before")
        }
    }
}
