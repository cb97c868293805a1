import Ferry
import FerryMeasurement
import FerryRedis
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Glibc
import Testing

@testable import FerryTestSupport

/// Debian's redis-server, and ten processes that share it.
@Suite(.timeLimit(.minutes(3))) struct RedisTests {
    /// What a process has reported last.
    private struct Figures: Sendable {
        var runs = 0
        var hits = 0
        var failed = 0
        var wrong = 0

        init(_ numbers: some Collection<Int>) {
            let numbers = Array(numbers)
            guard numbers.count == 4 else { return }
            (runs, hits, failed, wrong) = (numbers[0], numbers[1], numbers[2], numbers[3])
        }
    }

    private final class Board: Sendable {
        let figures = Mutex([Int: Figures]())
        let isOver = Mutex(false)
        let fetches = Mutex([String: Int]())

        func serve(on server: LoopbackServer) {
            server.handle("/items/*") { request in
                let number = request.path.split(separator: "/").last ?? ""
                self.fetches.withLock { $0[request.path, default: 0] += 1 }
                return LoopbackResponse(headers: ["Cache-Control": "max-age=3600"], text: "item \(number)")
            }
            server.handle("/report/*") { request in
                let numbers = request.path.split(separator: "/").compactMap { Int($0) }
                if let pid = numbers.first { self.figures.withLock { $0[pid] = Figures(numbers.dropFirst()) } }
                return LoopbackResponse(text: self.isOver.withLock { $0 } ? "stop" : "on")
            }
        }

        /// Waits until all processes have got this far.
        func wait(_ what: String, _ count: Int, _ isSoFar: (Int, Figures) -> Bool) async throws {
            let _: Bool = try await eventually(what, within: .seconds(60)) {
                let all = figures.withLock { $0 }
                return all.count == count && all.allSatisfy { isSoFar($0.key, $0.value) } ? true : nil
            }
        }
    }

    private static let processes = 10

    private func probe(
        _ redis: RedisServer, _ base: String, runs: Int, policy: String = "time"
    ) throws -> ChildProcess {
        let program = URL(filePath: FerryCommand.ownTestBundle).deletingLastPathComponent()
            .appending(path: "FerryRedisProbe").path
        return try ChildProcess([program, redis.socket, base, "\(runs)", policy])
    }

    private func figures(of probe: ChildProcess) -> Figures {
        let end = probe.finish()
        #expect(end.code == 0)
        return Figures(end.output.split(whereSeparator: \.isWhitespace).compactMap { Int($0) })
    }

    @Test("ten processes fetch a response that all of them need once", arguments: ["time", "http"])
    func tenProcessesFetchOnce(policy: String) async throws {
        let redis = try RedisServer()
        let board = Board()
        try await withLoopbackServer { server in
            board.serve(on: server)
            let probes = try (0..<Self.processes).map { _ in
                try probe(redis, server.baseURL, runs: 1000, policy: policy)
            }
            let all = probes.map { figures(of: $0) }
            #expect(all.allSatisfy { $0.runs == 1000 && $0.failed == 0 && $0.wrong == 0 }, "\(all)")
            let fetches = board.fetches.withLock { $0 }
            #expect(fetches.count == 50 && fetches.values.allSatisfy { $0 == 1 }, "\(fetches)")
        }
    }

    @Test("each process of the command is answered by what another has stored in Redis")
    func command() async throws {
        let port = try freePorts(1)[0]
        let redis = try RedisServer(options: ["--port", "\(port)", "--bind", "127.0.0.1"])
        try await withLoopbackServer { server in
            server.handle("/fresh") { _ in LoopbackResponse(headers: ["Cache-Control": "max-age=60"], text: "a") }
            let line = ["fetch", server.baseURL + "/fresh", "--json", "--http-cache", "--cache"]
            for (index, url) in ["redis://127.0.0.1:\(port)/3", "unix://\(redis.socket)?db=3"].enumerated() {
                let outcome = try FerryCommand.run(line + [url])
                let report = try #require(try outcome.reports.first)
                #expect(report.ok && report.fromCache == (index == 1), "\(outcome.output)\(outcome.error)")
            }
            let other = try FerryCommand.run(line + ["redis://127.0.0.1:\(port)"])
            #expect(try other.reports.first?.fromCache == false, "another database")
            #expect(server.requestCount == 2)
        }
    }

    @Test("killing and restarting Redis fails no request")
    func killedInTheMiddle() async throws {
        let redis = try RedisServer()
        let board = Board()
        try await withLoopbackServer { server in
            board.serve(on: server)
            let probes = try (0..<Self.processes).map { _ in try probe(redis, server.baseURL, runs: 0) }
            try await board.wait("hits", Self.processes) { $1.hits > 50 }
            redis.kill()
            let before = board.figures.withLock { $0 }
            try await board.wait("runs without Redis", Self.processes) { $1.runs > (before[$0]?.runs ?? 0) + 100 }
            try redis.start()
            let without = board.figures.withLock { $0 }
            try await board.wait("hits again", Self.processes) { $1.hits > (without[$0]?.hits ?? 0) + 50 }
            board.isOver.withLock { $0 = true }
            let all = probes.map { figures(of: $0) }
            #expect(all.allSatisfy { $0.failed == 0 && $0.wrong == 0 }, "\(all)")
        }
    }

    @Test("a Redis whose memory is full stores nothing, and fails no request")
    func fullMemory() async throws {
        let redis = try RedisServer(options: ["--maxmemory", "1mb", "--maxmemory-policy", "noeviction"])
        try await withLoopbackServer { server in
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.cache = CacheConfiguration { [socket = redis.socket] in
                var redis = RedisConfiguration(unixSocket: socket)
                (redis.timeout, redis.writeTimeout) = (.seconds(5), .seconds(5))
                redis.minCompressedBytes = nil
                return RedisCacheStorage(redis)
            }
            configuration.cache?.memoryBytes = 0
            try await withNetworkAgent(configuration: configuration) { agent in
                for _ in 0..<3 {
                    let reply = try await agent.send(stored("/bytes/100000"))
                    #expect(reply.response.bodyLength == 100_000 && !reply.isFromCache)
                }
                let statistics = await agent.cache.statistics
                #expect(statistics.failedWrites == 3 && statistics.faults == ["noSpace": 3])
                #expect(statistics.misses == [.notFound: 3])
            }
        }
    }

    @Test("an entry that one agent removes is gone from the memory of another", arguments: [false, true])
    func removals(all: Bool) async throws {
        let redis = try RedisServer()
        try await withLoopbackServer { server in
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.cache = CacheConfiguration { [socket = redis.socket] in
                var redis = RedisConfiguration(unixSocket: socket)
                (redis.timeout, redis.writeTimeout) = (.seconds(5), .seconds(5))
                return RedisCacheStorage(redis)
            }
            let (one, other) = (
                NetworkAgent(configuration: configuration), NetworkAgent(configuration: configuration)
            )
            try await one.send(stored("/hello"))
            let _: Bool = try await eventually("a hit in memory") {
                _ = try await other.send(stored("/hello"))
                return await other.cache.statistics.memoryHits > 0 ? true : nil
            }
            #expect(server.requestCount == 1)
            if all {
                // Another application's, whose prefix begins with the same letters.
                func redisCommand(_ words: String...) throws -> String {
                    try ChildProcess(["redis-cli", "-s", redis.socket] + words).finish().output
                }
                _ = try redisCommand("set", "ferry:42:cart", "full")
                #expect(await one.cache.removeAll())
                #expect(try redisCommand("get", "ferry:42:cart").contains("full"))
            } else {
                #expect(await one.cache.remove(stored("/hello")))
            }
            let _: Bool = try await eventually("a miss") {
                let reply = try await other.send(stored("/hello"))
                return reply.isFromCache ? nil : true
            }
            #expect(server.requestCount == 2)
            await one.shutdown()
            await other.shutdown()
        }
    }
}

/// A request whose response is stored.
func stored(_ path: String) -> HTTPRequest<Response> {
    var request = HTTPRequest(.get, path)
    request.cachePolicy = .timeToLive(.seconds(3600), write: .synchronous)
    return request
}
