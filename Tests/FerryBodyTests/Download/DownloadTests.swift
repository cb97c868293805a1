import FerrySynchronization
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Downloads that succeed, and those that resume an earlier one.
@Suite(.timeLimit(.minutes(2))) struct DownloadTests {
    @Test(arguments: [0, 1, 100_000, 5_000_000])
    func theFileIsThereAndNothingElse(size: Int) async throws {
        let folder = try Folder()
        // Copies of the body would count as memory of the downloads.
        let expected = Data(LoopbackServer.pattern(0..<size))
        try await withFlow { server, agent in
            for path in ["/bytes/\(size)", "/chunked/\(size)", "/until-close/\(size)", "/gzip/\(size)"] {
                let file = try await agent.download(Get(path), to: .file(folder.file("f")))
                #expect(file.path == folder.file("f") && file.length == Int64(size) && file.resumedFrom == 0, "\(path)")
                #expect(file.status == 200)
                let isWhole = FileManager.default.contents(atPath: folder.file("f")) == expected
                #expect(isWhole, "\(path)")
                #expect(folder.names == ["f"])
            }
            #expect(server.requests.allSatisfy { $0.headers["Accept-Encoding"] == "identity" })
            #expect(server.requests.allSatisfy { $0.headers["Range"] == nil })
        }
    }

    @Test func byClosureAndByDelegate() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let queue = DispatchQueue(label: "test")
            let started = StartedDownload()
            let progresses = Progresses()
            let task = agent.download(
                Get("/bytes/3000000", tag: "t"), to: .file(folder.file("a")), on: queue, progress: progresses.take,
                completion: started.take)
            #expect(task.tag == "t")
            let file = try await started.file()
            #expect(file.length == 3_000_000 && folder.bytes("a") == LoopbackServer.pattern(0..<3_000_000))
            queue.sync {}
            #expect(started.calls == 1 && task.state == .finished)
            #expect(progresses.all.last?.received == 3_000_000 && progresses.all.last?.total == 3_000_000)

            let delegate = Delegate()
            agent.download(Get("/bytes/1000"), to: .file(folder.file("b")), delegate: delegate, on: queue)
            #expect(try await delegate.result.file().length == 1000)
            agent.download(Get("/status/404"), to: .file(folder.file("c")), delegate: delegate, on: queue)
            #expect(await eventually { delegate.failures.all == [.invalidStatusCode(404)] })
            #expect(folder.names == ["a", "b"])
        }
    }

    @Test func aCancelledRunIsGoneOnWith() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let path = "/bytes/4000000"
            let started = StartedDownload()
            let task = agent.download(Get(path), to: .file(folder.file("f")), completion: started.take)
            for await progress in task.progressUpdates where progress.received > 0 {
                task.cancel()
                break
            }
            let error = await started.error()
            // On a fast machine all of it may have arrived first.
            guard error?.code == .cancelled, let part = folder.part("f"), part.count < 4_000_000 else { return }
            #expect(folder.hasMetadata("f") && folder.bytes("f") == nil)
            let file = try await agent.download(Get(path), to: .file(folder.file("f")))
            #expect(file.resumedFrom == part.count && file.length == 4_000_000 && file.status == 206)
            #expect(folder.bytes("f") == LoopbackServer.pattern(0..<4_000_000) && folder.names == ["f"])
            #expect(server.ranges(path).last == "bytes=\(part.count)-")
        }
    }

    @Test func whatAFailureLeftIsGoneOnWithByAnotherAgent() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let error = await fault { () throws(RequestError) in
                try await agent.download(Get("/bytes/1000000?cut=300001"), to: .file(folder.file("f")))
            }
            #expect(error?.code == .incompleteBody(expected: 1_000_000, got: 300_001))
            #expect(folder.part("f") == LoopbackServer.pattern(0..<300_001) && folder.names.count == 2)
            server.script(
                path: "/bytes/1000000", uses: 1,
                [
                    .send("HTTP/1.1 206 OK\r\nContent-Range: bytes 300001-999999/1000000\r\n"),
                    .send("ETag: \"ferry-1000000\"\r\nContent-Length: 699999\r\n\r\n"),
                    .sendBytes(LoopbackServer.pattern(300_001..<1_000_000)), .serve,
                ])
            let other = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
            let file = try await other.download(Get("/bytes/1000000?cut=300001"), to: .file(folder.file("f")))
            #expect(file.resumedFrom == 300_001 && folder.bytes("f") == LoopbackServer.pattern(0..<1_000_000))
            await other.shutdown()
            #expect(folder.names == ["f"] && server.ranges("/bytes/1000000").last == "bytes=300001-")
        }
    }

    @Test func theOldFileStaysUntilTheNewOneIsThere() async throws {
        let folder = try Folder()
        try folder.write(Array("old".utf8), "f")
        try await withFlow { server, agent in
            server.script(
                path: "/f",
                [
                    .send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nnew"), .wait("go"), .send("new"), .serve,
                ])
            let started = StartedDownload()
            let task = agent.download(Get("/f"), to: .file(folder.file("f")), completion: started.take)
            for await progress in task.progressUpdates where progress.received == 3 { break }
            #expect(folder.bytes("f") == Array("old".utf8))
            server.signal("go")
            _ = try await started.file()
            #expect(folder.bytes("f") == Array("newnew".utf8) && folder.names == ["f"])
        }
    }

    @Test func anErrorStatusKeepsNoFileAndItsBodyIsInTheError() async throws {
        let folder = try Folder()
        try folder.write(Array("old".utf8), "f")
        try await withFlow { server, agent in
            let error = await fault { () throws(RequestError) in
                try await agent.download(Get("/status/404?body=nothing+here"), to: .file(folder.file("f")))
            }
            #expect(error?.code == .invalidStatusCode(404))
            #expect(error.map { String(decoding: $0.response?.body ?? [], as: UTF8.self) } == "nothing here")
            #expect(folder.bytes("f") == Array("old".utf8) && folder.names == ["f"])
        }
    }

    @Test func theSecondRunToOneTargetFailsAtOnce() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.script(
                path: "/f",
                [.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"), .wait("go"), .send("def"), .serve])
            let started = StartedDownload()
            agent.download(Get("/f"), to: .file(folder.file("f")), completion: started.take)
            try await server.waitForRequests(1)
            let second = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
            for target in [folder.file("f"), folder.path + "/./f"] {
                let error = await fault { () throws(RequestError) in
                    try await second.download(Get("/f"), to: .file(target))
                }
                #expect(error?.code == .fileIO && error?.errno == Int(EBUSY) && error?.phase == .preparing)
            }
            await second.shutdown()
            #expect(server.requestCount == 1)
            server.signal("go")
            #expect(try await started.file().length == 6)
            #expect(folder.bytes("f") == Array("abcdef".utf8) && folder.names == ["f"])
        }
    }

    @Test func aDirectoryGetsTheServersNameOrTheURLs() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.answer(
                "/named", "200 OK", "Content-Disposition: attachment; filename=\"re port.pdf\"", "Content-Length: 3",
                body: "abc")
            let named = try await agent.download(Get("/named"), to: .directory(folder.path))
            #expect(named.path == folder.file("re port.pdf"))
            let plain = try await agent.download(Get("/bytes/5?x=/y"), to: .directory(folder.path + "/"))
            #expect(plain.path.hasSuffix("/5"))
            #expect(folder.names == ["5", "re port.pdf"])
        }
    }

    @Test func lengthAndDigestAreChecked() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let bytes = LoopbackServer.pattern(0..<100_000)
            let digest = SHA256.hexadecimal(of: bytes)
            var options = DownloadOptions(expectedLength: 100_000, sha256: digest.uppercased())
            _ = try await agent.download(Get("/bytes/100000"), to: .file(folder.file("f")), options: options)
            #expect(folder.bytes("f") == bytes)
            options.expectedLength = 99_999
            let length = await fault { () throws(RequestError) in
                try await agent.download(Get("/bytes/100000"), to: .file(folder.file("g")), options: options)
            }
            #expect(length?.code == .contentMismatch(.length))
            options = DownloadOptions(sha256: String(repeating: "0", count: 64))
            let other = await fault { () throws(RequestError) in
                try await agent.download(Get("/bytes/100000"), to: .file(folder.file("g")), options: options)
            }
            #expect(other?.code == .contentMismatch(.sha256))
            #expect(folder.names == ["f"], "what was the wrong file is not kept")
            // 64 bytes that are not digits.
            for digest in ["abc", String(repeating: "g", count: 64), String(repeating: "０", count: 21) + "0"] {
                options.sha256 = digest
                let senseless = await fault { () throws(RequestError) in
                    try await agent.download(Get("/bytes/1"), to: .file(folder.file("g")), options: options)
                }
                #expect(senseless?.code == .invalidRequest)
            }
        }
    }

    @Test func redirectsRetriesAndAuthenticationAreARunsOwn() async throws {
        let folder = try Folder()
        try await withFlow {
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1))
        } _: { server, agent in
            let url = server.baseURL.replacingOccurrences(of: ":", with: "%3A").replacingOccurrences(
                of: "/", with: "%2F")
            let file = try await agent.download(
                Get("/redirect-to?url=\(url)%2Fbytes%2F1000"), to: .directory(folder.path))
            #expect(file.redirects.count == 1 && file.length == 1000)
            // The connection breaks twice within the body, and each time only the rest is requested.
            for (from, to) in [(0, 400), (400, 700)] {
                let head =
                    from == 0
                    ? "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n"
                    : "HTTP/1.1 206 OK\r\nContent-Range: bytes \(from)-999/1000\r\nContent-Length: \(1000 - from)\r\n"
                server.script(
                    path: "/flaky", uses: 1,
                    [
                        .send(head + "ETag: \"v\"\r\n\r\n"), .sendBytes(LoopbackServer.pattern(from..<to)),
                        .close,
                    ])
            }
            server.script(
                path: "/flaky",
                [
                    .send("HTTP/1.1 206 OK\r\nContent-Range: bytes 700-999/1000\r\nETag: \"v\"\r\n"),
                    .send("Content-Length: 300\r\n\r\n"),
                    .sendBytes(LoopbackServer.pattern(700..<1000)), .serve,
                ])
            let flaky = try await agent.download(Get("/flaky"), to: .file(folder.file("flaky")))
            #expect(flaky.attempts == 3 && folder.bytes("flaky") == LoopbackServer.pattern(0..<1000))
            #expect(server.ranges("/flaky") == [nil, "bytes=400-", "bytes=700-"])
        }
    }

    @Test func pausedNothingComesAndResumedTheRestDoes() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let started = StartedDownload()
            let task = agent.download(Get("/bytes/60000000"), to: .file(folder.file("f")), completion: started.take)
            for await progress in task.progressUpdates where progress.received > 0 { break }
            task.pause()
            #expect(task.isPaused)
            var before: Int64 = -1
            while before != task.progress.received {
                before = task.progress.received
                // After the time at which the loop flushes bytes to the disk.
                await agent.pass(.milliseconds(200), server)
            }
            if before < 60_000_000 { #expect(task.state == .running && started.calls == 0) }
            task.resume()
            #expect(try await started.file().length == 60_000_000)
            // Not read: it would not fit into the memory of a flow.
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.file("f"))
            #expect(attributes[.size] as? Int == 60_000_000)
        }
    }
}

private final class Delegate: DownloadDelegate {
    let result = StartedDownload()
    let failures = Failures()

    final class Failures: Sendable {
        private let list = Mutex<[RequestError.Code]>([])
        var all: [RequestError.Code] { list.withLock { $0 } }
        func add(_ code: RequestError.Code) { list.withLock { $0.append(code) } }
    }

    func downloadFinished<R: Request>(_ task: DownloadTask, _ request: R, file: DownloadedFile) {
        result.take(.success(file))
    }
    func downloadFailed<R: Request>(_ task: DownloadTask, _ request: R, error: RequestError) {
        failures.add(error.code)
    }
}
