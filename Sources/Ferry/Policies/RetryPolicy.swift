/// Which failed requests are sent again, and when.
///
/// By default nothing is retried: ``none`` is the default. With
/// ``exponential(maxAttempts:baseDelay:factor:maxDelay:jitter:)`` a request is retried if all of the following is true:
///
/// - It failed with one of the ``retryableErrors``, or got one of the ``statuses``.
/// - Repeating it is safe: its method is idempotent (or the request says that it is), it has an `Idempotency-Key`, the
///   policy ``retriesNonIdempotent``, or the server has certainly not processed it. Its body can be sent again.
/// - Attempts are left, the host's ``RetryBudget`` has a retry, and the wait ends before the deadline.
///
/// The wait doubles with each retry and is random (``Jitter``), so that clients that failed together do not come back
/// together. The time of a `Retry-After` field is added before the wait for the same reason; with ``Jitter/none`` it
/// replaces the wait. If it exceeds ``maxRetryAfter``, the response is delivered without a retry.
///
/// Errors of certificates and pins, invalid or forbidden requests, a full queue, errors of files and of the
/// application's own code, a cancel, a shutdown and a deadline are never retried. Neither are 401 and 407, which an
/// authenticator or a credential provider handles.
///
///     var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
///     configuration.retryPolicy = .exponential(maxAttempts: 4, baseDelay: .milliseconds(100))
public struct RetryPolicy: Sendable {
    /// How the wait is randomised.
    public enum Jitter: Sendable, Hashable, CaseIterable {
        /// A random part of the wait.
        case full
        /// Half of the wait, and a random part of the other half.
        case equal
        /// The whole wait.
        case none
    }

    /// The maximum number of attempts, including the first. With 1 there are no retries.
    public var maxAttempts: Int

    /// The wait before the first retry. The default is 200 milliseconds.
    public var baseDelay: Duration

    /// The factor by which the wait grows with each retry. The default is 2.
    public var factor: Double

    /// The maximum wait, without `Retry-After`. The default is 20 seconds.
    public var maxDelay: Duration

    /// How the wait is randomised. The default is `.full`.
    public var jitter: Jitter

    /// The statuses that are retried. The default is 408, 429, 502, 503 and 504. 401 and 407 are never retried.
    public var statuses: Set<Int> = [408, 429, 502, 503, 504]

    /// The errors that are retried; a code without a detail stands for all its details. The default is `connect`,
    /// `dns(temporary)`, `timeout(dns)`, `timeout(connect)`, `timeout(tls)`, `connectionReset`, `connectionClosed`,
    /// `incompleteBody` and `http2Stream`.
    public var retryableErrors: [RequestError.Code] = [
        .connect, .dns(.temporary), .timeout(.dns), .timeout(.connect), .timeout(.tls), .connectionReset,
        .connectionClosed, .incompleteBody, .http2Stream,
    ]

    /// Whether methods like POST are retried even if the server may have processed the request. The default is `false`.
    public var retriesNonIdempotent = false

    /// The maximum `Retry-After`, without the random wait after it. The default is 60 seconds.
    public var maxRetryAfter: Duration = .seconds(60)

    /// A rule of your own, which is called for each failure if attempts are left. It may refuse a retry, or request one
    /// that the policy would not make. It is not called for failures that are never retried. It is called on one of
    /// Ferry's threads, so it must not block. The default is `nil`.
    public var decide: (@Sendable (FailedAttempt) -> RetryDecision)?

    /// Retries with exponentially growing waits, up to a maximum.
    public static func exponential(
        maxAttempts: Int = 3, baseDelay: Duration = .milliseconds(200), factor: Double = 2,
        maxDelay: Duration = .seconds(20),
        jitter: Jitter = .full
    ) -> RetryPolicy {
        RetryPolicy(
            maxAttempts: max(maxAttempts, 1), baseDelay: baseDelay, factor: factor, maxDelay: maxDelay, jitter: jitter)
    }

    /// No retries.
    public static var none: RetryPolicy { .exponential(maxAttempts: 1) }

    private init(maxAttempts: Int, baseDelay: Duration, factor: Double, maxDelay: Duration, jitter: Jitter) {
        self.maxAttempts = maxAttempts
        self.baseDelay = baseDelay
        self.factor = factor
        self.maxDelay = maxDelay
        self.jitter = jitter
    }
}

/// The decision of a rule about a failure.
public enum RetryDecision: Sendable, Hashable {
    /// Follow the policy.
    case byPolicy
    /// Retry, whatever statuses, errors and methods the policy names. Attempts, budget, deadline and body still apply.
    case retry
    /// Do not retry.
    case giveUp
}

/// An attempt that failed: with an error, or with a response that may be retried.
public struct FailedAttempt: Sendable {
    /// How the attempt ended.
    public enum Outcome: Sendable {
        /// With an error, without a complete response.
        case fault(RequestError)
        /// With a response.
        case response(status: Int, headers: Headers)
    }

    /// How the attempt ended.
    public let outcome: Outcome
    /// The number of the attempt, 1 for the first.
    public let attempt: Int
    /// The method.
    public let method: HTTPMethod
    /// The redacted URL.
    public let url: String
    /// Whether repeating the request is safe, because of its method, its `isIdempotent` or an `Idempotency-Key`.
    public let isIdempotent: Bool

    init(_ outcome: Outcome, attempt: Int, method: HTTPMethod, url: String, isIdempotent: Bool, headers: Headers) {
        self.outcome = outcome
        self.attempt = attempt
        self.method = method
        self.url = Redaction.url(url)
        self.isIdempotent = isIdempotent || headers.contains("Idempotency-Key")
    }

    /// Whether the server may have processed the request. After a response it is `true`.
    public var mayHaveBeenProcessed: Bool {
        switch outcome {
        case .fault(let error): error.mayHaveBeenProcessed
        case .response: true
        }
    }

    /// The status, if there is a response.
    public var status: Int? { if case .response(let status, _) = outcome { status } else { nil } }

    /// The error code, if there is no response.
    public var code: RequestError.Code? { if case .fault(let error) = outcome { error.code } else { nil } }
}

/// Parses `Retry-After` (RFC 9110, 10.2.3): seconds, or a date.
enum RetryAfter {
    /// The time to wait; zero for a date in the past. `nil` if there is no valid field: signs, fractions and numbers
    /// beyond 64 bits are invalid. Of several fields the longest time is used.
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

/// The number of retries that an agent makes for one host, whatever the policies of its requests allow. When a server
/// is down, retries must not be the load that keeps it down.
///
/// Each request that may be retried adds ``ratio`` of a retry to its host's budget when it is first sent, each second
/// adds ``minimumPerSecond``, and each retry takes one. If the budget is empty there is no retry, and the failure is
/// delivered. A run that gets its response from the cache, an interceptor or a shared transfer adds nothing, because it
/// was not sent.
public struct RetryBudget: Sendable, Hashable {
    /// The retries that each request adds. The default is 0.2.
    public var ratio: Double

    /// The retries that each second adds, so that few requests can be retried too. The default is 10.
    public var minimumPerSecond: Double

    /// The maximum and initial budget of a host. The default is 100 retries.
    public var burst: Double

    /// Creates a budget. Parameters that are left out have their defaults.
    public init(ratio: Double = 0.2, minimumPerSecond: Double = 10, burst: Double = 100) {
        self.ratio = ratio
        self.minimumPerSecond = minimumPerSecond
        self.burst = burst
    }
}
