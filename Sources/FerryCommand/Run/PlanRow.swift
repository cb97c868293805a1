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

    var nanoseconds: UInt64 { end - min(start, end) }
    var attempts: Int { metrics?.attempts ?? 0 }

    /// For people: whether the answer is the cache's, and whether it is past its time.
    var cached: String { metrics?.cache == .stale ? "stale" : isFromCache ? "yes" : "no" }

    /// For people: that it never began, and why.
    var skipped: String { "skipped" + (reason.map { ": \($0)" } ?? "") }
}
