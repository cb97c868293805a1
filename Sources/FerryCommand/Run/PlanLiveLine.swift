internal import FerryMeasurement

/// How far a plan is.
struct PlanProgress: Sendable {
    private(set) var ended = 0
    private(set) var total: Int
    /// Names of the first few that run.
    private(set) var shown: [String] = []
    private(set) var running = 0

    init(_ rows: [PlanRow]) {
        total = rows.count
        for row in rows {
            switch row.state {
            case .skipped: break
            case .running:
                running += 1
                if running <= 3 { shown.append(row.name) }
            case .finished, .failed, .cancelled: ended += 1
            }
        }
    }
}

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
            Console.live(Self.line(name, recorder.progress, nanoseconds: recorder.elapsed))
            try? await Task.sleep(for: .milliseconds(100))
        }
        Console.endLive()
    }

    static func line(_ name: String, _ progress: PlanProgress, nanoseconds: UInt64) -> String {
        let width = 20
        let filled = progress.total == 0 ? width : width * progress.ended / progress.total
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
        let more = progress.running - progress.shown.count
        let names = progress.shown.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
        let seconds = fixed(Double(nanoseconds) / 1e9, 1)
        return "\(name)  \(bar)  \(progress.ended) of \(progress.total)  \(seconds) s  \(names.prefix(60))"
    }
}
