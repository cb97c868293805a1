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
