internal import FerryMeasurement

/// The line that shows on a terminal how a plan goes, ten times a second.
struct PlanLiveLine: Sendable {
    private let name: String
    private let recorder: PlanRecorder

    init(_ run: PlanRun) {
        name = run.plan.name
        recorder = run.recorder
    }

    /// Until its task is cancelled; then the line is gone.
    func show() async {
        while !Task.isCancelled {
            Console.live(Self.line(name, recorder.rows, nanoseconds: recorder.elapsed))
            try? await Task.sleep(for: .milliseconds(100))
        }
        Console.endLive()
    }

    static func line(_ name: String, _ rows: [PlanRow], nanoseconds: UInt64) -> String {
        let ended = rows.count { $0.state != .skipped && $0.state != .running }
        let running = rows.filter { $0.state == .running }.map(\.name)
        let width = 20
        let filled = rows.isEmpty ? width : width * ended / rows.count
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
        let shown =
            running.prefix(3).joined(separator: ", ") + (running.count > 3 ? " and \(running.count - 3) more" : "")
        return
            "\(name)  \(bar)  \(ended) of \(rows.count)  \(fixed(Double(nanoseconds) / 1e9, 1)) s  \(shown.prefix(60))"
    }
}
