internal import Ferry
internal import FerryMeasurement

/// An agent that lets 10,000 exchanges be at work at once.
private let crowd = 10_000

private func makeAgent() -> NetworkAgent {
    var configuration = NetworkConfiguration()
    configuration.limits.concurrentTransfers = crowd
    configuration.limits.transfersPerHost = crowd
    return NetworkAgent(configuration: configuration)
}

/// 10,000 in flight against a server that answers after 500 ms.
enum SlowCase {
    static func run(_ server: String) async throws -> Measurement {
        var measurement = Measurement()
        let stopwatch = Stopwatch()
        let agent = makeAgent()
        let request = Get(path: server + "/delay/500")
        let before = ProcessUsage.memory
        let (answered, peak) = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<crowd {
                group.addTask { (try? await agent.send(request).response.status) == 200 }
            }
            let answered = await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            return (answered, ProcessUsage.peakMemory)
        }
        stopwatch.finish(&measurement)
        measurement.add(agent.statistics)
        measurement.extra = [
            "answered": Double(answered), "bytes_each": Double(peak - before) * 1024 / Double(crowd),
            "seconds": measurement.seconds, "connections": Double(agent.statistics.connectionsOpened),
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
        // All of them shall have a connection, or the cancels would only find waiting runs.
        while agent.statistics.sockets < crowd && results.value == 0 { try await Task.sleep(for: .milliseconds(20)) }
        try await Task.sleep(for: .milliseconds(500))
        let turnsBefore = agent.statistics.longestTurn
        let start = monotonicNanoseconds()
        agent.cancelAll()
        while results.value < crowd { try await Task.sleep(for: .milliseconds(1)) }
        let seconds = Double(monotonicNanoseconds() - start) / 1e9
        // Long enough for a second result of any of them to come, if it could.
        try await Task.sleep(for: .milliseconds(200))
        var measurement = Measurement()
        measurement.extra = [
            "results": Double(results.value), "cancelled": Double(cancelled.value), "seconds": seconds,
            "longest_turn_ms": agent.statistics.longestTurn / .milliseconds(1),
            "longest_turn_before_ms": turnsBefore / .milliseconds(1),
        ]
        await agent.shutdown(grace: .zero)
        return measurement
    }
}
