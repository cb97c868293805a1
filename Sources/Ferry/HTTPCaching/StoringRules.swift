import FerryCache
import FerrySynchronization
import FerryTransport

/// Decides whether a response may be stored, and which of its fields (RFC 9111, 3).
enum StoringRules {
    /// The properties of an exchange that the decision needs.
    struct Exchange: Sendable {
        var method: String
        /// The absolute URL of the request.
        var url: String
        var request: Headers
        var status: Int
        var response: Headers
        /// Whether the request carried `Authorization`.
        var isAuthorized = false
        var isShared = false
    }

    /// The reason why a response must not be stored (RFC 9111, 3 and 3.5); `nil` if it may be.
    ///
    /// Ferry also refuses, beyond the standard, a response that could never be reused: one that has neither a lifetime,
    /// nor a validator, nor a time for use after its lifetime.
    static func refusal(
        _ exchange: Exchange, _ directives: ResponseDirectives, _ lifetime: Freshness.Lifetime
    ) -> CacheRefusal? {
        let isExplicit = if case .explicit = lifetime { true } else { false }
        switch exchange.method {
        case "GET", "HEAD": break
        case "POST" where isExplicit && isOwnLocation(exchange): break
        default: return .method
        }
        if exchange.status < 200 || exchange.status == 304 { return .partial }
        if exchange.status == 206 && exchange.method != "GET" { return .partial }
        if directives.mustUnderstand {
            // `no-store` is then only for caches that do not know `must-understand` (RFC 9111, 5.2.2.3).
            if !StatusCodes.areUnderstood.contains(exchange.status) { return .noStore }
        } else if directives.noStore {
            return .noStore
        }
        if RequestCacheControl(exchange.request).noStore { return .noStore }
        if exchange.isShared {
            if directives.isPrivate { return .notShared }
            if exchange.isAuthorized && !directives.permitsSharing { return .notShared }
        }
        if VaryRules.names(exchange.response) == nil { return .vary }
        let isCacheable =
            isExplicit || directives.isPublic || (directives.isPrivate && !exchange.isShared)
            || StatusCodes.areHeuristicallyCacheable.contains(exchange.status)
        if !isCacheable { return .status }
        let isReusable =
            lifetime.microseconds > 0 || Validators(exchange.response).isAny || directives.staleIfError > 0
            || directives.staleWhileRevalidate > 0
        return isReusable ? nil : .notReusable
    }

    /// Whether a response to POST serves later GETs, because it says that it is the content of this URL (RFC 9110,
    /// 9.3.3).
    private static func isOwnLocation(_ exchange: Exchange) -> Bool {
        guard let location = exchange.response["Content-Location"] else { return false }
        return InvalidationRules.resolve(location, against: exchange.url) == CanonicalOrigin.apply(to: exchange.url)
    }

    /// The fields of a response that are stored (RFC 9111, 3.1). Left out are fields of the connection or a proxy,
    /// fields that the response forbids to reuse, `Age`, which is computed for each use, and cookies, which are set
    /// once and for one user.
    static func storedFields(
        _ headers: Headers, _ directives: ResponseDirectives, isShared: Bool
    ) -> [Headers.Field] {
        var named = Set(directives.noCacheFields)
        for value in headers.values(of: "Connection") { named.formUnion(fieldNames(value)) }
        if isShared { named.formUnion(directives.privateFields) }
        // They are needed to decide about the reuse.
        named.subtract(needed)
        return headers.filter { field in
            let name = lowercased(field.name)
            return !left.contains(name) && !named.contains(name)
        }
    }

    private static let left = ofConnection.union(["age", "set-cookie", "set-cookie2"])
    private static let needed: Set = ["cache-control", "date", "vary", "expires", "etag", "last-modified"]

    /// Fields of one connection, or for a proxy (RFC 9110, 7.6.1; RFC 9111, 3.1).
    static let ofConnection: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
    ]
}

/// A field name in lower case.
func lowercased(_ name: String) -> String {
    if name.utf8.allSatisfy({ $0 < 0x41 || $0 > 0x5A }) { return name }
    return String(decoding: name.utf8.map(lowercased), as: UTF8.self)
}

/// Decides which stored responses a successful unsafe request invalidates (RFC 9111, 4.4).
enum InvalidationRules {
    /// The URLs that are invalidated: the target, and those in `Location` and `Content-Location` of the same origin.
    /// None after a safe method (RFC 9110, 9.2.1) or an error. Their origin has the spelling of ``CanonicalOrigin``.
    static func invalidated(method: String, url: String, status: Int, _ response: Headers) -> [String] {
        guard isUnsafe(method), (200..<400).contains(status) else { return [] }
        let url = CanonicalOrigin.apply(to: url)
        var urls = [url]
        for name in ["Location", "Content-Location"] {
            guard let value = response[name], let other = resolve(value, against: url), !urls.contains(other),
                let origin = HostKey(url: url), HostKey(url: other) == origin
            else { continue }
            urls.append(other)
        }
        return urls
    }

    /// Whether a method may change something on the server. Unknown methods may.
    static func isUnsafe(_ method: String) -> Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY": false
        default: true
        }
    }

    /// The absolute URL of a reference in a response, without its fragment; `nil` if the reference is invalid.
    static func resolve(_ reference: String, against url: String) -> String? {
        guard let source = try? URLParts(url), let target = try? source.resolving(Array(reference.utf8)) else {
            return nil
        }
        let text = target.text
        return text.utf8.firstIndex(of: UInt8(ascii: "#")).map { String(text[..<$0]) } ?? text
    }
}

/// The URLs that unsafe requests have invalidated, in order. A response that was already on its way is older than the
/// change and is not stored (RFC 9111, 4.4). They are numbered, not timed, because the clock may be set back.
/// Thread-safe.
final class Invalidations: Sendable {
    private struct State {
        /// The number of the last invalidation, by the digest of the key, which may be long.
        var numbers: [CacheDigest: UInt64] = [:]
        /// The highest number that is no longer in the table.
        var forgotten: UInt64 = 0
    }

    private let state = Mutex(State())
    /// It changes with the lock held, but is read without it, by every run.
    private let last = Atomic<UInt64>(0)
    /// The maximum number of keys remembered at once.
    private static let most = 4096

    /// The number of the last invalidation. Read it before sending a request.
    var mark: UInt64 { last.load(ordering: .acquiring) }

    /// The number of remembered keys.
    var count: Int { state.withLock { $0.numbers.count } }

    /// Notes the key with this digest.
    func note(_ digest: CacheDigest) {
        state.withLock { state in
            if state.numbers.count >= Self.most {
                let middle = state.numbers.values.sorted()[Self.most / 2]
                state.numbers = state.numbers.filter { $0.value > middle }
                state.forgotten = middle
            }
            state.numbers[digest] = last.add(1, ordering: .acquiringAndReleasing).newValue
        }
    }

    /// Notes all keys.
    func noteAll() {
        state.withLock { state in
            (state.forgotten, state.numbers) = (last.add(1, ordering: .acquiringAndReleasing).newValue, [:])
        }
    }

    /// Whether the key was invalidated after `mark` was read; `true` also if that is no longer known.
    func isNoted(_ key: CacheKey, since mark: UInt64) -> Bool {
        if last.load(ordering: .acquiring) <= mark { return false }
        let digest = key.digest
        return state.withLock { $0.forgotten > mark || ($0.numbers[digest] ?? 0) > mark }
    }
}
