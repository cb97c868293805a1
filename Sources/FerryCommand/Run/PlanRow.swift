internal import Ferry

/// What became of one run of a request of a plan.
struct PlanRow: Sendable {
    enum State: String, Sendable, Encodable {
        /// It never began.
        case skipped
        case running, finished, failed, cancelled
    }

    let name: String
    /// How deep in batches and chains.
    let depth: Int
    var state = State.skipped
    /// Why it never began; `nil` of one that did.
    var reason: String?
    /// Nanoseconds since the plan began.
    var start: UInt64 = 0
    var end: UInt64 = 0
    var status: Int?
    var isFromCache = false
    var metrics: RequestMetrics?
    var code: RequestError.Code?
    var message: String?
    /// What went wrong, for people: what was expected, or the thing and its limit. Without it, ``message`` has to do.
    var explanation: String?

    var nanoseconds: UInt64 { end - min(start, end) }
    var attempts: Int { metrics?.attempts ?? 0 }

    /// For people: whether the answer is the cache's, and whether it is past its time.
    var cached: String { metrics?.cache == .stale ? "stale" : isFromCache ? "yes" : "no" }

    /// For people; `nil` where nothing went wrong.
    var fault: String? {
        if let explanation { return explanation }
        return message.map { message in
            switch code {
            // What a plan expects is no fault of an application.
            case nil, .applicationError: message
            case let code?: "\(code): \(message)"
            }
        }
    }

    /// For people: that it never began, and why.
    var skipped: String { "skipped" + (reason.map { ": \($0)" } ?? "") }
}
