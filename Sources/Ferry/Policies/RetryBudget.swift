/// How many retries an agent makes for one host, whatever its requests' policies would like: when a server is down,
/// retries must not be the load that keeps it there.
///
/// Each request that may be retried pays ``ratio`` of a retry into its host's account, each second adds
/// ``minimumPerSecond``, each retry takes one. An empty account means no retry: the failure is delivered.
public struct RetryBudget: Sendable, Hashable {
    /// Retries for each request. The default is 0.2.
    public var ratio: Double

    /// Retries a second, so that few requests may be retried too. The default is 10.
    public var minimumPerSecond: Double

    /// What an account holds at most, and begins with. The default is 100 retries.
    public var burst: Double

    /// A budget; what is left out has its default.
    public init(ratio: Double = 0.2, minimumPerSecond: Double = 10, burst: Double = 100) {
        self.ratio = ratio
        self.minimumPerSecond = minimumPerSecond
        self.burst = burst
    }
}

/// One host's account.
struct RetryAccount: Sendable {
    private(set) var balance: Double
    /// Monotonic, in nanoseconds.
    private var updated: UInt64

    init(_ budget: RetryBudget, now: UInt64) {
        balance = max(budget.burst, 0)
        updated = now
    }

    /// A request is sent for the first time.
    mutating func deposit(_ budget: RetryBudget, now: UInt64) {
        refill(budget, now: now)
        balance = min(balance + max(budget.ratio, 0), max(budget.burst, 0))
    }

    /// Takes one retry, if there is one.
    mutating func withdraw(_ budget: RetryBudget, now: UInt64) -> Bool {
        refill(budget, now: now)
        // Fractions add up to a little less than one.
        guard balance > 1 - 1e-9 else { return false }
        balance = max(balance - 1, 0)
        return true
    }

    private mutating func refill(_ budget: RetryBudget, now: UInt64) {
        guard now > updated else { return }
        let seconds = Double(now - updated) / 1e9
        balance = min(balance + seconds * max(budget.minimumPerSecond, 0), max(budget.burst, 0))
        updated = now
    }
}
