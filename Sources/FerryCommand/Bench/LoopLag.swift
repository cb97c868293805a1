internal import Ferry
internal import FerryMeasurement

/// How long a job waits for its turn on the agent's loops: what an answer waits, too, before it is seen.
enum LoopLag {
    /// Asks fifty times a second until its task is cancelled; nanoseconds.
    static func watch(_ agent: NetworkAgent) async -> Histogram {
        var lags = Histogram()
        while true {
            try? await Task.sleep(for: .milliseconds(20))
            if Task.isCancelled { return lags }
            let asked = monotonicNanoseconds()
            let answered = await withTaskExecutorPreference(agent.taskExecutor) { await now() }
            lags.record(answered - asked)
        }
    }

    /// Not isolated, so that it runs where the preference says.
    private nonisolated static func now() async -> UInt64 { monotonicNanoseconds() }
}
