/// What the cache did for a response, in the vocabulary of RFC 9211.
///
///     let reply = try await agent.send(Prices(shop: "7"))
///     print(reply.cacheStatus?.description ?? "no cache")  // Ferry; hit; ttl=172
public struct CacheStatus: Sendable, Hashable, CustomStringConvertible {
    /// Why a request went to the network (RFC 9211, 2.2). An open set.
    public struct Forward: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// A word, like `stale`.
        public let rawValue: String

        /// Makes one of a word.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The cache was not to handle the request: the mode was ``CacheMode/reload``, or its credentials are unknown.
        public static let bypass = Forward(rawValue: "bypass")
        /// The method is not one that the cache answers.
        public static let method = Forward(rawValue: "method")
        /// Nothing is stored for the URL.
        public static let uriMiss = Forward(rawValue: "uri-miss")
        /// Something is stored for the URL, and nothing for the fields that it varies by.
        public static let varyMiss = Forward(rawValue: "vary-miss")
        /// Nothing that could be used is stored, for another reason.
        public static let miss = Forward(rawValue: "miss")
        /// A fresh response is stored, and the request asked for a newer one.
        public static let request = Forward(rawValue: "request")
        /// What is stored is past its time.
        public static let stale = Forward(rawValue: "stale")
        /// What is stored is a part, and the request asked for more.
        public static let partial = Forward(rawValue: "partial")

        /// The word.
        public var description: String { rawValue }
    }

    /// Whether the response came from the cache without asking the network. It may be past its time, where
    /// `stale-while-revalidate`, `stale-if-error` or the request allows that: then ``ttl`` is negative.
    public var isHit = false
    /// Why the network was asked; `nil` where it was not.
    public var forward: Forward?
    /// The status of the server's response where it is not the response's: 304 after a validation, or that of a failure
    /// for which a stored response stands in. `nil` otherwise.
    public var forwardStatus: Int?
    /// Whether the response was stored, or what is stored was updated. Always `false` with
    /// ``CachePolicy/timeToLive(_:version:sensitiveData:write:)``, where that is decided later.
    public var isStored = false
    /// Whether the run waited for another one that validated the same stored response.
    public var isCollapsed = false
    /// How long the response is fresh yet, in whole seconds; negative past its time, `nil` where that is not known.
    public var ttl: Duration?
    /// More than the vocabulary says, like the name of a ``CacheMiss`` or of a ``CacheRefusal``. The default is `nil`.
    public var detail: String?

    /// A status of a cache that did nothing.
    public init() {}

    /// A hit.
    static func hit(ttl: Duration?) -> CacheStatus {
        var status = CacheStatus()
        (status.isHit, status.ttl) = (true, ttl)
        return status
    }

    /// A request that went on.
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
