internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// Draws the board on the terminal, each picture over the last.
final class BenchDisplay: Sendable {
    private let plan: BenchPlan
    /// Lines of the last picture.
    private let drawn = Mutex(0)

    init(_ plan: BenchPlan) { self.plan = plan }

    func show(_ totals: BenchTotals, _ windows: [BenchWindow], seconds: Double, isWarmUp: Bool) {
        let size = Console.size
        let lines = BenchBoard.lines(
            totals, windows, title: isWarmUp ? "warming up: \(plan.model.title)" : plan.model.title,
            progress: progress(totals, seconds, isWarmUp), columns: size.columns)
        draw(Array(lines.prefix(max(1, size.rows - 1))))
    }

    /// Takes it away.
    func clear() { draw([]) }

    private func progress(_ totals: BenchTotals, _ seconds: Double, _ isWarmUp: Bool) -> String {
        if let goal = isWarmUp ? plan.warmUp : plan.duration {
            return "\(fixed(seconds, 1)) of \(fixed(Double(goal.microseconds) / 1e6, 0)) s"
        }
        let ended = "\(grouped(totals.ok + totals.failed)) of \(grouped(UInt64(plan.requests ?? 0)))"
        return "\(ended)  \(fixed(seconds, 1)) s"
    }

    private func draw(_ lines: [String]) {
        drawn.withLock { drawn in
            // The cursor stands below the last picture.
            var text = drawn > 0 ? "\u{1B}[\(drawn)A\r" : "\r"
            text += "\u{1B}[J"
            for (index, line) in lines.enumerated() {
                text += (index == 0 ? Console.boldError(line) : line) + "\n"
            }
            drawn = lines.count
            // Under the lock, as pictures must not come one into the other.
            Console.error(text)
        }
    }
}
