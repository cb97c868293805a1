package import FerryTransport

/// The measurements of one run. A member is `nil` if the phase did not happen or did not end.
///
/// ``queue`` to ``firstByte`` are durations that follow one another. If a run has several exchanges because of
/// redirects or retries, they are those of the last one, and ``total`` and the counts are those of all. In a run with a
/// single exchange, the rest of ``total`` is the time in which the body was received.
public struct RequestMetrics: Sendable, Hashable {
    /// From the start of the last exchange until it left the queue.
    public var queue: Duration
    /// From there until the name was resolved.
    public var nameLookup: Duration?
    /// From there until the connection was established; `nil` on a reused connection, and if the TLS handshake failed.
    public var connect: Duration?
    /// From there until the TLS handshake was complete; `nil` on a reused connection, and if the TLS handshake failed.
    public var tls: Duration?
    /// From there until the first byte of the response.
    public var firstByte: Duration?
    /// From the start of the run until its end. For a streamed response, until the end of its body, including the
    /// reader's time.
    public var total: Duration
    /// The number of bytes sent, head and body, in all attempts and redirects.
    public var bytesSent: UInt64
    /// The number of bytes received, head and body before decoding, of all responses.
    public var bytesReceived: UInt64

    /// The number of attempts, without redirects, which ``Response/attempts`` and ``RequestError/attempts`` include. An
    /// attempt that did not reach a server counts. 0 for a run that was never sent.
    public var attempts: Int
    /// The number of redirects that were followed.
    public var redirects = 0
    /// Whether the last attempt reused a connection.
    public var isReusedConnection: Bool
    /// The HTTP version of the response; `nil` without a response.
    public var httpVersion: Response.HTTPVersion?
    /// The address of the server; `nil` without a connection.
    public var peer: Response.Peer?
    /// The engine of the last attempt; `nil` for a run that did not use the network.
    public var engine: Engine?

    /// The duration of validation, decoding and preprocessors together; `nil` for a run without an observer or log, for
    /// a stream or download, and in ``Response/metrics``.
    public var processing: Duration?
    /// The part of ``processing`` from the start of ``Request/value(from:)``; `nil` if validation failed.
    public var decoding: Duration?
    /// The result of the cache lookup; `nil` if there was none.
    public var cache: CacheOutcome?

    /// The engine that carries an attempt.
    public enum Engine: Sendable, Hashable {
        /// Ferry's own engine.
        case http1
        /// libcurl.
        case libcurl
    }

    /// The result of a cache lookup. The set is open.
    public struct CacheOutcome: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name, like `hit`.
        public let rawValue: String

        /// Creates a result from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A fresh response.
        public static var hit: CacheOutcome { CacheOutcome(rawValue: "hit") }
        /// A stale response that was allowed.
        public static var stale: CacheOutcome { CacheOutcome(rawValue: "stale") }
        /// A stale response that the server has validated (RFC 9111, 4.3): only its head was transferred.
        public static var revalidated: CacheOutcome { CacheOutcome(rawValue: "revalidated") }
        /// No usable response.
        public static var miss: CacheOutcome { CacheOutcome(rawValue: "miss") }

        /// The name.
        public var description: String { rawValue }
    }

    /// Creates the metrics of a run that did not use the network, or of a group: all zero or `nil`.
    public init() {
        queue = .zero
        total = .zero
        bytesSent = 0
        bytesReceived = 0
        attempts = 0
        isReusedConnection = false
    }

    package init(_ result: TransferResult) {
        let times = result.metrics
        // The core counts each phase from the moment the attempt left the queue; 0 means that it did not end.
        var last: UInt64 = 0
        func phase(until end: UInt64) -> Duration? {
            if end == 0 { return nil }
            defer { last = max(last, end) }
            return .microseconds(Int64(end - min(last, end)))
        }
        queue = .microseconds(Int64(times.queue))
        nameLookup = phase(until: times.name)
        connect = phase(until: times.connect)
        tls = phase(until: times.tls)
        firstByte = phase(until: times.firstByte)
        total = .microseconds(Int64(times.total))
        bytesSent = result.bytesSent
        bytesReceived = result.bytesReceived
        attempts = result.attempts
        isReusedConnection = result.isReusedConnection
        httpVersion = Response.HTTPVersion(rawValue: result.httpVersion)
        peer = Response.Peer(result)
        engine = result.engine.map { $0 == .http1 ? .http1 : .libcurl }
    }
}

extension Response.Peer {
    /// `nil` when there was no connection.
    init?(_ result: TransferResult) {
        let address = result.peer
        if address.isEmpty { return nil }
        self.init(address: address, port: result.peerPort)
    }
}
