/// Whether and when a request that failed is sent once more.
///
/// Nothing is retried unless it is asked for: ``none`` is the default. With
/// ``exponential(maxAttempts:baseDelay:factor:maxDelay:jitter:)`` a request is retried when all of this holds:
///
/// - It failed by one of the ``retryableErrors``, or was answered with one of the ``statuses``.
/// - It may be sent twice: its method is idempotent (or the request says it is), it has an `Idempotency-Key`, the
///   policy ``retriesNonIdempotent``, or the server certainly did not act on it. Its body can be made once more.
/// - Attempts are left, the host's ``RetryBudget`` has room, and the wait ends before the deadline.
///
/// The wait doubles with each retry and is drawn at random (``Jitter``), so that clients that failed together do not
/// come back together. A `Retry-After` of the answer is waited out before it, so that clients that were told the same
/// moment do not all come at it; with ``Jitter/none`` in its place. If it asks for more than ``maxRetryAfter``, the
/// answer is delivered without a retry.
///
/// Faults of trust (certificates, pins), faults of the request itself, a cancel, a shutdown, and a deadline are never
/// retried, and neither is 401: fresh credentials are an authenticator's to bring.
///
///     var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
///     configuration.retryPolicy = .exponential(maxAttempts: 4, baseDelay: .milliseconds(100))
public struct RetryPolicy: Sendable {
    /// How a wait is drawn at random.
    public enum Jitter: Sendable, Hashable, CaseIterable {
        /// Anything from nothing to the whole wait.
        case full
        /// Half of the wait, and anything up to the other half.
        case equal
        /// The whole wait, each time.
        case none
    }

    /// How often a request is sent at most, the first time included. 1: never again.
    public var maxAttempts: Int

    /// The wait before the first retry. The default is 200 milliseconds.
    public var baseDelay: Duration

    /// What each wait is multiplied by to make the next. The default is 2.
    public var factor: Double

    /// The longest wait, `Retry-After` aside. The default is 20 seconds.
    public var maxDelay: Duration

    /// The default is `.full`.
    public var jitter: Jitter

    /// The answers that are retried. The default is 408, 429, 502, 503 and 504. 401 never is.
    public var statuses: Set<Int> = [408, 429, 502, 503, 504]

    /// The faults that are retried; one without its finer cause stands for all of them. The default is `connect`,
    /// `dns(.temporary)`, `timeout(.dns)`, `timeout(.connect)`, `timeout(.tls)`, `connectionReset`, `connectionClosed`,
    /// `incompleteBody` and `http2Stream`.
    public var retryableErrors: [RequestError.Code] = [
        .connect, .dns(.temporary), .timeout(.dns), .timeout(.connect), .timeout(.tls), .connectionReset,
        .connectionClosed, .incompleteBody, .http2Stream,
    ]

    /// Retries methods like POST too, even when the server may have acted on them. The default is `false`.
    public var retriesNonIdempotent = false

    /// The longest `Retry-After` that is waited for, the drawn wait behind it not counted. The default is 60 seconds.
    public var maxRetryAfter: Duration = .seconds(60)

    /// A rule of one's own, asked about each failure for which attempts are left. It may veto a retry, or have one that
    /// the policy would not make; what is never retried it is not asked about. Called on a thread of Ferry's, so it
    /// must not block. The default is `nil`.
    public var decide: (@Sendable (FailedAttempt) -> RetryDecision)?

    /// Waits that grow, up to a cap.
    public static func exponential(
        maxAttempts: Int = 3, baseDelay: Duration = .milliseconds(200), factor: Double = 2,
        maxDelay: Duration = .seconds(20),
        jitter: Jitter = .full
    ) -> RetryPolicy {
        RetryPolicy(
            maxAttempts: max(maxAttempts, 1), baseDelay: baseDelay, factor: factor, maxDelay: maxDelay, jitter: jitter)
    }

    /// Never.
    public static var none: RetryPolicy { .exponential(maxAttempts: 1) }

    private init(maxAttempts: Int, baseDelay: Duration, factor: Double, maxDelay: Duration, jitter: Jitter) {
        self.maxAttempts = maxAttempts
        self.baseDelay = baseDelay
        self.factor = factor
        self.maxDelay = maxDelay
        self.jitter = jitter
    }
}

/// What a rule says to a failure.
public enum RetryDecision: Sendable, Hashable {
    /// What the policy says.
    case byPolicy
    /// Send it again, whatever statuses, faults and methods the policy names. Attempts, budget, deadline and the body
    /// still have their say.
    case retry
    /// Do not.
    case giveUp
}

/// An attempt that did not bring what was asked for: a fault, or an answer that may be one of those to be retried.
public struct FailedAttempt: Sendable {
    /// What came of it.
    public enum Outcome: Sendable {
        /// No whole answer came.
        case fault(RequestError)
        /// An answer came.
        case answer(status: Int, headers: Headers)
    }

    /// What came of it.
    public let outcome: Outcome
    /// 1 for the first time it was sent.
    public let attempt: Int
    /// What was asked with.
    public let method: HTTPMethod
    /// The URL asked, without secrets.
    public let url: String
    /// The request says that sending it twice does no harm, by its method, by a member of its own or by an
    /// `Idempotency-Key`.
    public let isIdempotent: Bool

    init(_ outcome: Outcome, attempt: Int, method: HTTPMethod, url: String, isIdempotent: Bool, headers: Headers) {
        self.outcome = outcome
        self.attempt = attempt
        self.method = method
        self.url = Redaction.url(url)
        self.isIdempotent = isIdempotent || headers.contains("Idempotency-Key")
    }

    /// The server may have acted on it. An answer says that it has.
    public var mayHaveBeenProcessed: Bool {
        switch outcome {
        case .fault(let error): error.mayHaveBeenProcessed
        case .answer: true
        }
    }

    /// The status, if an answer came.
    public var status: Int? { if case .answer(let status, _) = outcome { status } else { nil } }

    /// The code, if none came.
    public var code: RequestError.Code? { if case .fault(let error) = outcome { error.code } else { nil } }
}

/// Reads `Retry-After` (RFC 9110, 10.2.3): seconds, or a date.
enum RetryAfter {
    /// The time to wait; a date that has passed is none at all. `nil` when there is no field, or none that makes sense:
    /// signs, fractions, numbers beyond 64 bits. Of several the longest counts.
    static func wait(_ values: [String], now: HTTPDate) -> Duration? {
        values.compactMap { wait($0, now: now) }.max()
    }

    private static func wait(_ value: String, now: HTTPDate) -> Duration? {
        if let first = value.utf8.first, first >= 0x30, first <= 0x39 {
            guard value.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let seconds = Int64(value) else { return nil }
            return .seconds(seconds)
        }
        guard let date = HTTPDate(value, now: now) else { return nil }
        return .seconds(max(0, date.secondsSince1970 - now.secondsSince1970))
    }
}

/// How many retries an agent makes for one host, whatever its requests' policies would like: when a server is down,
/// retries must not be the load that keeps it there.
///
/// Each request that may be retried pays ``ratio`` of a retry into its host's account when it is sent for the first
/// time, each second adds ``minimumPerSecond``, each retry takes one. An empty account means no retry: the failure is
/// delivered. What the cache or an interceptor answers, or what shares the transfer of another run, was not sent, and
/// pays nothing.
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
