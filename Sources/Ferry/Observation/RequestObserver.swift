/// Observes runs: all runs of an agent, or those of one request.
///
/// Every run, including cancelled ones, has one ``willStart(_:)`` and ends with one ``willStop(_:_:)`` and one
/// ``didStop(_:_:)``. The methods are called one after another for each run, but concurrently for different runs:
/// protect mutable state with a lock. Keep the methods short, because the run waits for them.
public protocol RequestObserver: Sendable {
    /// [caller's thread] A run is about to start; nothing was sent yet.
    func willStart(_ run: RunInfo)

    /// [event loop] An informational response (RFC 9110, 15.2) has arrived, like `103 Early Hints` (RFC 8297), before
    /// the response itself.
    ///
    /// An attempt may have at most 32: more, or heads of more than ``Limits/headerBytes`` together, fail it with
    /// `headersTooLarge`. A retry or a redirect may receive them again. Not called for runs that coalesce, nor for
    /// every request of a download in segments. The event loop waits for this method: it must not block.
    func informational(_ run: RunInfo, _ response: InformationalResponse)

    /// [callback queue, or the caller's task with `await`] The outcome is known. Called before
    /// ``Request/willDeliver(_:)`` and the callbacks.
    func willStop(_ run: RunInfo, _ outcome: RunOutcome)

    /// [callback queue, or the caller's task with `await`] The callbacks have returned.
    func didStop(_ run: RunInfo, _ outcome: RunOutcome)

    /// [callback queue, or the caller's task with `await`] The metrics of a run, once for each run.
    func metrics(_ run: RunInfo, _ metrics: RequestMetrics)

    /// [callback queue, or the caller's task with `await`] The metrics together with the outcome, once for each run.
    /// Called before ``willStop(_:_:)``. The default implementation calls ``metrics(_:_:)``.
    func ended(_ run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics)
}

extension RequestObserver {
    /// Does nothing.
    public func willStart(_ run: RunInfo) {}
    /// Does nothing.
    public func informational(_ run: RunInfo, _ response: InformationalResponse) {}
    /// Does nothing.
    public func willStop(_ run: RunInfo, _ outcome: RunOutcome) {}
    /// Does nothing.
    public func didStop(_ run: RunInfo, _ outcome: RunOutcome) {}
    /// Does nothing.
    public func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {}
    /// Calls ``RequestObserver/metrics(_:_:)``.
    public func ended(_ run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics) { self.metrics(run, metrics) }
}

/// The run that an observer is notified of. It contains no secrets, except those that the application puts into
/// ``userInfo``.
public struct RunInfo: Sendable, Identifiable {
    /// The kind of a run.
    public enum Kind: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
        /// One request.
        case request
        /// A batch; its members are runs of their own.
        case batch
        /// A chain; its steps are runs of their own.
        case chain

        /// The name.
        public var description: String { rawValue }
    }

    /// A number that is unique within the agent; the `id` of the run's ``RequestTask``.
    public let id: UInt64

    /// The kind of the run.
    public let kind: Kind

    /// The method of a request; `nil` for a batch or chain.
    public let method: HTTPMethod?

    /// The request's tag.
    public let tag: String?

    /// The values that the application added to the request. Ferry includes them in no text.
    public let userInfo: [String: any Sendable]

    /// The id of the batch or chain that contains the run; `nil` for other runs.
    public let group: UInt64?

    /// The original URL with its secrets. It is redacted when it is read, because most observers do not read it.
    private let rawURL: String

    /// Creates the information about a run of a request, or of a group if `url` is empty. `url` is a complete URL, or
    /// the text in the error if the URL is invalid.
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

    /// The URL without user, password, query values and fragment; empty for a batch or chain.
    public var url: String { Redaction.url(rawURL) }

    /// The host in lower case, with its port unless it is the scheme's default: `h`, `h:8080`, `[::1]:8080`. Empty for
    /// a batch or chain.
    public var host: String { HostKey.authority(of: rawURL) }

    package var isSecure: Bool { HostKey.isSecure(rawURL) }

    /// Whether scheme, host and port of the URL are spelled like this: `https://h:8443`.
    package func begins(with origin: String) -> Bool { HostKey.begins(rawURL, with: origin) }

    /// Calls `body` with scheme, host and port as the URL spells them, `https://h:8443`, and with their hash. Returns
    /// what it returns, or `false` if there is no host.
    package func withOrigin(hashedWith seed: UInt64, _ body: (UnsafeRawBufferPointer, UInt64) -> Bool) -> Bool {
        let result = rawURL.utf8.withContiguousStorageIfAvailable { url -> Bool in
            let url = UnsafeRawBufferPointer(url)
            let length = HostKey.prefixLength(url)
            // The shortest text, `http://h`, has eight bytes.
            if length < 8 { return false }
            let origin = UnsafeRawBufferPointer(rebasing: url[..<length])
            return body(origin, HealthyHosts.hash(origin, seed: seed))
        }
        return result ?? false
    }

    /// Whether this is the URL that the run began with.
    package func isAbout(_ url: String) -> Bool { rawURL == url }
}

// All conversions to text are defined here, because the defaults would show the original URL.
extension RunInfo: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// One line without secrets, like `request 7 GET http://h/x`.
    public var description: String {
        var line = "\(kind) \(id)"
        if let method { line += " \(method)" }
        let url = url
        if !url.isEmpty { line += " \(url)" }
        return line
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// The redacted members.
    public var customMirror: Mirror {
        Mirror(self, children: ["id": id, "kind": kind, "method": method as Any, "url": url, "tag": tag as Any])
    }
}

/// How a run ended.
public enum RunOutcome: Sendable {
    /// The run succeeded. `status` is `nil` for a batch or chain.
    case finished(status: Int?, isFromCache: Bool)
    /// The run failed, also with `invalidStatusCode` or because the agent was shut down.
    case failed(RequestError)
    /// The run was cancelled.
    case cancelled

    /// The outcome of a run that ended with this error.
    public init(_ error: RequestError) {
        if case .cancelled = error { self = .cancelled } else { self = .failed(error) }
    }

    /// The error; `nil` if the run succeeded or was cancelled.
    public var error: RequestError? { if case .failed(let error) = self { error } else { nil } }

    /// The status code, also of a response that was not accepted.
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
