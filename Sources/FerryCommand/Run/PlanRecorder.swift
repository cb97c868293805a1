internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// What became of one run of a request of a plan.
struct PlanRow: Sendable {
    enum State: String, Sendable, Encodable {
        /// It never began: something before it failed.
        case skipped
        case running, finished, failed, cancelled
    }

    let name: String
    /// How deep in batches and chains.
    let depth: Int
    var state = State.skipped
    /// Nanoseconds since the plan began.
    var start: UInt64 = 0
    var end: UInt64 = 0
    var status: Int?
    var isFromCache = false
    var metrics: RequestMetrics?
    var code: RequestError.Code?
    var message: String?

    var nanoseconds: UInt64 { end - min(start, end) }
    var attempts: Int { metrics?.attempts ?? 0 }

    /// For people: whether the answer is the cache's, and whether it is past its time.
    var cached: String { metrics?.cache == .stale ? "stale" : isFromCache ? "yes" : "no" }
}

/// The rows of a plan that runs, in the order in which the plan names them.
final class PlanRecorder: Sendable {
    private let state: Mutex<[PlanRow]>
    private let begin = monotonicNanoseconds()

    init(_ rows: [PlanRow]) { state = Mutex(rows) }

    var rows: [PlanRow] { state.withLock { $0 } }
    var elapsed: UInt64 { monotonicNanoseconds() - begin }

    func change(_ row: Int, _ change: (inout PlanRow) -> Void) { state.withLock { change(&$0[row]) } }

    /// It could not even be made.
    func failed(_ row: Int, _ fault: PlanFault) {
        let now = elapsed
        change(row) { row in
            row.state = .failed
            (row.start, row.end) = (now, now)
            (row.code, row.message) = (.userError, fault.description)
        }
    }
}

/// Writes down one run.
struct PlanObserver: RequestObserver {
    let recorder: PlanRecorder
    let row: Int

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
            case .failed(let error): (row.state, row.code, row.message) = (.failed, error.code, error.message)
            }
        }
    }
}
