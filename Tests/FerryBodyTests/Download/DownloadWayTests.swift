import FerrySynchronization
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Downloads as runs: observers, stand-ins, interceptors, limits, shutdown.
@Suite(.timeLimit(.minutes(2))) struct DownloadWayTests {
    @Test func observersAndHooksSeeARun() async throws {
        let folder = try Folder()
        let book = Logbook()
        try await withFlow {
            $0.observers = [LoggingObserver("agent", book)]
        } _: { server, agent in
            var request = LoggedRequest(book, path: "/bytes/10")
            request.observers = [LoggingObserver("own", book)]
            _ = try await agent.download(request, to: .file(folder.file("f")))
            let expected = ["willStart", "metrics", "willStop finished", "didStop finished"].flatMap {
                ["agent \($0)", "own \($0)"]
            }
            #expect(book.events == expected)
            request.path = "/status/404"
            _ = await fault { () throws(RequestError) in
                try await agent.download(request, to: .file(folder.file("f")))
            }
            #expect(
                book.events.dropFirst(expected.count) == [
                    "agent willStart", "own willStart", "failurePreprocessor invalidStatusCode", "agent metrics",
                    "own metrics", "agent willStop failed", "own willStop failed", "willDeliver invalidStatusCode",
                    "agent didStop failed", "own didStop failed",
                ])
        }
    }

    @Test func aStandInAndAnInterceptorHaveFilesToo() async throws {
        let folder = try Folder()
        let stub = StubTransport { request in
            request.url.hasSuffix("/f")
                ? .response(headers: ["Content-Length": "5"], body: "hello") : .response(status: 404, body: "none")
        }
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let file = try await agent.download(Get("/f"), to: .directory(folder.path))
        #expect(file.path == folder.file("f") && folder.bytes("f") == Array("hello".utf8) && file.length == 5)
        let error = await fault { () throws(RequestError) in
            try await agent.download(Get("/g"), to: .directory(folder.path))
        }
        #expect(error?.code == .invalidStatusCode(404) && error?.response?.body == Array("none".utf8))
        await agent.shutdown()

        struct Canned: RequestInterceptor {
            func intercept(_ request: OutgoingRequest, of run: RunInfo) async throws -> InterceptedResponse? {
                InterceptedResponse(status: 200, body: Data("canned".utf8))
            }
        }
        var configuration = NetworkConfiguration.test
        configuration.interceptors = [Canned()]
        let canned = NetworkAgent(configuration: configuration, stub: stub)
        _ = try await canned.download(Get("/f"), to: .file(folder.file("f")))
        #expect(folder.bytes("f") == Array("canned".utf8) && folder.names == ["f"])
        await canned.shutdown()
    }

    @Test func aCancelledTaskCancelsAndAShutdownEnds() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.script(
                path: "/f", [.send("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 6\r\n\r\nabc"), .mark("half")])
            let path = folder.file("f")
            let task = Task {
                await fault { () throws(RequestError) in try await agent.download(Get("/f"), to: .file(path)) }
            }
            try await server.waitForMark("half")
            task.cancel()
            #expect(await task.value?.code == .cancelled)
            #expect(folder.bytes("f") == nil)

            let started = StartedDownload()
            agent.download(Get("/f"), to: .file(path), completion: started.take)
            try await server.waitForMark("half", count: 2)
            await agent.shutdown(grace: .zero)
            let ended = await started.error()
            #expect(ended?.code == .shutdown && folder.bytes("f") == nil)
            let late = await fault { () throws(RequestError) in try await agent.download(Get("/f"), to: .file(path)) }
            #expect(late?.code == .shutdown)
        }
    }

    @Test func theLimitsOfTheAgentHold() async throws {
        let folder = try Folder()
        try await withFlow {
            $0.limits.transfersPerHost = 3
        } _: { server, agent in
            let paths = (0..<40).map { "/bytes/\(10_000 + $0)" }
            try await withThrowingTaskGroup(of: Int64.self) { group in
                let target = DownloadTarget.directory(folder.path)
                for path in paths { group.addTask { try await agent.download(Get(path), to: target).length } }
                let bytes = try await group.reduce(0, +)
                let expected: Int = (0..<40).reduce(40 * 10_000, +)
                #expect(bytes == Int64(expected))
            }
            #expect(server.connectionCount <= 3 && folder.names.count == 40)

            var small = HTTPRequest(.get, "")
            small.maxBodyBytes = 1000
            for path in ["/bytes/1001", "/chunked/1001", "/gzip/1001"] {
                small.path = path
                let error = await fault { () throws(RequestError) in
                    try await agent.download(small, to: .file(folder.file("x")))
                }
                #expect(error?.code == .responseTooLarge, "\(path)")
                #expect(folder.bytes("x") == nil && folder.part("x") == nil, "\(path)")
            }
            small.path = "/chunked/1000"
            let fits = try await agent.download(small, to: .file(folder.file("x")))
            #expect(fits.length == 1000)
        }
    }

    @Test func progressComesTenTimesASecondAtMost() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let times = Mutex<[ContinuousClock.Instant]>([])
            let progresses = Progresses()
            let options = DownloadOptions(bytesPerSecond: 1_000_000)
            let began = ContinuousClock.now
            let file = try await agent.download(
                Get("/bytes/1000000"), to: .file(folder.file("f")), options: options
            ) { progress in
                times.withLock { $0.append(.now) }
                progresses.take(progress)
            }
            #expect(file.length == 1_000_000)
            let all = progresses.all
            #expect(all.last?.received == 1_000_000 && all.last?.fraction == 1)
            #expect(all.map(\.received) == all.map(\.received).sorted() && all.allSatisfy { $0.total == 1_000_000 })
            // Except start and end; the queue may be late with one and not with the next.
            let span = times.withLock { $0[$0.count - 1] - began }
            #expect(all.count >= 2 && all.count <= Int(span / .milliseconds(100)) + 3, "\(all.count) in \(span)")
            #expect(all.contains { $0.rate > 0 && $0.remaining != nil })
        }
    }

    @Test func whoeverHangsUpOnAPauseIsAskedForTheRest() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let size = 3_000_000
            server.script(
                path: "/f", uses: 1,
                [
                    .send("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: \(size)\r\n\r\n"),
                    .pattern(bytes: 1_000_000), .wait("paused"), .reset,
                ])
            server.handle("GET", "/f") { request in
                let from = request.headers["Range"].flatMap { Int($0.dropFirst(6).dropLast()) } ?? 0
                return LoopbackResponse(
                    status: from > 0 ? 206 : 200,
                    headers: ["ETag": "\"v\"", "Content-Range": "bytes \(from)-\(size - 1)/\(size)"],
                    body: LoopbackServer.pattern(from..<size))
            }
            let started = StartedDownload()
            let task = agent.download(Get("/f"), to: .file(folder.file("f")), completion: started.take)
            for await progress in task.progressUpdates where progress.received > 0 { break }
            task.pause()
            server.signal("paused")
            try await server.waitForOpenConnections(atMost: 0)
            task.resume()
            let file = try await started.file()
            #expect(file.length == size && file.attempts == 2)
            #expect(folder.bytes("f") == LoopbackServer.pattern(0..<size))
        }
    }

    @Test func whoAcceptsOnly200IsGoneOnWithAllTheSame() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            var request = HTTPRequest(.get, "/bytes/1000?etag=%22v%22")
            request.statusValidation = .codes([200])
            try folder.leavePart(
                LoopbackServer.pattern(0..<400), "f", of: server.baseURL + request.path, tag: "\"v\"", total: 1000)
            let file = try await agent.download(request, to: .file(folder.file("f")))
            #expect(file.resumedFrom == 400 && file.status == 206)
            #expect(folder.bytes("f") == LoopbackServer.pattern(0..<1000))
        }
    }

    @Test func whatIsSentWhileTheAnswerWaitsForItsFileDoesNotLetItGo() async throws {
        let folder = try Folder()
        let bytes = LoopbackServer.pattern(0..<9000)
        try await withFlow { server, agent in
            var request = HTTPRequest(.post, "/echo/body")
            request.body = .stream {
                AsyncStream { continuation in
                    continuation.yield(Data(bytes))
                    continuation.finish()
                }
            }
            // The response comes while it is sent: the order depends on the scheduler.
            for _ in 0..<50 {
                let file = try await agent.download(request, to: .file(folder.file("f")))
                #expect(file.length == 9000)
                #expect(folder.bytes("f") == bytes)
            }
        }
    }

    @Test func postIsAFileAndIsNeverGoneOnWith() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let request = HTTPRequest(.post, "/f", body: .string("which"))
            server.handle("POST", "/f") { request in
                LoopbackResponse(headers: ["ETag": "\"v\""], body: Array("for \(request.text)".utf8))
            }
            try folder.leavePart(Array("for".utf8), "f", of: server.baseURL + "/f", tag: "\"v\"", total: 9)
            let file = try await agent.download(request, to: .file(folder.file("f")))
            #expect(file.resumedFrom == 0 && folder.bytes("f") == Array("for which".utf8))
            #expect(server.ranges("/f") == [nil] && folder.names == ["f"])
        }
    }
}
