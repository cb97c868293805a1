import FerrySynchronization

@testable import Ferry

/// The outcome of a run.
typealias FaultOutcome = Result<FaultAnswer, RequestError>

/// Receives outcomes and records how often, and when by the clock of the delivering thread.
final class TimedOutcome: Sendable {
    private struct State {
        var from = ContinuousClock.now
        var to: ContinuousClock.Instant?
        var outcomes: [FaultOutcome] = []
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    func take(_ outcome: FaultOutcome) {
        state.withLock { state in
            state.to = state.to ?? .now
            state.outcomes.append(outcome)
            return state.waiter.take()
        }?.resume()
    }

    /// The time counts from here on.
    func begin() { state.withLock { $0.from = .now } }

    /// How long it took by the clock.
    var span: Duration { state.withLock { ($0.to ?? .now) - $0.from } }

    /// The same without the times in which the machine stood still, if they exceed this.
    func elapsed(whereMoreThan bound: Duration = .zero) -> Duration {
        let (from, to) = state.withLock { ($0.from, $0.to ?? .now) }
        if to - from < bound { return to - from }
        return max(.zero, to - from - MachinePauses.total(between: from, and: to))
    }

    var count: Int { state.withLock { $0.outcomes.count } }

    /// Waits for the first outcome.
    var outcome: FaultOutcome {
        get async {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if !state.outcomes.isEmpty { return true }
                    state.waiter = continuation
                    return false
                }
                if isThere { continuation.resume() }
            }
            return state.withLock { $0.outcomes[0] }
        }
    }
}
