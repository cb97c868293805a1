import FerrySynchronization

/// The state machine for the retries of one run: takes a failed attempt, and returns the wait before the next one.
/// Clock and random numbers are parameters.
struct RetryMachine: Sendable {
    enum Action: Sendable, Equatable {
        /// Send the request again after this time.
        case retry(after: Duration)
        /// The response or error ends the run.
        case deliver(Reason)
    }

    /// Why there is no retry; for tests.
    enum Reason: Sendable, Equatable {
        /// The policy does not retry this.
        case notRetried
        /// The policy's rule refused.
        case vetoed
        /// The server may have processed the request, and repeating it is not safe.
        case mayHaveBeenProcessed
        case bodyNotReplayable
        case noAttemptsLeft
        /// `Retry-After` exceeds the maximum wait.
        case waitTooLong
        /// The deadline would pass first.
        case deadline
        case noBudget
    }

    /// The circumstances of an attempt.
    struct Surroundings {
        /// The time until the deadline of the run; `nil` if there is none.
        var remaining: Duration?
        var isBodyReplayable = true
        /// The wall-clock time, which dates of a server refer to.
        var now: HTTPDate
    }

    private let policy: RetryPolicy
    /// The number of retries so far, with which the waits grow.
    private(set) var retries = 0

    init(_ policy: RetryPolicy) { self.policy = policy }

    /// Whether nothing must be kept for a retry.
    var isOff: Bool { policy.maxAttempts <= 1 }

    /// An attempt has failed. `random` returns numbers from 0 to 1. `withdraw` takes one retry from the host's budget,
    /// and is called last.
    mutating func failed(
        _ attempt: FailedAttempt, _ surroundings: Surroundings, random: () -> Double, withdraw: () -> Bool
    ) -> Action {
        if Self.isFinal(attempt) { return .deliver(.notRetried) }
        if retries + 1 >= policy.maxAttempts { return .deliver(.noAttemptsLeft) }
        switch policy.decide?(attempt) ?? .byPolicy {
        case .giveUp: return .deliver(.vetoed)
        case .retry: break
        case .byPolicy:
            guard isRetried(attempt) else { return .deliver(.notRetried) }
            guard attempt.isIdempotent || !attempt.mayHaveBeenProcessed || policy.retriesNonIdempotent else {
                return .deliver(.mayHaveBeenProcessed)
            }
        }
        guard surroundings.isBodyReplayable else { return .deliver(.bodyNotReplayable) }
        var wait = backOff(random)
        if case .response(_, let headers) = attempt.outcome,
            let asked = RetryAfter.wait(headers.values(of: "Retry-After"), now: surroundings.now)
        {
            if asked > policy.maxRetryAfter { return .deliver(.waitTooLong) }
            // So that clients that were told the same time do not all come back at once.
            wait = policy.jitter == .none ? asked : asked + wait
        }
        if let remaining = surroundings.remaining, wait >= remaining { return .deliver(.deadline) }
        guard withdraw() else { return .deliver(.noBudget) }
        retries += 1
        return .retry(after: wait)
    }

    private func isRetried(_ attempt: FailedAttempt) -> Bool {
        switch attempt.outcome {
        case .fault(let error): policy.retryableErrors.contains { $0 ~= error }
        case .response(let status, _): policy.statuses.contains(status)
        }
    }

    private func backOff(_ random: () -> Double) -> Duration {
        let cap = max(policy.maxDelay.inSeconds, 0)
        let factor = policy.factor.isFinite ? max(policy.factor, 1) : 1
        var seconds = max(policy.baseDelay.inSeconds, 0)
        for _ in 0..<retries where seconds < cap { seconds *= factor }
        seconds = min(seconds, cap)
        switch policy.jitter {
        case .none: break
        case .full: seconds *= min(max(random(), 0), 1)
        case .equal: seconds *= 0.5 + min(max(random(), 0), 1) / 2
        }
        return .seconds(seconds)
    }

    /// What no policy and no rule retries.
    private static func isFinal(_ attempt: FailedAttempt) -> Bool {
        switch attempt.outcome {
        case .response(let status, _): return status == 401 || status == 407
        case .fault(let error):
            switch error.code {
            case .cancelled, .shutdown, .queueFull, .invalidURL, .unsupportedScheme, .invalidRequest, .addressForbidden,
                .tls(.expired), .tls(.hostname), .tls(.untrusted), .tls(.pinMismatch), .tls(.configuration),
                .timeout(.deadline), .timeout(.queue), .tooManyRedirects, .redirectForbidden, .bodyNotReplayable,
                .uploadSource, .uploadStopped, .fileIO, .applicationError, .internalError:
                return true
            default: return false
            }
        }
    }
}

extension Duration {
    fileprivate var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}

/// The retry budgets of all hosts of an agent. Bounded: a host without recent requests is removed, and later starts
/// again.
final class RetryAccounts: Sendable {
    /// Two halves: recently used hosts are in the young half, which becomes the old one when it is full. So removal
    /// needs no search.
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

    /// A request to the host that may be retried is sent for the first time.
    func deposit(_ host: String) {
        with(host) { $0.deposit(budget, now: $1) }
    }

    /// Takes one retry, if there is one.
    func withdraw(_ host: String) -> Bool {
        with(host) { $0.withdraw(budget, now: $1) }
    }

    /// The number of hosts.
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

/// The balance of one host in a ``RetryBudget``.
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
        // The sum of fractions may be a little less than one.
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
