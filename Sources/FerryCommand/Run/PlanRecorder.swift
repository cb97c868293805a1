internal import Ferry
internal import FerryMeasurement
internal import FerrySynchronization

/// The rows of a running plan, in the order of the plan.
final class PlanRecorder: Sendable {
    private struct State {
        var rows: [PlanRow]
        var begin = monotonicNanoseconds()
    }

    private let state: Mutex<State>

    init(_ root: PlanNode) { state = Mutex(State(rows: root.rows())) }

    var rows: [PlanRow] { state.withLock { $0.rows } }
    var progress: PlanProgress { state.withLock { PlanProgress($0.rows) } }
    /// Nanoseconds.
    var elapsed: UInt64 { monotonicNanoseconds() - state.withLock { $0.begin } }

    /// Starts the clock.
    func begin() { state.withLock { $0.begin = monotonicNanoseconds() } }

    func change(_ row: Int, _ change: (inout PlanRow) -> Void) { state.withLock { change(&$0.rows[row]) } }

    /// The request could not be created.
    func failed(_ row: Int, _ fault: PlanFault) {
        let now = elapsed
        change(row) { row in
            row.state = .failed
            (row.start, row.end) = (now, now)
            (row.code, row.message) = (.applicationError, fault.description)
        }
    }

    /// Sets the reason of rows that never started.
    func explain(_ node: PlanNode, row: Int, _ skip: PlanSkip?) {
        state.withLock { state in
            var skips = PlanSkips(state.rows)
            state.rows = []
            skips.explain(node, row: row, skip)
            state.rows = skips.rows
        }
    }
}

/// Records one run.
struct PlanObserver: RequestObserver {
    let recorder: PlanRecorder
    let row: Int
    /// Describes a failure for people.
    var explain: @Sendable (RequestError) -> String? = { _ in nil }

    func willStart(_ run: RunInfo) {
        let now = recorder.elapsed
        recorder.change(row) { row in (row.state, row.start, row.end) = (.running, now, now) }
    }

    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        recorder.change(row) { $0.metrics = metrics }
    }

    func willStop(_ run: RunInfo, _ outcome: RunOutcome) {
        let now = recorder.elapsed
        recorder.change(row) { row in
            row.end = now
            row.status = outcome.status
            switch outcome {
            case .finished(_, let isFromCache): (row.state, row.isFromCache) = (.finished, isFromCache)
            case .cancelled: row.state = .cancelled
            case .failed(let error):
                (row.state, row.code, row.message) = (.failed, error.code, error.message)
                row.explanation = explain(error)
            }
        }
    }
}

/// Determines whether a batch or chain reached its deadline, and what in it had not started by then.
struct PlanGroupObserver: RequestObserver {
    /// The transport counts in milliseconds, so a transfer may end that much before the deadline of its group.
    private static let margin = Duration.milliseconds(2)

    let recorder: PlanRecorder
    let node: PlanNode
    let row: Int
    let kind: String
    let deadline: Duration

    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        guard metrics.total + Self.margin >= deadline else { return }
        let length = durationText(nanoseconds: UInt64(max(0, deadline.microseconds)) * 1000)
        recorder.explain(node, row: row, .deadline("the \(kind)'s deadline of \(length)"))
    }
}

/// The progress of a plan.
struct PlanProgress: Sendable {
    private(set) var ended = 0
    private(set) var total: Int
    /// The names of the first few active requests.
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

/// The line on a terminal that shows the progress of a plan, ten times a second.
struct PlanLiveLine: Sendable {
    private let name: String
    private let recorder: PlanRecorder

    init(_ run: PlanRun) {
        name = run.plan.name
        recorder = run.recorder
    }

    /// Draws until its task is cancelled, and then removes the line.
    func show() async {
        while !Task.isCancelled {
            // The last column stays empty, because some terminals wrap as soon as it is written.
            let columns = Console.size.columns - 1
            Console.live(Self.line(name, recorder.progress, nanoseconds: recorder.elapsed, columns: columns))
            try? await Task.sleep(for: .milliseconds(100))
        }
        Console.endLive()
    }

    /// A line that wraps could not be removed, so it is no wider than `columns`. The name, which may be a path, is
    /// shortened first.
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
