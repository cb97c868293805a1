import FaultTable
import FerryTesting
import Foundation
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Rows R88 to R92: hostile servers. Before each case there are five bytes of ten from an earlier run, unless it says
/// otherwise.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct DownloadFaultTests {
    private let ten = Array("0123456789".utf8)

    /// A part exists, and a server plays `scripts`, one for each request, the last one repeatedly.
    private func withPart(
        _ scripts: [LoopbackScript], have: Int = 5, tag: String? = "\"v1\"", isAsked: Bool = true,
        validation: StatusValidation? = nil, sourceLocation: SourceLocation = #_sourceLocation,
        _ body: (borrowing Folder, LoopbackServer, Result<DownloadedFile, RequestError>) async throws -> Void
    ) async throws {
        for way in Form.download.ways {
            let folder = try Folder()
            try folder.write(Array("old".utf8), "f")
            try await withFlow(sourceLocation: sourceLocation) { server, agent in
                try folder.leavePart(Array(ten.prefix(have)), "f", of: server.baseURL + "/f", tag: tag)
                for (index, script) in scripts.enumerated() {
                    server.script(path: "/f", uses: index + 1 < scripts.count ? 1 : nil, script)
                }
                let result = await notedDownload(
                    by: agent, to: .file(folder.file("f")), way, validation, sourceLocation)
                if result.error != nil {
                    #expect(folder.bytes("f") == Array("old".utf8), "I3", sourceLocation: sourceLocation)
                }
                for name in folder.names {
                    let text = String(decoding: folder.bytes(name) ?? [], as: UTF8.self)
                    #expect(!Canary.words.contains(where: text.contains), "I6", sourceLocation: sourceLocation)
                }
                try await body(folder, server, result)
                let isResumed = tag != nil && have > 0 && isAsked
                #expect(server.ranges("/f").first == (isResumed ? "bytes=\(have)-" : .some(nil)))
                // I4
                #expect(try await agent.send(Get("/hello")).text == "Hello, ferry", sourceLocation: sourceLocation)
            }
        }
    }

    private func answer(_ status: String, _ fields: String..., body: String) -> LoopbackScript {
        [.send(head(status, fields.map { $0 + "\r\n" }.joined()) + body), .serve]
    }

    private var whole: LoopbackScript { answer("200 OK", "Content-Length: 10", "ETag: \"v1\"", body: "0123456789") }

    private func expectWhole(_ folder: borrowing Folder, _ result: Result<DownloadedFile, RequestError>) throws {
        #expect(try result.get().length == 10)
        #expect(folder.bytes("f") == ten && folder.names == ["f"])
    }

    @Test("R88: another range is not appended") func anotherRange() async throws {
        for range in ["bytes 0-7/10", "bytes 4-9/10", "bytes 6-9/10", "bytes 5-8/10", "bytes */10", "nonsense"] {
            let wrong = answer("206 Partial Content", "Content-Range: \(range)", "Connection: close", body: "01234567")
            try await withPart([wrong, whole]) { folder, server, result in
                try expectWhole(folder, result)
                #expect(server.ranges("/f") == ["bytes=5-", nil], "\(range)")
            }
            // A server that does so without a requested range has nothing usable.
            try await withPart([wrong]) { folder, _, result in
                guard case .failure(.resumeMismatch) = result else { return #expect(Bool(false), "\(range) \(result)") }
                #expect(folder.part("f") == Array(ten.prefix(5)) && folder.hasMetadata("f"), "the old bytes are good")
            }
        }
    }

    @Test("R89: more bytes than the range has are an error", arguments: [true, false])
    func moreThanTheRange(isChunked: Bool) async throws {
        let bytes = String(repeating: "x", count: 50)
        let lie =
            isChunked
            ? answer(
                "206 Partial Content", "Content-Range: bytes 5-9/10", "ETag: \"v1\"", "Transfer-Encoding: chunked",
                body: "32\r\n\(bytes)\r\n0\r\n\r\n")
            : answer("206 Partial Content", "Content-Range: bytes 5-9/10", "Content-Length: 50", body: bytes)
        try await withPart([lie]) { folder, server, result in
            guard case .failure(.resumeMismatch) = result else { return #expect(Bool(false), "\(result)") }
            #expect(folder.part("f") == Array(ten.prefix(5)) && server.requests.count { $0.path == "/f" } == 1)
        }
    }

    @Test("R89: fewer bytes than the range has are an error") func lessThanTheRange() async throws {
        let short = answer(
            "206 Partial Content", "Content-Range: bytes 5-9/10", "ETag: \"v1\"", "Transfer-Encoding: chunked",
            body: "3\r\n567\r\n0\r\n\r\n")
        try await withPart([short]) { folder, _, result in
            guard case .failure(.incompleteBody) = result else { return #expect(Bool(false), "\(result)") }
            #expect(folder.part("f") == Array("01234567".utf8))
        }
    }

    @Test(
        "R123: a status without a file leaves the old file",
        arguments: ["201 Created", "202 Accepted", "204 No Content", "205 Reset Content", "207 Multi-Status"],
        [nil, .range(200...299), .range(200...399), .codes([200, 206])] as [StatusValidation?])
    func statusWithoutAFile(status: String, validation: StatusValidation?) async throws {
        let hasBody = !status.hasPrefix("204") && !status.hasPrefix("205")
        let fields = status.hasPrefix("204") ? [] : ["Content-Length: \(hasBody ? 10 : 0)\r\n"]
        let script: LoopbackScript = [.send(head(status, fields.joined()) + (hasBody ? "in a while" : "")), .serve]
        // With and without a part that could be resumed.
        for have in [0, 5] {
            try await withPart([script], have: have, validation: validation) { folder, _, result in
                #expect(result.error?.code == .invalidStatusCode(Int(status.prefix(3)) ?? 0), "\(result)")
                #expect(folder.bytes("f") == Array("old".utf8))
                #expect(folder.part("f") == (have > 0 ? Array(ten.prefix(5)) : nil))
            }
        }
    }

    @Test(
        "R123: a request that accepts such a status takes its body as the file",
        arguments: ["201 Created", "203 X", "226 IM Used", "202 Accepted"])
    func namedStatus(status: String) async throws {
        let code = Int(status.prefix(3)) ?? 0
        for validation in [.codes([200, code]), .custom { $0 == code }, .any] as [StatusValidation] {
            try await withPart([answer(status, "Content-Length: 10", body: "0123456789")], validation: validation) {
                folder, _, result in
                try expectWhole(folder, result)
            }
        }
        // Two of them need not be named.
        if code == 203 || code == 226 {
            try await withPart([answer(status, "Content-Length: 10", body: "0123456789")]) { folder, _, result in
                try expectWhole(folder, result)
            }
        }
    }

    @Test("R123: such a status of an interceptor, a segment or the configuration is no file, either")
    func statusesFromElsewhere() async throws {
        let folder = try Folder()
        try folder.write(Array("old".utf8), "f")
        try await withFlow {
            $0.statusValidation = .any
            $0.interceptors = [
                Intercept { request, _ in request.url.hasSuffix("/i") ? InterceptedResponse(status: 204) : nil }
            ]
        } _: { server, agent in
            server.script(path: "/f", [.send(head("202 Accepted", "Content-Length: 4\r\n") + "wait"), .serve])
            server.script(path: "/e", [.send(head("404 X", "Content-Length: 4\r\n") + "none"), .serve])
            var segments = DownloadOptions(segments: 3)
            segments.minimumSegmentSize = 5
            for (path, options, code) in [
                ("/i", DownloadOptions(), 204), ("/f", segments, 202), ("/f", DownloadOptions(), 202),
                ("/e", DownloadOptions(), 404),
            ] {
                let error = await fault { () throws(RequestError) in
                    try await agent.download(Get(path), to: .file(folder.file("f")), options: options)
                }
                #expect(error?.code == .invalidStatusCode(code) && folder.bytes("f") == Array("old".utf8), "\(path)")
                #expect(folder.names == ["f"])
            }
        }
    }

    @Test("R90: a changed file is downloaded again") func anotherVersion() async throws {
        let part = "206 Partial Content"
        for fields in [
            ["Content-Range: bytes 5-9/11"], ["Content-Range: bytes 5-10/11"],
            ["Content-Range: bytes 5-9/10", "ETag: \"v2\""], ["Content-Range: bytes 5-9/10", "ETag: W/\"v1\""],
            ["Content-Range: bytes 5-9/10", "Content-Encoding: gzip"],
            // A server that ignores `If-Range`, and does not say which version it sends.
            ["Content-Range: bytes 5-9/10"],
        ] {
            let head = head(part, fields.map { $0 + "\r\n" }.joined() + "Connection: close\r\n")
            try await withPart([[.send(head + "ABCDE"), .serve], whole]) { folder, server, result in
                try expectWhole(folder, result)
                #expect(server.requests.first { $0.path == "/f" }?.headers["If-Range"] == "\"v1\"")
                #expect(server.requests.allSatisfy { $0.path != "/f" || $0.headers["Accept-Encoding"] == "identity" })
            }
        }
    }

    @Test("R90: a weak validator is never used") func weakValidator() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            for _ in 0..<2 {
                _ = await fault { () throws(RequestError) in
                    try await agent.download(Get("/bytes/1000?etag=W/%22x%22&cut=500"), to: .file(folder.file("f")))
                }
                #expect(folder.names == [], "a part that cannot be gone on with is of no use")
            }
            #expect(server.ranges("/bytes/1000") == [nil, nil])
        }
        try await withPart([whole], tag: nil) { folder, server, result in try expectWhole(folder, result) }
        // Nor one that was written to the metadata.
        try await withPart([whole], tag: "W/\"v1\"", isAsked: false) { folder, _, result in
            try expectWhole(folder, result)
        }
    }

    @Test("R91: a whole file is taken as the whole") func wholeFile() async throws {
        for body in ["ABCDEFGHIJ", "ABCDE", "A", "ABCDEFGHIJKLMN"] {
            let new = answer("200 OK", "Content-Length: \(body.count)", "ETag: \"v2\"", body: body)
            try await withPart([new]) { folder, server, result in
                let file = try result.get()
                #expect(
                    file.resumedFrom == 0 && folder.bytes("f") == Array(body.utf8) && folder.names == ["f"], "\(body)")
                #expect(server.ranges("/f") == ["bytes=5-"])
            }
        }
    }

    @Test("R92: nothing is written after the last byte") func nothingBehindTheLastByte() async throws {
        let done = answer(
            "416 Range Not Satisfiable", "Content-Range: bytes */10", "ETag: \"v1\"", "Content-Length: 3", body: "end")
        try await withPart([done], have: 10) { folder, server, result in
            try expectWhole(folder, result)
            #expect(server.ranges("/f") == ["bytes=10-"])
        }
        for (range, have) in [("bytes */11", 10), ("bytes */10", 5), ("nonsense", 10)] {
            let other = answer("416 Range Not Satisfiable", "Content-Range: \(range)", "Content-Length: 0", body: "")
            try await withPart([other, whole], have: have) { folder, server, result in
                try expectWhole(folder, result)
                #expect(server.ranges("/f") == ["bytes=\(have)-", nil])
            }
        }
    }

    @Test func anErrorKeepsAPartThatIsStillGood() async throws {
        for status in ["404 Not Found", "503 Service Unavailable"] {
            let error = answer(status, "Content-Length: 4", body: "oops")
            try await withPart([error]) { folder, _, result in
                guard case .failure(.invalidStatusCode) = result else { return #expect(Bool(false), "\(result)") }
                #expect(folder.part("f") == Array(ten.prefix(5)) && folder.hasMetadata("f"))
            }
        }
        try await withPart([[.reset]]) { folder, _, result in
            guard case .failure = result else { return #expect(Bool(false)) }
            #expect(folder.part("f") == Array(ten.prefix(5)) && folder.hasMetadata("f"))
        }
    }

    @Test func metadataOfAnotherOneOrDamagedIsNotUsed() async throws {
        let folder = try Folder()
        try await withFlow { server, agent in
            let url = server.baseURL + "/bytes/10"
            let damage: [(borrowing Folder) throws -> Void] = [
                { try $0.leavePart(Array("#####".utf8), "f", of: url + "0") },
                { try $0.leavePart(Array(repeating: 0, count: 11), "f", of: url) },
                { try $0.write(Array("#####".utf8), "f.ferry-part") },
                {
                    try $0.leavePart(Array("#####".utf8), "f", of: url)
                    try $0.write(Array("{".utf8), "f.ferry-meta")
                },
                {
                    try $0.leavePart(Array("#####".utf8), "f", of: url)
                    try $0.write(Array(repeating: 0xFF, count: 3_000_000), "f.ferry-meta")
                },
            ]
            for damage in damage {
                try damage(folder)
                let file = try await agent.download(Get("/bytes/10"), to: .file(folder.file("f")))
                #expect(file.resumedFrom == 0 && folder.bytes("f") == LoopbackServer.pattern(0..<10))
                #expect(folder.names == ["f"])
            }
            #expect(server.ranges("/bytes/10").allSatisfy { $0 == nil })
        }
    }
}
