internal import Ferry
internal import FerryMeasurement
internal import FerryRedis
internal import FerryTesting
internal import Foundation

/// Hits from Debian's redis-server on loopback, 2 KB of JSON with a schema, without the cache in memory.
enum RedisCase {
    /// `nil` if redis-server is not installed.
    static func measure() async throws -> [String: Double]? {
        guard let program = findProgram("redis-server") else { return nil }
        let port = try Nginx.freePort()
        let process = try ChildProcess([
            program, "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
        ])
        defer { process.stop() }
        try waitUntilListening(port: port, name: "redis-server")
        var redis = RedisConfiguration(port: Int(port))
        redis.timeout = .seconds(1)
        var configuration = NetworkConfiguration(baseURL: "http://127.0.0.1")
        configuration.cache = CacheConfiguration { [redis] in RedisCacheStorage(redis) }
        configuration.cache?.memoryBytes = 0
        let headers: Headers = ["Content-Type": "application/json; charset=utf-8", "ETag": "\"7d1f0c52\""]
        let agent = NetworkAgent(
            configuration: configuration, stub: StubTransport(always: .response(headers: headers, body: CacheCase.body))
        )
        let entries = 1000
        for number in 0..<entries { _ = try await agent.send(CacheCase.Document(number: number)) }
        while await agent.cache.statistics.queuedBytes > 0 { try await Task.sleep(for: .milliseconds(1)) }
        var times: [Double] = []
        let count = 20_000
        let before = ProcessUsage.now
        for number in 0..<count {
            let start = monotonicNanoseconds()
            let reply = try await agent.send(CacheCase.Document(number: number % entries), cache: .cacheOnly)
            times.append(Double(monotonicNanoseconds() - start) / 1000)
            guard reply.bodyLength == CacheCase.body.utf8.count else { throw BenchmarkError("another body") }
        }
        let used = ProcessUsage.now - before
        let hits = await agent.cache.statistics
        guard hits.memoryHits == 0, hits.diskHits == UInt64(count) else { throw BenchmarkError("no hits of Redis") }
        await agent.shutdown()
        times.sort()
        return [
            "redis_hit_us": times[count / 2], "redis_hit_us_p99": times[count * 99 / 100],
            "redis_hit_cpu_us": (used.user + used.system) / Double(count),
        ]
    }
}
