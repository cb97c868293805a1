import Ferry

/// A run that has ended and waits for its export. It holds no response and no error, which could be large.
struct RecordedRun: Sendable {
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

/// The runs that wait for their export, oldest first, up to a maximum number.
struct RecordedRuns {
    private var runs: [RecordedRun] = []
    /// Those before it have been taken. They go when they are half of all, so that a batch does not move all behind it.
    private var head = 0
    private let most: Int
    /// The number of runs that did not fit.
    private(set) var dropped: UInt64 = 0

    init(most: Int) { self.most = max(most, 1) }

    var count: Int { runs.count - head }

    /// Whether the queue is half full: then the runs should be exported soon.
    var isHalfFull: Bool { count >= half }

    private var half: Int { most / 2 + most % 2 }

    /// Returns whether the queue has just become half full.
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

    /// Drops all of them.
    mutating func drop() -> Int {
        defer { (runs, head) = ([], 0) }
        return count
    }
}
