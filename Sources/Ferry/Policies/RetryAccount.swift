/// What one host's account of a ``RetryBudget`` holds.
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
