import Ferry
import FerryTesting
import Foundation
import Testing

@testable import FerryTestSupport

/// The code of the article "Downloads".
@Suite(.timeLimit(.minutes(1))) struct DownloadsExamples {
    struct Image: Request {
        let id: String
        var path: String { "/images/\(id)" }
    }

    private func load(_ agent: NetworkAgent, _ folder: String) async throws -> String {
        let file = try await agent.download(Image(id: "1.jpg"), to: .directory(folder)) { progress in
            print(progress.fraction ?? 0, progress.remaining ?? .zero)
        }
        print(file.path, file.length, file.resumedFrom)
        return file.path
    }

    private func loadChecked(_ agent: NetworkAgent, _ target: String, _ digest: String) async throws -> Int64 {
        var options = DownloadOptions(expectedLength: 1_048_576, sha256: digest)
        options.segments = 4  // parts that are loaded at once
        options.bytesPerSecond = 2_000_000
        let file = try await agent.download(Image(id: "disk.img"), to: .file(target), options: options)
        return file.length
    }

    private func loadOnce(_ agent: NetworkAgent, _ folder: String) async throws {
        var options = DownloadOptions()
        options.skipsUnchanged = true
        let file = try await agent.download(Image(id: "map.png"), to: .directory(folder), options: options)
        print(file.isUnchanged ? "already complete" : "downloaded", file.path)
    }

    private func watch(_ agent: NetworkAgent, _ folder: String) async -> RunState {
        let task = agent.download(Image(id: "2.jpg"), to: .directory(folder)) { result in
            switch result {
            case .success(let file): print(file.path)
            case .failure(let error): print(error)
            }
        }
        for await progress in task.progressUpdates where progress.rate > 0 {
            print(progress.received, progress.total ?? -1)
        }
        return task.state
    }

    @Test func theFilesAreThere() async throws {
        let folder = NSTemporaryDirectory() + "ferry-downloads-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await withLoopbackServer { server in
            server.handle("/images/*") { request in
                let size = request.path.hasSuffix("disk.img") ? 1_048_576 : 10_000
                return LoopbackResponse(headers: ["ETag": "\"1\""], body: LoopbackServer.pattern(0..<size))
            }
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
            let path = try await load(agent, folder)
            #expect(path == folder + "/1.jpg")
            let wrong = String(repeating: "0", count: 64)
            await #expect(throws: RequestError.self) { try await loadChecked(agent, folder + "/disk.img", wrong) }
            try await loadOnce(agent, folder)
            try await loadOnce(agent, folder)
            #expect(FileManager.default.contents(atPath: folder + "/map.png")?.count == 10_000)
            #expect(!FileManager.default.fileExists(atPath: folder + "/map-1.png"))
            let state = await watch(agent, folder)
            #expect(state == .finished || state == .finishing || state == .running)
            await agent.shutdown()
            #expect(FileManager.default.contents(atPath: folder + "/2.jpg")?.count == 10_000)
        }
    }
}
