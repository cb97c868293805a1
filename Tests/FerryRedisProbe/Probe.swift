import Ferry
import FerryRedis
import Glibc

/// A process of its own for the tests of the store in Redis: `FerryRedisProbe SOCKET BASE RUNS POLICY`, where POLICY is
/// `time` or `http`.
///
/// It requests 50 items from BASE with some tasks at once, and shares the responses through Redis. After each round it
/// reports its progress to BASE, whose response says whether to continue. With RUNS it ends after that many.
@main
struct Probe {
    private static func item(_ number: Int, _ policy: CachePolicy) -> HTTPRequest<String> {
        var request = HTTPRequest(.get, "/items/\(number)", as: String.self)
        request.cachePolicy = policy
        return request
    }

    private static func report(_ figures: [Int]) -> HTTPRequest<String> {
        HTTPRequest(.get, "/report/" + figures.map(String.init).joined(separator: "/"), as: String.self)
    }

    private static let items = 50
    private static let tasks = 5
    private static let roundRuns = 20

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let runs = Int(arguments[3]) else { exit(2) }
        var redis = RedisConfiguration(unixSocket: arguments[1])
        // A machine with two cores runs ten of these.
        (redis.timeout, redis.writeTimeout) = (.seconds(5), .seconds(5))
        (redis.pause, redis.longestPause) = (.milliseconds(20), .milliseconds(100))
        redis.lease = .seconds(20)
        var configuration = NetworkConfiguration(baseURL: arguments[2])
        configuration.cache = CacheConfiguration { [redis] in RedisCacheStorage(redis) }
        // Every hit comes from Redis.
        configuration.cache?.memoryBytes = 0
        let agent = NetworkAgent(configuration: configuration)
        let policy = arguments[4] == "http" ? CachePolicy.http() : .timeToLive(.seconds(3600))
        // Done, hits, failed, wrong.
        var figures = [0, 0, 0, 0]
        while true {
            let sums = await round(from: figures[0], policy, agent)
            figures = zip(figures, sums).map { $0 + $1 }
            if runs > 0 {
                if figures[0] >= runs { break }
            } else {
                let answer = try await agent.send(report([Int(getpid())] + figures)).value
                if answer != "on" { break }
            }
        }
        await agent.shutdown()
        print(figures.map(String.init).joined(separator: " "))
    }

    /// Some tasks at once; returns the sums of their reports.
    @concurrent
    private static func round(from start: Int, _ policy: CachePolicy, _ agent: NetworkAgent) async -> [Int] {
        let share = roundRuns / tasks
        return await withTaskGroup(of: [Int].self) { group in
            for task in 0..<tasks {
                group.addTask { await perform((start + task * share)..<(start + (task + 1) * share), policy, agent) }
            }
            var sums = [0, 0, 0, 0]
            for await figures in group { sums = zip(sums, figures).map { $0 + $1 } }
            return sums
        }
    }

    private static func perform(_ runs: Range<Int>, _ policy: CachePolicy, _ agent: NetworkAgent) async -> [Int] {
        var figures = [0, 0, 0, 0]
        for run in runs {
            let number = (run &* 7 &+ Int(getpid())) % items
            figures[0] += 1
            do {
                let reply = try await agent.send(item(number, policy))
                if reply.isFromCache { figures[1] += 1 }
                if reply.value != "item \(number)" { figures[3] += 1 }
            } catch {
                figures[2] += 1
            }
        }
        return figures
    }
}
