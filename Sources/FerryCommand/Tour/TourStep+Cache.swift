internal import Ferry
internal import FoundationEssentials

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
        // Two agents, as if there were two processes: the second one finds what the first one kept.
        let first = try await withNetworkAgent(configuration: configuration, grace: .zero) { agent in
            try await agent.send(UserInfo())
        }
        let second = try await withNetworkAgent(configuration: configuration, grace: .zero) { agent in
            try await agent.send(UserInfo(), cache: .cacheOnly)
        }
        try expect(!first.isFromCache && second.isFromCache, "no hit")
        try expect(second.value.nick == first.value.nick, "another answer")
        return "GET /users/7 again is \(second.value.nick), from the disk, \(second.bodyLength) bytes"
    }
}
