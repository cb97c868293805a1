internal import Ferry
internal import FerryMeasurement
internal import Synchronization

private let crowd = 10_000

/// An agent that allows 10,000 concurrent exchanges.
private func makeAgent() -> NetworkAgent {
    var configuration = NetworkConfiguration()
    configuration.limits.maxConcurrentTransfers = crowd
    configuration.limits.transfersPerHost = crowd
    return NetworkAgent(configuration: configuration)
}

/// 10,000 in flight against a server that responds after 500 ms.
enum SlowCase {
    static func closures(_ server: String) async throws -> Measurement {
        try await measure(server) { agent, request in
            let answered = Counter()
            let ended = Counter()
            for _ in 0..<crowd {
                agent.start(request) { result in
                    if case .success = result { answered.add() }
                    ended.add()
                }
            }
            while ended.value < crowd { try await Task.sleep(for: .milliseconds(10)) }
            return answered.value
        }
    }

    static func tasks(_ server: String) async throws -> Measurement {
        try await measure(server) { agent, request in
            let answered = Counter()
            let ended = Counter()
            for _ in 0..<crowd {
                Task {
                    if (try? await agent.send(request).response.status) == 200 { answered.add() }
                    ended.add()
                }
            }
            while ended.value < crowd { try await Task.sleep(for: .milliseconds(10)) }
            return answered.value
        }
    }

    /// `send` returns how many had the status 200.
    private static func measure(
        _ server: String, _ send: (NetworkAgent, Get) async throws -> Int
    ) async throws -> Measurement {
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let agent = makeAgent()
        let before = ProcessUsage.memory
        let answered = try await send(agent, Get(path: server + "/delay/500"))
        stopwatch.finish(&measurement)
        measurement.add(agent.statistics)
        // The first may have a response before the last has started: the number of connections shows how many ran at
        // once.
        let connections = Double(agent.statistics.connectionsOpened)
        measurement.extra = [
            "answered": Double(answered), "connections": connections,
            "bytes_each": Double(ProcessUsage.peakMemory - before) * 1024 / max(1, connections),
            "seconds": measurement.seconds,
            "longest_turn_ms": agent.statistics.longestTurn / .milliseconds(1),
        ]
        await agent.shutdown(grace: .zero)
        return measurement
    }
}

/// 10,000 in flight, cancelled at once.
enum CancelCase {
    static func run(_ server: String) async throws -> Measurement {
        let agent = makeAgent()
        let request = Get(path: server + "/delay/60000")
        let results = Counter()
        let cancelled = Counter()
        for _ in 0..<crowd {
            agent.start(request) { result in
                results.add()
                if case .failure(let error) = result, error.code == .cancelled { cancelled.add() }
            }
        }
        // All of them must have a connection, or the cancels would only find waiting runs.
        while agent.statistics.sockets < crowd && results.value == 0 { try await Task.sleep(for: .milliseconds(20)) }
        try await Task.sleep(for: .milliseconds(500))

        let probe = LoopProbe()
        async let longestHold = probe.watch(agent)
        while !probe.isWatching { try await Task.sleep(for: .milliseconds(1)) }
        let start = monotonicNanoseconds()
        agent.cancelAll()
        while results.value < crowd { try await Task.sleep(for: .milliseconds(1)) }
        let seconds = Double(monotonicNanoseconds() - start) / 1e9
        // Long enough for a second result of any of them to come, if there were one.
        try await Task.sleep(for: .milliseconds(200))
        probe.end()

        var measurement = Measurement()
        measurement.extra = [
            "results": Double(results.value), "cancelled": Double(cancelled.value), "seconds": seconds,
            "longest_hold_ms": Double(await longestHold) / 1e6,
        ]
        await agent.shutdown(grace: .zero)
        return measurement
    }
}

/// Measures how long the loop is held: a job on its thread that schedules itself again and again.
///
/// The agent's own `longestTurn` counts from the start, and includes opening 10,000 connections.
private final class LoopProbe: Sendable {
    private let watching = Atomic(false)
    private let ended = Atomic(false)

    var isWatching: Bool { watching.load(ordering: .acquiring) }

    func end() { ended.store(true, ordering: .releasing) }

    /// The longest time between two turns, in nanoseconds.
    func watch(_ agent: NetworkAgent) async -> UInt64 {
        await withTaskExecutorPreference(agent.taskExecutor) {
            var longest: UInt64 = 0
            var last = monotonicNanoseconds()
            while !ended.load(ordering: .acquiring) {
                await Task.yield()
                let now = monotonicNanoseconds()
                longest = max(longest, now - last)
                last = now
                watching.store(true, ordering: .releasing)
            }
            return longest
        }
    }
}
