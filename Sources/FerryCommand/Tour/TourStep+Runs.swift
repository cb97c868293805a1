internal import Ferry
internal import FerryTesting
internal import FoundationEssentials

extension TourStep {
    /// A GET of a path with this delay in milliseconds; the value is its number.
    private struct Late: Request {
        typealias Value = Int
        let milliseconds: Int
        var path: String { "/delay/\(milliseconds)" }
        func value(from response: Response) throws -> Int { milliseconds }
    }

    static let batch = TourStep("a batch") { agent in
        let (first, second, others) = try await agent.send(
            batch: Late(milliseconds: 30), Late(milliseconds: 20), BatchRequest((1...10).map(Late.init), atMost: 4))
        try expect(first == 30 && second == 20 && others == Array(1...10), "the values are not in order")
        return "2 and 10 at once, typed and in order"
    }

    static let chain = TourStep("a chain") { agent in
        let value = try await agent.send(
            ChainRequest(Late(milliseconds: 1))
                .then { BatchRequest(Late(milliseconds: $0 + 1), Late(milliseconds: $0 + 2)) }
                .then { b, c in Late(milliseconds: b + c) })
        try expect(value == 5, "it came to \(value)")
        return "A, then B and C at once, then D"
    }

    static let plan = TourStep("a plan") { agent in
        let text = """
            {
              "name": "tour",
              "requests": {
                "user": {"path": "/users/7", "capture": {"nick": "/nick"}, "expect": {"json": {"/level": 3}}},
                "echo": {"path": "/echo", "json": {"hello": "{{nick}}", "level": "{{user.json.level}}"}},
                "late": "/delay/10"
              },
              "run": {"chain": ["user", {"batch": ["echo", {"request": "late", "repeat": 2}]}]}
            }
            """
        let plan = try PlanReader(path: "tour", text: Data(text.utf8)).plan()
        let report = try await PlanRun(PlanStart(plan)).perform(by: agent)
        try expect(report.isOK, report.table)
        return "\(report.finished) requests from JSON, as in `ferry run`"
    }
}

extension TourStep {
    private static let fileLength = 3_000_000
    private static let cut = 1_234_567

    /// A server that closes the connection in the middle of a file, and then sends the rest of it.
    static func prepareDownload(_ server: LoopbackServer) {
        let bytes = LoopbackServer.pattern(0..<fileLength)
        server.script(
            path: "/files/tour.bin", uses: 1,
            [
                .send("HTTP/1.1 200 OK\r\nETag: \"tour\"\r\nContent-Length: \(fileLength)\r\n\r\n"),
                .sendBytes(Array(bytes[..<cut])), .close,
            ])
        server.handle("GET", "/files/tour.bin") { request in
            let isResume = request.headers["Range"] == "bytes=\(cut)-" && request.headers["If-Range"] == "\"tour\""
            let rest = isResume ? Array(bytes[cut...]) : bytes
            var headers: LoopbackHeaders = ["ETag": "\"tour\""]
            if isResume { headers["Content-Range"] = "bytes \(cut)-\(fileLength - 1)/\(fileLength)" }
            return LoopbackResponse(status: isResume ? 206 : 200, headers: headers, body: rest)
        }
    }

    static let download = TourStep("a resumed download") { agent in
        struct File: Request {
            var path: String { "/files/tour.bin" }
        }
        let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-tour-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let error = try await failure { () throws(RequestError) in
            try await agent.download(File(), to: .directory(folder))
        }
        let file = try await agent.download(File(), to: .directory(folder))
        let bytes = FileManager.default.contents(atPath: file.path).map(Array.init)
        try expect(bytes == LoopbackServer.pattern(0..<fileLength), "not the file")
        return "\(error.code.name), resumed at \(bytesText(file.resumedFrom))"
    }
}

extension TourStep {
    static let cacheHit = TourStep("a cache hit") { agent in
        struct Nick: Decodable, Sendable {
            var nick: String
        }
        struct UserInfo: Request {
            typealias Value = Nick
            var path: String { "/users/7" }
            var cachePolicy: CachePolicy { .timeToLive(.seconds(180), version: 2, write: .synchronous) }
        }
        let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-tour-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var configuration = NetworkConfiguration(baseURL: agent.baseURL)
        configuration.cache = CacheConfiguration(directory: folder)
        // Two agents, like two processes: the second one finds what the first one stored.
        let first = try await withNetworkAgent(configuration: configuration, grace: .zero) { agent in
            try await agent.send(UserInfo())
        }
        let second = try await withNetworkAgent(configuration: configuration, grace: .zero) { agent in
            try await agent.send(UserInfo(), cache: .cacheOnly)
        }
        try expect(!first.isFromCache && second.isFromCache, "no hit")
        try expect(second.value.nick == first.value.nick, "another answer")
        return "GET /users/7 again, \(second.bodyLength) bytes from disk"
    }
}
