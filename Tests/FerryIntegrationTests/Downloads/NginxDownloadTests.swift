import Ferry
import FoundationEssentials
import Testing

/// Files from nginx, by both versions of HTTP.
@Suite(.timeLimit(.minutes(2))) struct NginxDownloadTests {
    private static let length = 1024 * 1024
    private static let sites = [Nginx.Site.tls, .http2]

    private func configuration() throws -> NetworkConfiguration {
        var configuration = try NetworkConfiguration.trusting
        configuration.http2 = .negotiated
        return configuration
    }

    /// Gives a directory of its own to `body`.
    private func withDirectory(_ body: (String) async throws -> Void) async throws {
        let path = FileManager.default.temporaryDirectory.path + "/ferry-files-\(token())"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await body(path)
    }

    private func version(_ site: Nginx.Site) -> String { site == .http2 ? "HTTP/2.0" : "HTTP/1.1" }

    @Test("one that is cancelled goes on where it was, and nothing is asked for again", arguments: sites)
    func resumed(site: Nginx.Site) async throws {
        let nginx = try Nginx.shared
        let mark = token()
        let request = Get(nginx.url("/1m.bin?\(mark)", site))
        try await withDirectory { directory in
            try await withAgent(configuration()) { agent in
                let target = DownloadTarget.file(directory + "/file")
                let (progress, told) = AsyncStream.makeStream(of: DownloadProgress.self)
                let first = Task {
                    await failure { () async throws(RequestError) in
                        try await agent.download(request, to: target, options: .init(bytesPerSecond: 500_000)) {
                            told.yield($0)
                        }
                    }
                }
                _ = await progress.first { $0.received > 100_000 }
                first.cancel()
                #expect(await first.value?.code == .cancelled)
                #expect(!FileManager.default.fileExists(atPath: directory + "/file"))

                let file = try await agent.download(
                    request, to: target, options: .init(sha256: sha256(Nginx.pattern(Self.length))))
                #expect(file.resumedFrom > 100_000 && file.length == Int64(Self.length))
                let lines = try await nginx.log(mark, count: 2)
                #expect(lines.allSatisfy { $0.version == version(site) })
                let rest = lines.filter { $0.status == 206 }.map { Int64($0.sent) }
                #expect(rest == [Int64(Self.length) - file.resumedFrom])
                #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["file"])
            }
        }
    }

    @Test("segments are parts of one file", arguments: sites)
    func segments(site: Nginx.Site) async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withDirectory { directory in
            try await withAgent(configuration()) { agent in
                var options = DownloadOptions(sha256: sha256(Nginx.pattern(Self.length)), segments: 4)
                options.leastSegment = 128 * 1024
                let file = try await agent.download(
                    Get(nginx.url("/1m.bin?\(mark)", site)), to: .directory(directory), options: options)
                #expect(file.path == directory + "/1m.bin" && file.length == Int64(Self.length))
                // The first answer, which says how long the file is, is left for the parts.
                let lines = try await nginx.log(mark, count: 5)
                #expect(lines.allSatisfy { $0.version == version(site) })
                #expect(lines.filter { $0.status == 206 }.map(\.sent) == Array(repeating: Self.length / 4, count: 4))
            }
        }
    }

    @Test("64 at once, each to its own file", arguments: sites)
    func many(site: Nginx.Site) async throws {
        let nginx = try Nginx.shared
        let right = sha256(Nginx.pattern(64 * 1024))
        try await withDirectory { directory in
            try await withAgent(configuration()) { agent in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<64 {
                        group.addTask {
                            let file = try await agent.download(
                                Get(nginx.url("/64k.bin", site)), to: .file(directory + "/\(number)"),
                                options: .init(sha256: right))
                            #expect(file.httpVersion == (site == .http2 ? .http2 : .http11))
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 64)
            }
        }
    }
}
