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
            // The last column is left free: some terminals go to the next line as soon as it is written to.
            let columns = Console.size.columns - 1
            Console.live(Self.line(name, recorder.progress, nanoseconds: recorder.elapsed, columns: columns))
            try? await Task.sleep(for: .milliseconds(100))
        }
        Console.endLive()
    }

    /// A line that wraps could not be taken away: no wider than so many columns. The name gives way first, which may be
    /// a path.
    static func line(_ name: String, _ progress: PlanProgress, nanoseconds: UInt64, columns: Int) -> String {
        let width = 20
        let filled = progress.total == 0 ? width : width * progress.ended / progress.total
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
        let more = progress.running - progress.shown.count
        let names = progress.shown.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
        let seconds = fixed(Double(nanoseconds) / 1e9, 1)
        let figures = "\(bar)  \(progress.ended) of \(progress.total)  \(seconds) s"
        let room = columns - TerminalText.width(figures) - 2
        let title = TerminalText.cut(Main.oneLine(name), to: max(room / 2, 8))
        return TerminalText.cut("\(title)  \(figures)  \(Main.oneLine(names))", to: columns)
    }
}
