internal import Ferry
internal import FerryTesting
internal import Foundation

extension TourStep {
    private static let fileLength = 3_000_000
    private static let cut = 1_234_567

    /// A server that hangs up in the middle of a file, and then has the rest of it.
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
        let folder = NSTemporaryDirectory() + "ferry-tour-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let error = try await failure { () throws(RequestError) in
            try await agent.download(File(), to: .directory(folder))
        }
        let file = try await agent.download(File(), to: .directory(folder))
        let bytes = FileManager.default.contents(atPath: file.path).map(Array.init)
        try expect(bytes == LoopbackServer.pattern(0..<fileLength), "not the file")
        return
            "\(error.code.name) after \(bytesText(file.resumedFrom)), the rest of \(bytesText(file.length)) by a range"
    }
}
