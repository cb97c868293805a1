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

/// What the cache did for a response.
struct CacheTrace: Sendable {
    enum Outcome: Sendable {
        /// It came from the cache, with its age and whether it is stale.
        case hit(age: Duration, isStale: Bool)
        /// The server has validated it (RFC 9111, 4.3.3).
        case validated(age: Duration)
        case miss(CacheMiss)
    }

    let outcome: Outcome
    /// The remaining freshness in microseconds; negative if it is stale.
    var remaining: Int64?
    /// Whether the HTTP cache was used: then the fields have the age.
    var isHTTP = false
    /// Why a validation was sent that has changed only dates.
    var forward: CacheStatus.Forward?
    /// Whether the result of that validation is stored.
    var isStored = false
    /// What else happened beyond a hit, with RFC 9111.
    var more: CacheTraceStatus?

    var age: Duration? {
        switch outcome {
        case .hit(let age, _), .validated(let age): age
        case .miss: nil
        }
    }
    var isStale: Bool { if case .hit(_, true) = outcome { true } else { false } }
    var isHit: Bool { if case .hit = outcome { true } else { false } }
    var miss: CacheMiss? { if case .miss(let miss) = outcome { miss } else { nil } }

    var metric: RequestMetrics.CacheOutcome {
        switch outcome {
        case .hit(_, isStale: false): .hit
        case .hit(_, isStale: true): .stale
        case .validated: .revalidated
        case .miss: .miss
        }
    }
}

/// A status that is more complex than a hit. On the heap, because a hit has none.
final class CacheTraceStatus: Sendable {
    let status: CacheStatus

    init(_ status: CacheStatus) { self.status = status }
}

extension CacheTrace {
    var status: CacheStatus {
        if let more { return more.status }
        if let forward {
            var status = CacheStatus.forwarded(forward)
            (status.isStored, status.forwardStatus) = (isStored, 304)
            status.ttl = remaining.map { .seconds($0.flooredSeconds) }
            return status
        }
        switch outcome {
        case .hit, .validated: return .hit(ttl: remaining.map { .seconds($0.flooredSeconds) })
        case .miss(let miss):
            let reason: CacheStatus.Forward =
                switch miss {
                case .notFound: .uriMiss
                case .expired: .stale
                case .varyMismatch: .varyMiss
                case .reload, .unknownCredentials, .notConfigured: .bypass
                default: .miss
                }
            return .forwarded(reason, detail: miss.rawValue)
        }
    }
}

extension Int64 {
    /// Converts microseconds. A response that is stale by less than a second is stale by a whole one.
    var flooredSeconds: Int64 { self >= 0 ? self / 1_000_000 : -((-self + 999_999) / 1_000_000) }
}
