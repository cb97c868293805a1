import CWrites
import FaultTable
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Rows R94 and R96: what the disk and the names of files can do to a download.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct DownloadDiskFaultTests {
    // MARK: R94, the disk

    @Test("R94: a full disk is an error with no other effect", arguments: Form.download.ways)
    func fullDisk(way: Way) async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            // A file of this process cannot become longer than that; the signal for it is blocked in libuv's threads.
            // Other tests in the process are not affected: they write less.
            var old = rlimit()
            #expect(getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &old) == 0)
            var small = rlimit(rlim_cur: 200_000_000, rlim_max: old.rlim_max)
            #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &small) == 0)
            defer { setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &old) }
            // 199 MB exist already, as a sparse file.
            try folder.leavePart([], "f", of: server.baseURL + "/bytes/300000000", total: 300_000_000)
            #expect(truncate(folder.file("f.ferry-part"), 199_000_000) == 0)
            server.script(
                path: "/bytes/300000000", uses: 1,
                [
                    .send("HTTP/1.1 206 OK\r\nETag: \"v1\"\r\n"),
                    .send("Content-Range: bytes 199000000-299999999/300000000\r\n\r\n"),
                    .pattern(bytes: 101_000_000), .close,
                ])
            let error = await notedDownload(by: agent, "/bytes/300000000", to: .file(folder.file("f")), way).error
            #expect(error?.code == .fileIO && error?.errno == Int(EFBIG) && error?.phase == .body)
            #expect(folder.bytes("f") == nil && folder.names.count == 2, "the part is still good")
            #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
        }
    }

    @Test func directoriesThatCannotBeWritten() async throws {
        let folder = try Folder()
        try folder.write([1], "file")
        try FileManager.default.createDirectory(atPath: folder.file("dir"), withIntermediateDirectories: true)
        try await withFlow { server, agent in
            let targets: [(DownloadTarget, Int32)] = [
                (.file(folder.file("none/f")), ENOENT), (.directory(folder.file("none")), ENOENT),
                (.file(folder.file("file/f")), ENOTDIR), (.directory(folder.file("file")), ENOTDIR),
                (.file(folder.file("dir")), EISDIR), (.file(folder.path + "/"), EISDIR), (.file(""), EISDIR),
                (.file(folder.file("a\u{0}b")), EINVAL), (.directory("/a\u{0}b"), EINVAL), (.file("/dev/null"), EINVAL),
            ]
            for (target, errno) in targets {
                let error = await fault { () throws(RequestError) in
                    try await agent.download(Get("/hello"), to: target)
                }
                #expect(error?.code == .fileIO && error?.errno == Int(errno), "\(target): \(error as Any)")
                #expect(error?.mayHaveBeenProcessed == false && error?.phase == .preparing)
            }
            #expect(server.requestCount == 0 && folder.names == ["dir", "file"])
        }
    }

    // MARK: A sync that fails

    /// The whole file, or the requested range of it.
    private static func answer(_ request: LoopbackRequest, of size: Int) -> LoopbackResponse {
        let ends = request.headers["Range"]?.dropFirst(6).split(separator: "-").compactMap { Int($0) } ?? []
        guard let first = ends.first, first < size else {
            return LoopbackResponse(headers: ["ETag": "\"v\""], body: LoopbackServer.pattern(0..<size))
        }
        let last = ends.count > 1 ? ends[1] : size - 1
        return LoopbackResponse(
            status: 206, headers: ["ETag": "\"v\"", "Content-Range": "bytes \(first)-\(last)/\(size)"],
            body: LoopbackServer.pattern(first..<last + 1))
    }

    @Test(
        "bytes that were lost in a sync are requested again, although the next sync would succeed",
        .enabled(if: writes_can_be_held()), arguments: [10, 300_000])
    func lostBytes(size: Int) async throws {
        let folder = try Folder()
        let path = folder.file("f")
        try await withFlow { server, agent in
            server.handle("GET", "/f") { Self.answer($0, of: size) }
            syncs_fail_once(path + ".ferry-part")
            let error = await fault { () throws(RequestError) in
                try await agent.download(Get("/f"), to: .file(path))
            }
            #expect(error?.code == .fileIO && error?.errno == Int(EIO) && error?.phase == .processing)
            #expect(folder.names == [])
            let file = try await agent.download(Get("/f"), to: .file(path))
            #expect(file.resumedFrom == 0 && server.ranges("/f") == [nil, nil])
            #expect(folder.bytes("f") == LoopbackServer.pattern(0..<size) && folder.names == ["f"])
        }
    }

    @Test(
        "what was lost in a sync is not saved as progress of the segments, nor does it become the file",
        .enabled(if: writes_can_be_held()))
    func lostSegments() async throws {
        let size = 300_000
        let folder = try Folder()
        let path = folder.file("f")
        let gate = Gate()
        try await withFlow { server, agent in
            server.handle("GET", "/f") { request in
                let isFirst = request.headers["Range"]?.hasPrefix("bytes=0-") ?? false
                if !isFirst { await gate.pass() }
                return Self.answer(request, of: size)
            }
            var options = DownloadOptions(segments: 2)
            options.minimumSegmentSize = 100_000
            syncs_fail_once(path + ".ferry-part")
            let started = StartedDownload()
            agent.download(Get("/f"), to: .file(path), options: options, completion: started.take)
            // The clerk's, when only the first piece has been written.
            #expect(await eventually { syncs_have_failed() || started.calls > 0 })
            gate.open()
            let error = await started.error()
            #expect(error?.code == .fileIO && error?.errno == Int(EIO))
            #expect(folder.bytes("f") == nil && folder.part("f")?.count == size && folder.hasMetadata("f"))
            let file = try await agent.download(Get("/f"), to: .file(path), options: options)
            #expect(file.resumedFrom == 0 && folder.names == ["f"])
            #expect(folder.bytes("f") == LoopbackServer.pattern(0..<size))
        }
    }

    // MARK: R96, names

    @Test("R96: nothing outside the directory is touched", arguments: Form.download.ways)
    func namesOfOtherPlaces(way: Way) async throws {
        let folder = try Folder()
        let inside = folder.file("in/side")
        try FileManager.default.createDirectory(atPath: inside, withIntermediateDirectories: true)
        let long = String(repeating: "n", count: 300) + ".txt"
        try await withFlow { server, agent in
            let names = [
                ("../../x", "x"), ("/etc/x", "x"), (".bashrc", "bashrc"),
                (long, String(repeating: "n", count: 251) + ".txt"),
                ("..", "f"), ("%2e%2e%2fy", "%2e%2e%2fy"), ("a/../../b", "b"), ("..\\..\\c", "c"),
                ("x.ferry-meta", "x.ferry-meta_"),
            ]
            for (given, expected) in names {
                let quoted = given.replacingOccurrences(of: "\\", with: "\\\\")
                let fields = "Content-Disposition: attachment; filename=\"\(quoted)\"\r\nContent-Length: 2\r\n"
                server.script(path: "/f", uses: 1, [.send(head("200 OK", fields) + "ab"), .serve])
                let file = try await notedDownload(by: agent, to: .directory(inside), way).get()
                #expect(file.path == inside + "/" + expected, "\(given)")
                let found = try FileManager.default.contentsOfDirectory(atPath: inside)
                #expect(found == [expected], "\(given)")
                try FileManager.default.removeItem(atPath: file.path)
                #expect(folder.names == ["in"])
            }
        }
    }

    @Test("R96: a link is replaced, and not followed", arguments: Form.download.ways)
    func links(way: Way) async throws {
        let folder = try Folder()
        try folder.write(Array("precious".utf8), "elsewhere")
        try await withFlow { server, agent in
            for name in ["f", "f.ferry-meta", "f.ferry-meta~"] {
                #expect(symlink(folder.file("elsewhere"), folder.file(name)) == 0)
            }
            let target = DownloadTarget.file(folder.file("f"))
            let file = try await notedDownload(by: agent, "/bytes/300000", to: target, way).get()
            #expect(file.length == 300_000 && folder.bytes("elsewhere") == Array("precious".utf8))
            #expect(folder.bytes("f") == LoopbackServer.pattern(0..<300_000))
            #expect((try? FileManager.default.destinationOfSymbolicLink(atPath: folder.file("f"))) == nil)
            // A link in place of the part is refused, as its target may be anything.
            unlink(folder.file("f.ferry-meta"))
            #expect(symlink(folder.file("elsewhere"), folder.file("f.ferry-part")) == 0)
            let error = await notedDownload(by: agent, "/bytes/100", to: target, way).error
            #expect(error?.code == .fileIO && error?.errno == Int(ELOOP))
            unlink(folder.file("f.ferry-part"))
            // A file with another name elsewhere is not written to.
            #expect(link(folder.file("elsewhere"), folder.file("f.ferry-part")) == 0)
            _ = try await notedDownload(by: agent, "/bytes/100", to: target, way).get()
            #expect(folder.bytes("elsewhere") == Array("precious".utf8))
            #expect(folder.names == ["elsewhere", "f"])
        }
    }
}
