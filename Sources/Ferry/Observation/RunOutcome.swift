/// How a run ended.
public enum RunOutcome: Sendable {
    /// Well. `status` is `nil` for a batch or chain, which has none.
    case finished(status: Int?, isFromCache: Bool)
    /// By a fault, an `invalidStatusCode` or the end of the agent (`shutdown`) included.
    case failed(RequestError)
    /// It was cancelled.
    case cancelled

    /// The outcome that an error stands for.
    public init(_ error: RequestError) {
        if case .cancelled = error { self = .cancelled } else { self = .failed(error) }
    }

    /// The fault; `nil` when it ended well or was cancelled.
    public var error: RequestError? { if case .failed(let error) = self { error } else { nil } }

    /// The status code; also of an answer that was not accepted.
    public var status: Int? {
        switch self {
        case .finished(let status, _): status
        case .failed(let error): error.response?.status
        case .cancelled: nil
        }
    }
}

extension RunOutcome: CustomStringConvertible {
    /// One line without secrets.
    public var description: String {
        switch self {
        case .finished(let status, let isFromCache):
            "finished" + (status.map { " \($0)" } ?? "") + (isFromCache ? " from the cache" : "")
        case .failed(let error): "failed: \(error)"
        case .cancelled: "cancelled"
        }
    }
}
