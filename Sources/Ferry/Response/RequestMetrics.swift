package import FerryTransport

/// What was measured of one run. A member that is `nil` stands for something that did not happen, or did not come to
/// its end.
///
/// A run that was redirected or sent again has taken several attempts: ``queue`` to ``firstByte`` are those of the last
/// one, ``total`` and the counts are of all.
public struct RequestMetrics: Sendable, Hashable {
    /// From the start of the last attempt until it left the queue.
    public var queue: Duration
    /// From there until the name was known.
    public var nameLookup: Duration?
    /// From there until a connection stood; `nil` on a kept one, and where TLS failed on it.
    public var connect: Duration?
    /// From there until TLS stood; `nil` likewise.
    public var tls: Duration?
    /// From there until the first byte of the answer.
    public var firstByte: Duration?
    /// From the start of the run until its end; of a streamed one until the end of its body, with what its reader took.
    public var total: Duration
    /// Head and body of the request, of all attempts and redirects.
    public var bytesSent: UInt64
    /// Head and body of the answer, before decoding, and of those before it that were not the last.
    public var bytesReceived: UInt64

    /// How often the request was tried, redirects not counted; an attempt that did not reach a server counts. 0 for a
    /// run that never left.
    public var attempts: Int
    /// Redirects that were followed.
    public var redirects = 0
    /// Whether the last attempt went over a kept connection.
    public var isReusedConnection: Bool
    /// The protocol of the answer; `nil` without one.
    public var httpVersion: Response.HTTPVersion?
    /// Where the connection led; `nil` without one.
    public var peer: Response.Peer?
    /// What carried the last attempt; `nil` for a run that did not come to the network.
    public var engine: Engine?

    /// Validation and decoding together; `nil` for a run that did not come so far.
    public var processing: Duration?
    /// Of this, the making of the value.
    public var decoding: Duration?
    /// What the cache said; `nil` when it was not asked.
    public var cache: CacheOutcome?

    /// What carries an attempt.
    public enum Engine: Sendable, Hashable {
        /// Ferry's own HTTP/1.1 engine.
        case http1
        /// libcurl.
        case libcurl
    }

    /// What the cache had for a run. An open set.
    public struct CacheOutcome: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// A word, like `hit`.
        public let rawValue: String

        /// Makes one of a word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A fresh answer.
        public static var hit: CacheOutcome { CacheOutcome(rawValue: "hit") }
        /// An answer past its time, which was allowed.
        public static var stale: CacheOutcome { CacheOutcome(rawValue: "stale") }
        /// An answer past its time that the server has validated (RFC 9111, 4.3): only its head came over the network.
        public static var revalidated: CacheOutcome { CacheOutcome(rawValue: "revalidated") }
        /// Nothing that could be used.
        public static var miss: CacheOutcome { CacheOutcome(rawValue: "miss") }

        /// The word.
        public var description: String { rawValue }
    }

    /// Those of a run that never came to the network, or of a group: all zero, or `nil`.
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
        func time(_ value: UInt64) -> Duration? { value == 0 ? nil : .microseconds(Int64(value)) }
        queue = .microseconds(Int64(times.queue))
        nameLookup = time(times.name)
        connect = time(times.connect)
        tls = time(times.tls)
        firstByte = time(times.firstByte)
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
