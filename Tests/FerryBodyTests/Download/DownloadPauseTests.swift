import FerrySynchronization
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// What a paused download does when its connections end, or when something is left to request.
@Suite(.timeLimit(.minutes(2))) struct DownloadPauseTests {
    private let size = 3_000

    /// The head of a response with the file from this byte on.
    private func head(from: Int = 0) -> String {
        let range = from > 0 ? "Content-Range: bytes \(from)-\(size - 1)/\(size)\r\n" : ""
        return "HTTP/1.1 \(from > 0 ? "206 OK" : "200 OK")\r\nETag: \"v1\"\r\n\(range)"
            + "Content-Length: \(size - from)\r\n\r\n"
    }

    /// Responds with the requested part of `count` bytes.
    private static func part(_ request: LoopbackRequest, of count: Int) -> LoopbackResponse {
        let ends = request.headers["Range"]?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
        guard let first = ends.first else {
            return LoopbackResponse(headers: ["ETag": "\"v1\""], body: LoopbackServer.pattern(0..<count))
        }
        let last = ends.count > 1 ? ends[1] : count - 1
        return LoopbackResponse(
            status: 206, headers: ["ETag": "\"v1\"", "Content-Range": "bytes \(first)-\(last)/\(count)"],
            body: LoopbackServer.pattern(first..<last + 1))
    }

    /// How many workers wait for the end of the pause.
    private func waiting(_ task: DownloadTask) -> Int { task.download.state.withLock { $0.waiting.count } }

    /// A socket in the file system, so that no other process can listen there when the server is gone.
    private static func server(at path: String) throws -> LoopbackServer {
        var options = LoopbackServer.Options()
        options.address = path
        return try LoopbackServer(options)
    }

    @Test func whileTheServerIsGoneItWaitsForTheEndOfThePause() async throws {
        let folder = try Folder()
        let path = folder.file("s")
        let gone = try Self.server(at: path)
        gone.script(path: "/f", [.send(head()), .sendBytes(LoopbackServer.pattern(0..<1_000)), .keepOpen])
        var configuration = NetworkConfiguration(baseURL: gone.baseURL)
        configuration.unixSocket = path
        let agent = NetworkAgent(configuration: configuration)
        let started = StartedDownload()
        let task = agent.download(Get("/f"), to: .file(folder.file("f")), completion: started.take)
        #expect(await eventually { task.progress.received == 1_000 })
        task.pause()
        gone.stop()
        #expect(unlink(path) == 0)
        #expect(await eventually { waiting(task) == 1 || task.state != .running })
        #expect(task.state == .running && task.isPaused && started.calls == 0)
        #expect(agent.statistics.submitted == 1 && folder.part("f")?.count == 1_000)

        let back = try Self.server(at: path)
        back.handle("GET", "/f") { [size] in Self.part($0, of: size) }
        task.resume()
        let file = try await started.file()
        #expect(file.length == 3_000 && file.attempts == 2 && back.ranges("/f") == ["bytes=1000-"])
        #expect(folder.bytes("f") == LoopbackServer.pattern(0..<size))
        await agent.shutdown()
    }

    @Test func whoClosesAfterEachHeadIsAskedOnceAtMost() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let bytes = LoopbackServer.pattern(0..<size)
            try folder.leavePart(
                Array(bytes[..<1_000]), "f", of: server.baseURL + "/f", tag: "\"v1\"", total: Int64(size))
            server.handle("GET", "/f") { [size] in Self.part($0, of: size) }
            server.script(
                path: "/f", uses: 1,
                [.mark("asked"), .wait("paused"), .send(head(from: 1_000)), .wait("taken"), .reset])
            let started = StartedDownload()
            let task = agent.download(Get("/f"), to: .file(folder.file("f")), completion: started.take)
            try await server.waitForMark("asked")
            task.pause()
            server.signal("paused")
            #expect(await eventually { task.download.state.withLock { $0.paused.count == 1 } })
            server.signal("taken")
            #expect(await eventually { waiting(task) == 1 || server.requestCount > 1 })
            #expect(server.requestCount == 1 && task.state == .running && started.calls == 0)
            task.resume()
            #expect(try await started.file().attempts == 2)
            #expect(folder.bytes("f") == bytes && server.ranges("/f") == ["bytes=1000-", "bytes=1000-"])
        }
    }

    @Test func noSegmentIsRequestedDuringAPause() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.handle("GET", "/f") { Self.part($0, of: 10_000) }
            let first = "ETag: \"v1\"\r\nContent-Range: bytes 0-999/10000\r\nContent-Length: 1000\r\n"
            server.script(
                path: "/f", uses: 1,
                [
                    .mark("asked"), .wait("paused"),
                    .sendBytes(Array("HTTP/1.1 206 OK\r\n\(first)\r\n".utf8) + LoopbackServer.pattern(0..<1_000)),
                    .serve,
                ])
            var options = DownloadOptions(segments: 3)
            options.minimumSegmentSize = 1_000
            let started = StartedDownload()
            let task = agent.download(
                Get("/f"), to: .file(folder.file("f")), options: options, completion: started.take)
            try await server.waitForMark("asked")
            task.pause()
            server.signal("paused")
            // Both helpers; the lead may still wait for the bytes of its own piece.
            #expect(await eventually { waiting(task) >= 2 || server.requestCount > 1 })
            #expect(server.requestCount == 1 && task.state == .running)
            task.resume()
            #expect(try await started.file().length == 10_000)
            #expect(folder.bytes("f") == LoopbackServer.pattern(0..<10_000))
        }
    }

    private struct Passing: RequestInterceptor {
        let gate: Gate
        func intercept(_ request: OutgoingRequest, of run: RunInfo) async throws -> InterceptedResponse? {
            await gate.pass()
            return nil
        }
    }

    /// What was prepared before the pause, perhaps with a token that has expired since, is prepared again after it.
    @Test(arguments: [true, false]) func aPauseWhileTheRequestIsPreparedHoldsIt(inAdapter: Bool) async throws {
        let folder = try Folder()
        let gate = Gate()
        try await withFlow {
            if inAdapter { $0.adapters = [Adapt { _, _ in await gate.pass() }] }
            if !inAdapter { $0.interceptors = [Passing(gate: gate)] }
        } _: { server, agent in
            let started = StartedDownload()
            let task = agent.download(Get("/bytes/10"), to: .file(folder.file("f")), completion: started.take)
            #expect(await eventually { gate.arrived == 1 })
            task.pause()
            gate.open()
            #expect(await eventually { waiting(task) == 1 || server.requestCount > 0 })
            #expect(server.requestCount == 0 && started.calls == 0)
            task.resume()
            let length = try await started.file().length
            #expect(length == 10 && gate.arrived == 2 && server.requestCount == 1)
        }
    }

    enum End: CaseIterable { case cancel, deadline, shutdown }

    @Test(arguments: End.allCases) func aDownloadThatWaitsForTheEndOfThePauseCanBeEnded(end: End) async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.script(
                path: "/f", [.send(head()), .sendBytes(LoopbackServer.pattern(0..<1_000)), .wait("paused"), .close])
            var request = HTTPRequest(.get, "/f")
            if end == .deadline { request.deadline = .seconds(2) }
            let started = StartedDownload()
            let task = agent.download(request, to: .file(folder.file("f")), completion: started.take)
            #expect(await eventually { task.progress.received == 1_000 || started.calls > 0 })
            task.pause()
            server.signal("paused")
            #expect(await eventually { waiting(task) == 1 || started.calls > 0 })
            switch end {
            case .cancel: task.cancel()
            case .deadline: break
            case .shutdown: await agent.shutdown(grace: .zero)
            }
            let error = try #require(await started.error())
            switch end {
            case .cancel: #expect(error.code == .cancelled)
            case .deadline: #expect(error.code == .timeout(.deadline))
            case .shutdown: #expect(error.code == .shutdown)
            }
            #expect(error.attempts == 1 && error.mayHaveBeenProcessed && server.requestCount == 1)
            #expect(folder.part("f")?.count == 1_000 && folder.hasMetadata("f"))
        }
    }
}
