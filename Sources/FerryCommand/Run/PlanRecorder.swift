internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// The rows of a plan that runs, in the order in which the plan names them.
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

    /// Times count from here on.
    func begin() { state.withLock { $0.begin = monotonicNanoseconds() } }

    func change(_ row: Int, _ change: (inout PlanRow) -> Void) { state.withLock { change(&$0.rows[row]) } }

    /// It could not even be made.
    func failed(_ row: Int, _ fault: PlanFault) {
        let now = elapsed
        change(row) { row in
            row.state = .failed
            (row.start, row.end) = (now, now)
            (row.code, row.message) = (.applicationError, fault.description)
        }
    }

    /// Says of rows that never began why.
    func explain(_ node: PlanNode, row: Int, _ skip: PlanSkip?) {
        state.withLock { state in
            var skips = PlanSkips(state.rows)
            state.rows = []
            skips.explain(node, row: row, skip)
            state.rows = skips.rows
        }
    }
}

/// Writes down one run.
struct PlanObserver: RequestObserver {
    let recorder: PlanRecorder
    let row: Int
    /// Says what a failure is, for people.
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

/// Sees whether a batch or chain took all of its time, and what in it had not begun by then.
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
