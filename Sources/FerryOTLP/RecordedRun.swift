import Ferry

/// A run that has ended and waits for its export. It holds neither the response nor the error, which could be large. An
/// object, so that the queue and the batches only move references.
final class RecordedRun: Sendable {
    let span: RunSpan
    let info: RunInfo
    let end: UInt64
    let status: Int?
    /// The code of the error.
    let error: String?
    let message: String?
    let isFromCache: Bool

    init(_ span: RunSpan, _ info: RunInfo, _ outcome: RunOutcome) {
        self.span = span
        self.info = info
        end = max(wallClock(), span.start)
        status = outcome.status
        (error, message) =
            switch outcome {
            case .finished: (nil, nil)
            case .failed(let error): (error.code.label, error.message)
            case .cancelled: ("cancelled", nil)
            }
        if case .finished(_, isFromCache: true) = outcome { isFromCache = true } else { isFromCache = false }
    }
}

/// The bounded queue of the runs that wait for their export, oldest first.
struct RecordedRuns {
    private var runs: [RecordedRun] = []
    /// The runs before this index have been taken. They are removed when they are half of all, so that taking a batch
    /// does not move all other runs.
    private var head = 0
    private let most: Int
    /// The number of runs that did not fit.
    private(set) var dropped: UInt64 = 0

    init(most: Int) { self.most = max(most, 1) }

    var count: Int { runs.count - head }

    /// Whether the queue is half full. Then its runs should be exported soon.
    var isHalfFull: Bool { count >= half }

    private var half: Int { most / 2 + most % 2 }

    /// Adds a run, or drops it if the queue is full. Returns whether the queue has just become half full.
    mutating func append(_ run: RecordedRun) -> Bool {
        if count >= most {
            dropped += 1
            return false
        }
        runs.append(run)
        return count == half
    }

    mutating func take(_ count: Int) -> [RecordedRun] {
        let taken = Array(runs[head...].prefix(max(count, 1)))
        head += taken.count
        if head * 2 >= runs.count {
            runs.removeFirst(head)
            head = 0
        }
        return taken
    }

    /// Drops all runs, and returns their number.
    mutating func drop() -> Int {
        defer { (runs, head) = ([], 0) }
        return count
    }
}
