/// Is told of the life of runs: of every run of an agent, or of those of one request.
///
/// A run is announced once by ``willStart(_:)`` and ended once by ``willStop(_:_:)`` and ``didStop(_:_:)``, cancelled
/// ones included. The methods are called one after another for each run, but for different runs at once: what they
/// change needs a lock. They should be short, as the run waits for them.
public protocol RequestObserver: Sendable {
    /// [caller's thread] A run is about to start; nothing was sent yet.
    func willStart(_ run: RunInfo)

    /// [callback queue, or the caller's task for `await`] The outcome is known. Comes before
    /// ``Request/willDeliver(_:)`` and the callbacks.
    func willStop(_ run: RunInfo, _ outcome: RunOutcome)

    /// [callback queue, or the caller's task for `await`] The callbacks have returned.
    func didStop(_ run: RunInfo, _ outcome: RunOutcome)

    /// [callback queue, or the caller's task for `await`] What was measured of a run, once for each.
    func metrics(_ run: RunInfo, _ metrics: RequestMetrics)

    /// [callback queue, or the caller's task for `await`] The same together with the outcome, once for each run, for
    /// those who record both. Comes before ``willStop(_:_:)``. The default is to call ``metrics(_:_:)``.
    func ended(_ run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics)
}

extension RequestObserver {
    /// Nothing.
    public func willStart(_ run: RunInfo) {}
    /// Nothing.
    public func willStop(_ run: RunInfo, _ outcome: RunOutcome) {}
    /// Nothing.
    public func didStop(_ run: RunInfo, _ outcome: RunOutcome) {}
    /// Nothing.
    public func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {}
    /// Calls ``RequestObserver/metrics(_:_:)``.
    public func ended(_ run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics) { self.metrics(run, metrics) }
}

/// Which run an observer is told of. Nothing in it is secret but what the application put into ``userInfo`` itself.
public struct RunInfo: Sendable, Identifiable {
    /// What was started.
    public enum Kind: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
        /// One request.
        case request
        /// A batch; its members are runs of their own.
        case batch
        /// A chain; its steps are runs of their own.
        case chain

        /// Its name.
        public var description: String { rawValue }
    }

    /// Unique in its agent; the `id` of its ``RequestTask``.
    public let id: UInt64

    /// What was started.
    public let kind: Kind

    /// The method of a request; `nil` of a batch or chain.
    public let method: HTTPMethod?

    /// The request's tag.
    public let tag: String?

    /// What the application gave the request along. It is not part of any text that Ferry makes.
    public let userInfo: [String: any Sendable]

    /// The id of the batch or chain it is a member of; `nil` of a run by itself.
    public let group: UInt64?

    /// As it was made, secrets included. Redacted when it is asked for, as most observers do not.
    private let rawURL: String

    /// The run of a request, or with an empty `url` of a group. `url` is a whole URL; of a text that could not be made
    /// into one, what the error says of it.
    public init(
        id: UInt64, kind: Kind = .request, method: HTTPMethod? = nil, url: String = "", tag: String? = nil,
        userInfo: [String: any Sendable] = [:], group: UInt64? = nil
    ) {
        self.id = id
        self.kind = kind
        self.method = method
        self.tag = tag
        self.userInfo = userInfo
        self.group = group
        rawURL = url
    }

    /// The URL without user, password, values of the query and fragment; empty for a batch or chain.
    public var url: String { Redaction.url(rawURL) }

    /// The host, in lower case, with its port unless that is the scheme's own: `h`, `h:8080`, `[::1]:8080`. Empty for a
    /// batch or chain.
    public var host: String { HostKey.authority(of: rawURL) }

    package var isSecure: Bool { rawURL.hasPrefix("https:") }

    /// Whether this is the URL that the run began with.
    package func isAbout(_ url: String) -> Bool { rawURL == url }
}

// All three ways to turn a value into text, as the default of each would show the URL as it was made.
extension RunInfo: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// One line without secrets, like `request 7 GET http://h/x`.
    public var description: String {
        var line = "\(kind) \(id)"
        if let method { line += " \(method)" }
        let url = url
        if !url.isEmpty { line += " \(url)" }
        return line
    }

    /// Likewise.
    public var debugDescription: String { description }

    /// The redacted members.
    public var customMirror: Mirror {
        Mirror(self, children: ["id": id, "kind": kind, "method": method as Any, "url": url, "tag": tag as Any])
    }
}

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
