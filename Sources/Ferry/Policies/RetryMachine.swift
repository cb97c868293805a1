/// Decides about the retries of one run: a failed attempt in, the wait before the next one out. Knows neither a clock
/// nor chance, both are handed in.
struct RetryMachine: Sendable {
    enum Action: Sendable, Equatable {
        /// Send it again after that time.
        case retry(after: Duration)
        /// What came is the result of the run.
        case deliver(Reason)
    }

    /// Why there is no retry; for tests.
    enum Reason: Sendable, Equatable {
        /// Nothing that the policy retries.
        case notRetried
        /// The rule of the policy said no.
        case vetoed
        /// The server may have acted on it, and acting twice may do harm.
        case mayHaveBeenProcessed
        case bodyNotReplayable
        case noAttemptsLeft
        /// `Retry-After` asks for more than is waited for.
        case waitTooLong
        /// The deadline would pass first.
        case deadline
        case noBudget
    }

    /// What surrounds an attempt.
    struct Surroundings {
        /// Until the deadline of the run; `nil` = none.
        var remaining: Duration?
        var isBodyReplayable = true
        /// By the clock on the wall, which is what a server's date is about.
        var now: HTTPDate
    }

    private let policy: RetryPolicy
    /// Retries so far; they make the waits grow.
    private(set) var retries = 0

    init(_ policy: RetryPolicy) { self.policy = policy }

    /// Nothing needs to be kept for a retry.
    var isOff: Bool { policy.attempts <= 1 }

    /// An attempt failed. `random` gives numbers from 0 to 1; `withdraw` takes one retry out of the host's budget, and
    /// is asked last of all.
    mutating func failed(
        _ attempt: FailedAttempt, _ surroundings: Surroundings, random: () -> Double, withdraw: () -> Bool
    ) -> Action {
        if Self.isFinal(attempt) { return .deliver(.notRetried) }
        if retries + 1 >= policy.attempts { return .deliver(.noAttemptsLeft) }
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
        if case .answer(_, let headers) = attempt.outcome,
            let asked = RetryAfter.wait(headers.values(of: "Retry-After"), now: surroundings.now)
        {
            if asked > policy.retryAfterCap { return .deliver(.waitTooLong) }
            // Those who were told the same moment do not all come at it.
            wait = policy.jitter == .none ? asked : asked + wait
        }
        if let remaining = surroundings.remaining, wait >= remaining { return .deliver(.deadline) }
        guard withdraw() else { return .deliver(.noBudget) }
        retries += 1
        return .retry(after: wait)
    }

    private func isRetried(_ attempt: FailedAttempt) -> Bool {
        switch attempt.outcome {
        case .fault(let error): policy.faults.contains { $0 ~= error }
        case .answer(let status, _): policy.statuses.contains(status)
        }
    }

    private func backOff(_ random: () -> Double) -> Duration {
        let cap = max(policy.cap.inSeconds, 0)
        let factor = policy.factor.isFinite ? max(policy.factor, 1) : 1
        var seconds = max(policy.base.inSeconds, 0)
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
        case .answer(let status, _): return status == 401 || status == 407
        case .fault(let error):
            switch error.code {
            case .cancelled, .shutdown, .queueFull, .invalidURL, .unsupportedScheme, .invalidRequest, .addressForbidden,
                .tls(.expired), .tls(.hostname), .tls(.untrusted), .tls(.pinMismatch), .tls(.configuration),
                .timeout(.deadline), .timeout(.queue), .tooManyRedirects, .redirectForbidden, .bodyNotReplayable,
                .uploadSource, .fileIO, .userError, .internalError:
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
