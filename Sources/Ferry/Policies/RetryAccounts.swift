import Synchronization

/// The accounts of all hosts of an agent. Bounded: a host that has not been asked for long is forgotten, and begins
/// anew.
final class RetryAccounts: Sendable {
    /// Two halves: what is asked for is in the young one, which becomes the old one when it is full. So forgetting
    /// takes no search.
    private struct State {
        var young: [String: RetryAccount] = [:]
        var old: [String: RetryAccount] = [:]
    }

    private let state = Mutex(State())
    private let budget: RetryBudget
    private let half: Int
    private let now: @Sendable () -> UInt64

    /// `now` is a monotonic clock, in nanoseconds.
    init(_ budget: RetryBudget, hosts: Int = 1024, now: @escaping @Sendable () -> UInt64) {
        self.budget = budget
        half = max(hosts / 2, 1)
        self.now = now
    }

    /// A request to the host, which may be retried, is sent for the first time.
    func deposit(_ host: String) {
        with(host) { $0.deposit(budget, now: $1) }
    }

    /// Takes one retry, if there is one.
    func withdraw(_ host: String) -> Bool {
        with(host) { $0.withdraw(budget, now: $1) }
    }

    /// Hosts that are remembered.
    var count: Int {
        state.withLock { $0.young.count + $0.old.keys.filter { [young = $0.young] in young[$0] == nil }.count }
    }

    private func with<Result: Sendable>(
        _ host: String, _ body: (inout RetryAccount, UInt64) -> Result
    ) -> Result {
        let now = now()
        return state.withLock { state in
            if state.young[host] == nil {
                if state.young.count >= half {
                    state.old = state.young
                    state.young = [:]
                }
                state.young[host] = state.old[host] ?? RetryAccount(budget, now: now)
            }
            return body(&state.young[host, default: RetryAccount(budget, now: now)], now)
        }
    }
}
