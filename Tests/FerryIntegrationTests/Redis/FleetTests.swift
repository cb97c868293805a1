import FerryMeasurement
import FerryTesting
import FoundationEssentials
import Glibc
import Testing

/// `ferry bench --fleet` and `--join` as processes, which meet in Debian's redis-server.
@Suite(.timeLimit(.minutes(3))) struct FleetTests {
    private struct Report: Decodable {
        struct Member: Decodable {
            var outcome: String
            var requests: Int
        }

        var requests: Int
        var ok: Int
        var latency: [String: Double]
        var fleet: [Member]?
        var warnings: [String]

        private enum CodingKeys: String, CodingKey {
            case requests, ok, fleet, warnings
            case latency = "latency_us"
        }
    }

    private func command(_ arguments: [String]) throws -> ChildProcess {
        let program = URL(filePath: FerryCommand.ownTestBundle).deletingLastPathComponent().appending(path: "ferry")
        return try ChildProcess(
            ["/bin/sh", "-c", #"exec "$0" bench "$@" 2>&1"#, program.path] + arguments)
    }

    private func report(_ end: ChildProcess.End) throws -> Report {
        let line = try #require(end.output.split(separator: "\n").first { $0.hasPrefix("{") }, "\(end.output)")
        return try JSONDecoder().decode(Report.self, from: Data(line.utf8))
    }

    private func finish(_ process: ChildProcess) async -> ChildProcess.End {
        await Task.detached { process.finish() }.value
    }

    @Test("three workers carry one load, and conditions hold for all of it")
    func three() async throws {
        let redis = try RedisServer()
        let fleet = "unix://\(redis.socket)#three"
        try await withLoopbackServer { server in
            let workers = try (0..<3).map { _ in try command(["--join", fleet, "--json"]) }
            let coordinator = try command([
                server.baseURL + "/delay/5", "--fleet", fleet, "--workers", "3", "-r", "300", "-z", "2", "-w", "0.3",
                "--json", "--fail-if", "p50<1ms", "--fail-if", "requests<600",
            ])
            let end = await finish(coordinator)
            let parts = try workers.map { try report($0.finish()) }
            let merged = try report(end)
            #expect(end.code == 0 && merged.requests == 600 && merged.ok == 600, "\(end.output)")
            #expect(parts.map(\.ok) == [200, 200, 200])
            #expect(merged.fleet?.map(\.outcome) == ["finished", "finished", "finished"])
            #expect(merged.latency["max"] == parts.compactMap { $0.latency["max"] }.max())
            // The whole is no better than its best part, and no worse than its worst.
            let p99 = parts.compactMap { $0.latency["p99"] }
            let whole = try #require(merged.latency["p99"])
            #expect(whole >= (p99.min() ?? 0) && whole <= (p99.max() ?? 0))
        }
        #expect(try RedisProbe(redis).keys.isEmpty)
    }

    @Test("a worker that dies is reported, and the exit code is 3")
    func killed() async throws {
        let redis = try RedisServer()
        let fleet = "unix://\(redis.socket)#killed"
        try await withLoopbackServer { server in
            let workers = try (0..<3).map { _ in try command(["--join", fleet, "--json"]) }
            let coordinator = try command([
                server.baseURL + "/hello", "--fleet", fleet, "--workers", "3", "-c", "3", "-z", "3", "--json",
                "--fail-if", "failed>99%",
            ])
            try await server.waitForRequests(30)
            workers[0].signal(SIGKILL)
            let end = await finish(coordinator)
            let merged = try report(end)
            #expect(end.code == 3 && merged.fleet?.map(\.outcome).sorted() == ["finished", "finished", "lost"])
            let loss = " was lost: it stopped sending messages; the figures include "
            #expect(end.output.contains(loss), "\(end.output)")
            #expect(merged.warnings.contains { $0.contains("was lost") })
            let parts = try workers.dropFirst().map { try report($0.finish()) }
            #expect(merged.ok >= parts.map(\.ok).reduce(0, +))
            #expect(workers[0].finish().code == -SIGKILL)
        }
        #expect(try RedisProbe(redis).keys.allSatisfy { $0.hasSuffix(":state") }, "that expires")
    }

    @Test("a coordinator that dies ends its workers")
    func orphans() async throws {
        let redis = try RedisServer()
        let fleet = "unix://\(redis.socket)#orphans"
        try await withLoopbackServer { server in
            let worker = try command(["--join", fleet])
            let coordinator = try command([
                server.baseURL + "/hello", "--fleet", fleet, "--workers", "1", "-c", "1", "-z", "100",
            ])
            try await server.waitForRequests(5)
            coordinator.signal(SIGKILL)
            let end = await finish(worker)
            #expect(end.code == 3 && end.output.contains("ferry bench: the coordinator is gone"), "\(end.output)")
            #expect(coordinator.finish().code == -SIGKILL)
        }
    }

    @Test("without Redis the command says so, and Redis is not needed otherwise")
    func noRedis() throws {
        let end = try FerryCommand.run("bench", "--join", "unix:///nowhere.sock#a", "--join-timeout", "1")
        #expect(end.code == 3 && end.error == "ferry bench: no connection to Redis at /nowhere.sock\n")
    }
}

/// What is in a server.
private struct RedisProbe {
    let keys: [String]

    init(_ redis: RedisServer) throws {
        let end = try ChildProcess(["redis-cli", "-s", redis.socket, "--raw", "keys", "*"]).finish()
        keys = end.output.split(separator: "\n").map(String.init)
    }
}
