/// What the cache did for a response, in the terms of RFC 9211.
///
///     let reply = try await agent.send(Prices(shop: "7"))
///     print(reply.cacheStatus?.description ?? "no cache")  // Ferry; hit; ttl=172
public struct CacheStatus: Sendable, Hashable, CustomStringConvertible {
    /// Why a request went to the network (RFC 9211, 2.2). An open set.
    public struct Forward: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name, like `stale`.
        public let rawValue: String

        /// Creates a reason from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The cache was bypassed: the mode was ``CacheMode/reload``, or the credentials are unknown.
        public static let bypass = Forward(rawValue: "bypass")
        /// The cache does not serve this method.
        public static let method = Forward(rawValue: "method")
        /// Nothing is stored for the URL.
        public static let uriMiss = Forward(rawValue: "uri-miss")
        /// Responses are stored for the URL, but not for the request's values of the fields in `Vary`.
        public static let varyMiss = Forward(rawValue: "vary-miss")
        /// No usable response is stored, for another reason.
        public static let miss = Forward(rawValue: "miss")
        /// A fresh response is stored, but the request asked for a newer one.
        public static let request = Forward(rawValue: "request")
        /// The stored response is stale.
        public static let stale = Forward(rawValue: "stale")
        /// The stored response is partial, and the request asked for more.
        public static let partial = Forward(rawValue: "partial")

        /// The name.
        public var description: String { rawValue }
    }

    /// Whether the response came from the cache without using the network. It may be stale if `stale-while-revalidate`,
    /// `stale-if-error` or the request permits it: then ``ttl`` is negative.
    public var isHit = false
    /// Why the network was used; `nil` if it was not.
    public var forward: Forward?
    /// The status of the server's response if it differs: 304 after a validation, or that of a failure which a stored
    /// response replaces. `nil` otherwise.
    public var forwardStatus: Int?
    /// Whether the response was stored, or a stored one updated. Always `false` with
    /// ``CachePolicy/timeToLive(_:version:sensitiveData:write:)``, where this is decided later.
    public var isStored = false
    /// Whether the run waited for another run that validated the same stored response.
    public var isCollapsed = false
    /// The remaining freshness in whole seconds; negative if the response is stale, `nil` if it is unknown.
    public var ttl: Duration?
    /// Further information, like the name of a ``CacheMiss`` or of a ``CacheRefusal``. The default is `nil`.
    public var detail: String?

    /// Creates the status of a cache that did nothing.
    public init() {}

    /// The status of a hit.
    static func hit(ttl: Duration?) -> CacheStatus {
        var status = CacheStatus()
        (status.isHit, status.ttl) = (true, ttl)
        return status
    }

    /// The status of a request that used the network.
    static func forwarded(_ reason: Forward, detail: String? = nil) -> CacheStatus {
        var status = CacheStatus()
        (status.forward, status.detail) = (reason, detail)
        return status
    }

    /// A member of a `Cache-Status` field (RFC 9211, 2), like `Ferry; fwd=stale; fwd-status=304; stored; ttl=60`.
    public var description: String {
        var words = ["Ferry"]
        if isHit { words.append("hit") }
        if let forward { words.append("fwd=\(forward)") }
        if let forwardStatus { words.append("fwd-status=\(forwardStatus)") }
        if isStored { words.append("stored") }
        if isCollapsed { words.append("collapsed") }
        if let ttl { words.append("ttl=\(ttl.components.seconds)") }
        if let detail { words.append("detail=\(detail)") }
        return words.joined(separator: "; ")
    }
}
