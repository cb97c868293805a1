import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The terms of a download: types, names, rates, and resuming an earlier run.
@Suite(.timeLimit(.minutes(1))) struct DownloadTermsTests {
    @Test func theContentTypeOfAPartIsCheckedToo() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            var picture = HTTPRequest(.get, "/f")
            picture.statusValidation = .codes([200])
            picture.acceptedContentTypes = ["image/png"]
            server.handle("GET", "/f") { request in
                let isRanged = request.headers["Range"] != nil
                return LoopbackResponse(
                    status: isRanged ? 206 : 200,
                    headers: [
                        "ETag": "\"v\"", "Content-Type": "text/html",
                        "Content-Range": request.headers["Range"] == "bytes=5-" ? "bytes 5-9/10" : "bytes 0-4/10",
                    ], body: Array("01234".utf8))
            }
            var segments = DownloadOptions(segments: 2)
            segments.minimumSegmentSize = 5
            for options in [DownloadOptions(), segments] {
                try folder.leavePart(Array("01234".utf8), "f", of: server.baseURL + "/f", tag: "\"v\"")
                if options.segments > 1 { unlink(folder.file("f.ferry-part")) }
                let error = await fault { () throws(RequestError) in
                    try await agent.download(picture, to: .file(folder.file("f")), options: options)
                }
                #expect(error?.code.name == "invalidContentType", "\(error as Any)")
                #expect(error?.response?.body == Array("01234".utf8) && folder.bytes("f") == nil)
            }
            #expect(server.ranges("/f") == ["bytes=5-", "bytes=0-4"])
        }
    }

    @Test func whatWasThereWhenItBeganStaysTheSameInAllRetries() async throws {
        let folder = try Folder()
        try await withFlow {
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1))
        } _: { server, agent in
            for have in [0, 100] {
                let progresses = Progresses()
                for from in [have, 400] {
                    let head =
                        from == 0
                        ? "HTTP/1.1 200 OK\r\n"
                        : "HTTP/1.1 206 OK\r\nContent-Range: bytes \(from)-999/1000\r\n"
                    server.script(
                        path: "/f", uses: 1,
                        [
                            .send(head + "ETag: \"v\"\r\nContent-Length: \(1000 - from)\r\n\r\n"),
                            .sendBytes(LoopbackServer.pattern(from..<(from < 400 ? 400 : 1000))), .close,
                        ])
                }
                if have > 0 {
                    try folder.leavePart(
                        LoopbackServer.pattern(0..<have), "f", of: server.baseURL + "/f", tag: "\"v\"", total: 1000)
                }
                let file = try await agent.download(
                    Get("/f"), to: .file(folder.file("f")), progress: progresses.take)
                #expect(file.attempts == 2 && file.resumedFrom == have && progresses.all.last?.received == 1000)
                #expect(progresses.all.allSatisfy { $0.resumedFrom == have }, "\(progresses.all)")
            }
        }
    }

    @Test func aRateBelowAPieceOfTheSocketsHolds() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let began = ContinuousClock.now
            let file = try await agent.download(
                Get("/bytes/18000"), to: .file(folder.file("f")), options: DownloadOptions(bytesPerSecond: 5000))
            let took = ContinuousClock.now - began
            // Bytes that arrive at once are paid for before the next: sixteen thousand take three seconds.
            #expect(file.length == 18_000 && took > .seconds(2) && took < .seconds(7), "\(took)")
        }
    }

    @Test func inADirectoryNothingIsReplaced() async throws {
        let folder = try Folder()
        try folder.write(Array("mine".utf8), "x.txt")
        try FileManager.default.createDirectory(atPath: folder.file("x-1.txt"), withIntermediateDirectories: true)
        #expect(symlink("nowhere", folder.file("x-2.txt")) == 0)
        try await withFlow { server, agent in
            server.script(
                path: "/",
                [
                    .send("HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename=x.txt\r\n"),
                    .send("Content-Length: 3\r\n\r\nabc"), .serve,
                ])
            let directory = DownloadTarget.directory(folder.path)
            // If two end at the same time, each gets a name, too.
            let paths = try await withThrowingTaskGroup(of: String.self) { group in
                for path in ["/a", "/b", "/c"] {
                    group.addTask { try await agent.download(Get(path), to: directory).path }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(paths.sorted() == [3, 4, 5].map { folder.file("x-\($0).txt") })
            for path in paths {
                #expect(FileManager.default.contents(atPath: path) == Data("abc".utf8))
            }
            #expect(folder.bytes("x.txt") == Array("mine".utf8) && folder.names.count == 6)
        }
    }
}
