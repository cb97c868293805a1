internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// Draws the board on the terminal, each picture over the last.
final class BenchDisplay: Sendable {
    private let plan: BenchPlan
    private let picture = Mutex(LivePicture())

    init(_ plan: BenchPlan) { self.plan = plan }

    func show(_ totals: BenchTotals, _ windows: [BenchWindow], seconds: Double, isWarmUp: Bool) {
        let size = Console.size
        let lines = BenchBoard.lines(
            totals, windows, title: isWarmUp ? "warming up: \(plan.title)" : plan.title,
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
        let lines = lines.enumerated().map { index, line in index == 0 ? Console.boldError(line) : line }
        picture.withLock { $0.draw(lines) }
    }
}
