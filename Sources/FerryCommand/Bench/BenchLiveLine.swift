internal import FerryMeasurement

/// The line that shows on a terminal how the load goes, ten times a second at most.
struct BenchLiveLine: Sendable {
    private let recorder: BenchRecorder
    private let plan: BenchPlan
    private let start: UInt64

    init(_ recorder: BenchRecorder, _ plan: BenchPlan, start: UInt64) {
        self.recorder = recorder
        self.plan = plan
        self.start = start
    }

    /// Until its task is cancelled; then the line is gone.
    func show() async {
        var lastCount: UInt64 = 0
        var lastTime = start
        while true {
            try? await Task.sleep(for: .milliseconds(200))
            if Task.isCancelled { break }
            let totals = recorder.total
            let now = monotonicNanoseconds()
            let count = totals.ok + totals.failed
            let rate = Double(count - lastCount) * 1e9 / Double(max(1, now - lastTime))
            Console.live(line(totals, seconds: Double(now - start) / 1e9, rate: rate))
            (lastCount, lastTime) = (count, now)
        }
        Console.endLive()
    }

    private func line(_ totals: BenchTotals, seconds: Double, rate: Double) -> String {
        let latencies = totals.latencies
        let percentiles = [(50.0, "p50"), (99.0, "p99"), (99.9, "p99.9")].map { percent, name in
            "\(name) \(durationText(nanoseconds: latencies.percentile(percent)))"
        }
        let goal = plan.duration.map { " of \(fixed(Double(microseconds($0)) / 1e6, 0))" } ?? ""
        return "\(fixed(seconds, 1))\(goal) s   \(grouped(UInt64(rate))) req/s   "
            + percentiles.joined(separator: "   ") + "   failed \(totals.failed)"
    }
}
