import Cxattr
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Files of earlier downloads that have not changed on the server since.
@Suite(.timeLimit(.minutes(1))) struct CompletedFileTests {
    private static let attribute = "user.ferry.download"

    private func skipping(_ change: (inout DownloadOptions) -> Void = { _ in }) -> DownloadOptions {
        var options = DownloadOptions()
        options.skipsUnchanged = true
        change(&options)
        return options
    }

    private func conditions(_ server: LoopbackServer) -> [String?] {
        server.requests.map { $0.headers["If-None-Match"] }
    }

    @Test(arguments: [1, 4]) func nothingIsDownloadedTwice(segments: Int) async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let options = skipping { ($0.segments, $0.minimumSegmentSize) = (segments, 1000) }
            for target in [DownloadTarget.file(folder.file("f")), .directory(folder.path)] {
                let first = try await agent.download(Get("/bytes/10000"), to: target, options: options)
                #expect(!first.isUnchanged && first.resumedFrom == 0 && first.length == 10_000)
                let progresses = Progresses()
                let count = server.requestCount
                let second = try await agent.download(
                    Get("/bytes/10000"), to: target, options: options, progress: progresses.take)
                #expect(second.isUnchanged && second.path == first.path && second.status == 304)
                #expect(second.length == 10_000 && second.resumedFrom == 10_000)
                #expect(progresses.all.last?.received == 10_000 && progresses.all.last?.fraction == 1)
                #expect(server.requestCount == count + 1)
            }
            #expect(folder.names == ["10000", "f"])
            #expect(folder.bytes("10000") == LoopbackServer.pattern(0..<10_000))
        }
    }

    @Test func withoutTheOptionNothingIsCheckedOrRecorded() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            for options in [DownloadOptions(), DownloadOptions(), skipping()] {
                let file = try await agent.download(
                    Get("/bytes/100"), to: .file(folder.file("f")), options: options)
                #expect(!file.isUnchanged)
            }
            #expect(conditions(server) == [nil, nil, nil])
        }
    }

    @Test func aFileThatTheServerHasChangedIsDownloaded() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            for (tag, body) in [("\"1\"", "one"), ("\"2\"", "two")] {
                server.answerOnce("/f", "200 OK", "ETag: \(tag)", "Content-Length: 3", body: body)
                let file = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: skipping())
                #expect(!file.isUnchanged && folder.bytes("f") == Array(body.utf8))
            }
            #expect(conditions(server) == [nil, "\"1\""])
        }
    }

    @Test func aFileThatWasChangedLocallyIsDownloaded() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let load = { try await agent.download(Get("/bytes/10"), to: .directory(folder.path), options: skipping()) }
            _ = try await load()
            // With the same length, and with its old attribute.
            let handle = try #require(FileHandle(forWritingAtPath: folder.file("10")))
            try handle.write(contentsOf: Array("0123456789".utf8))
            try handle.close()
            let again = try await load()
            #expect(!again.isUnchanged && again.path == folder.file("10-1"))
            // The second one is found after the first.
            #expect(try await load().path == folder.file("10-1"))
            #expect(conditions(server).map { $0 != nil } == [false, false, true])
            #expect(folder.names == ["10", "10-1"] && folder.bytes("10") == Array("0123456789".utf8))
        }
    }

    @Test func aFileNamedByTheServerIsFoundAgain() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            for isUnchanged in [false, true] {
                server.answerOnce(
                    "/get", "200 OK", "ETag: \"1\"", "Content-Length: 3",
                    "Content-Disposition: attachment; filename=report.txt", body: "one")
                let file = try await agent.download(Get("/get"), to: .directory(folder.path), options: skipping())
                #expect(file.isUnchanged == isUnchanged && file.path == folder.file("report.txt"))
            }
            #expect(conditions(server) == [nil, nil] && folder.names == ["report.txt"])
        }
    }

    @Test func aLastModifiedDateIsAValidator() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
            let fields = ["Last-Modified: \(modified)", "Date: Sun, 06 Nov 1994 08:51:37 GMT"]
            server.answerOnce("/f", "200 OK", fields[0], fields[1], "Content-Length: 3", body: "one")
            server.answerOnce("/f", "304 Not Modified", fields[0], fields[1], body: "")
            for isUnchanged in [false, true] {
                let file = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: skipping())
                #expect(file.isUnchanged == isUnchanged && file.status == (isUnchanged ? 304 : 200))
            }
            #expect(server.requests.map { $0.headers["If-Modified-Since"] } == [nil, modified])
        }
    }

    @Test func a304WithAnotherETagIsIgnored() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.answerOnce("/f", "200 OK", "ETag: \"1\"", "Content-Length: 3", body: "one")
            _ = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: skipping())
            server.answerOnce("/f", "304 Not Modified", "ETag: \"2\"", body: "")
            server.answerOnce("/f", "200 OK", "ETag: \"2\"", "Content-Length: 3", body: "two")
            let file = try await agent.download(Get("/f"), to: .file(folder.file("f")), options: skipping())
            #expect(!file.isUnchanged && folder.bytes("f") == Array("two".utf8))
            #expect(conditions(server) == [nil, "\"1\"", nil])
        }
    }

    @Test func anUnexpected304IsNotACompleteFile() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            server.answerOnce("/f", "304 Not Modified", "ETag: \"1\"", body: "")
            let error = await fault { () throws(RequestError) in
                try await agent.download(Get("/f"), to: .file(folder.file("f")), options: skipping())
            }
            #expect(error?.code == .invalidStatusCode(304) && folder.names == [])
        }
    }

    @Test func aFileThatDoesNotMatchIsDownloaded() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let target = DownloadTarget.file(folder.file("f"))
            _ = try await agent.download(Get("/bytes/10"), to: target, options: skipping())
            let digest = SHA256.hexadecimal(of: LoopbackServer.pattern(0..<10))
            let right = try await agent.download(
                Get("/bytes/10"), to: target, options: skipping { $0.sha256 = digest })
            #expect(right.isUnchanged)
            let other = String(repeating: "0", count: 64)
            for options in [skipping { $0.sha256 = other }, skipping { $0.expectedLength = 11 }] {
                let error = await fault { () throws(RequestError) in
                    try await agent.download(Get("/bytes/10"), to: target, options: options)
                }
                #expect(error?.code.name == "contentMismatch")
            }
            #expect(conditions(server).map { $0 != nil } == [false, true, false, false])
            #expect(folder.bytes("f") == LoopbackServer.pattern(0..<10))
        }
    }

    @Test func aPartialFileIsResumed() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let target = DownloadTarget.file(folder.file("f"))
            server.answerOnce("/f", "200 OK", "ETag: \"v0\"", "Content-Length: 3", body: "old")
            _ = try await agent.download(Get("/f"), to: target, options: skipping())
            try folder.leavePart(Array("01234".utf8), "f", of: server.baseURL + "/f")
            server.answerOnce(
                "/f", "206 Partial Content", "ETag: \"v1\"", "Content-Range: bytes 5-9/10", "Content-Length: 5",
                body: "56789")
            let file = try await agent.download(Get("/f"), to: target, options: skipping())
            #expect(!file.isUnchanged && file.resumedFrom == 5 && folder.bytes("f") == Array("0123456789".utf8))
            #expect(conditions(server) == [nil, nil])
        }
    }

    @Test(arguments: ["", "{", "{\"version\": 2}", "[1]", String(repeating: "x", count: 3_000)])
    func anInvalidAttributeIsIgnored(text: String) async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let target = DownloadTarget.file(folder.file("f"))
            _ = try await agent.download(Get("/bytes/10"), to: target, options: skipping())
            let bytes = Array(text.utf8)
            try #require(setxattr(folder.file("f"), Self.attribute, bytes, bytes.count, 0) == 0)
            #expect(try await !agent.download(Get("/bytes/10"), to: target, options: skipping()).isUnchanged)
            #expect(conditions(server) == [nil, nil])
        }
    }
}

extension LoopbackServer {
    /// Responds to the next request for a path with this head and body.
    fileprivate func answerOnce(_ path: String, _ head: String, _ fields: String..., body: String) {
        let lines = (["HTTP/1.1 " + head] + fields).joined(separator: "\r\n")
        script(path: path, uses: 1, [.send(lines + "\r\n\r\n" + body), .serve])
    }
}
