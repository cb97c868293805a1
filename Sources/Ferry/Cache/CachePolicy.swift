import FerryCache

/// Whether the responses to a request are stored, and who decides for how long: the application or the server.
///
///     var cachePolicy: CachePolicy { .timeToLive(.seconds(180), version: 2) }
///
/// With ``timeToLive(_:version:sensitiveData:write:)`` the application sets the maximum age. The server's freshness
/// information (`max-age`, `no-cache`, `Expires`) is ignored, but not its information about the owner of a response and
/// about responses that must not be stored. With ``http(shared:sensitiveData:write:)`` the server decides everything.
public struct CachePolicy: Sendable {
    /// When a response has to be on disk.
    public enum Writing: Sendable, Hashable {
        /// Some time after the run, which does not wait.
        case asynchronous
        /// Before anybody gets the result. The response then survives the process; only a loss of power can remove it.
        /// If the deadline of the run passes first, the result does not wait.
        case synchronous
    }

    /// The requirements for an entry.
    struct Terms: Sendable {
        var lifetime: Duration
        var version: Int
        var sensitiveData: CacheDigest
        var writing: Writing
    }

    /// The parameters of the HTTP cache.
    struct HTTPTerms: Sendable {
        var isShared: Bool
        var sensitiveData: CacheDigest
        var writing: Writing
    }

    enum Kind: Sendable {
        case none
        case configured
        case timeToLive(Terms)
        case http(HTTPTerms)
    }

    let kind: Kind

    /// The requirements of a policy with a time to live; `nil` for any other policy.
    var terms: Terms? { if case .timeToLive(let terms) = kind { terms } else { nil } }

    /// The parameters of the policy by RFC 9111; `nil` for any other policy.
    var http: HTTPTerms? { if case .http(let terms) = kind { terms } else { nil } }

    var isOn: Bool {
        switch kind {
        case .timeToLive, .http: true
        case .none, .configured: false
        }
    }

    /// Responses are neither stored nor looked up.
    public static let none = CachePolicy(kind: .none)

    /// The configuration's policy: ``NetworkConfiguration/cachePolicy``.
    public static let configured = CachePolicy(kind: .configured)

    /// Responses are stored, reused, validated and invalidated as the server says (RFC 9111). The cache is private by
    /// default, or `shared` by several users.
    ///
    /// A private cache separates its entries by the credentials in the request: a response for one user never reaches
    /// another. `sensitiveData` names the owner of the responses (an account, a tenant). Then the token of an
    /// ``Authenticator`` and additions by adapters do not count, so stored responses outlive a token refresh. Only a
    /// hash of it is stored. A shared cache stores responses to requests with `Authorization` only if they permit it
    /// (RFC 9111, 3.5), and then for everybody.
    ///
    /// Responses to an unsafe method, like POST, are not reused, but the request invalidates the stored responses for
    /// its URL (RFC 9111, 4.4). So set this as the configuration's policy, which applies to all requests.
    /// ``Request/cacheArguments`` and ``Request/cacheHeaders`` are ignored: the URL and `Vary` decide.
    public static func http(
        shared: Bool = false, sensitiveData: String? = nil, write: Writing = .asynchronous
    ) -> CachePolicy {
        CachePolicy(
            kind: .http(
                HTTPTerms(
                    isShared: shared, sensitiveData: sensitiveData.map { CacheDigest(of: $0) } ?? .none,
                    writing: write)))
    }

    /// A response is stored after it has passed validation, and reused until it is older than `lifetime`. With a
    /// lifetime that is not positive, nothing is stored.
    ///
    /// An entry with another `version` is a miss: raise it when the format of the responses changes. An entry with
    /// other `sensitiveData` is a miss, too. It names the owner of the response (an account, a tenant) if the request
    /// does not show it; only a hash of it is stored.
    public static func timeToLive(
        _ lifetime: Duration, version: Int = 0, sensitiveData: String? = nil, write: Writing = .asynchronous
    ) -> CachePolicy {
        if lifetime <= .zero { return .none }
        let sensitiveData = sensitiveData.map { CacheDigest(of: $0) } ?? .none
        return CachePolicy(
            kind: .timeToLive(
                Terms(lifetime: lifetime, version: version, sensitiveData: sensitiveData, writing: write)))
    }
}

/// How a run uses the cache. It has an effect only for requests with a ``CachePolicy``.
///
/// To get the stored response first and then that of the network, use `send` or `start` with `cached:`.
public struct CacheMode: Sendable, Hashable {
    /// `revalidate` uses the network even if the cache has a fresh response. It is for Ferry's own runs.
    enum Way: Sendable { case cacheElseNetwork, reload, cacheOnly, revalidate }

    let way: Way
    /// How long after its expiry an entry may replace a failure, in microseconds.
    let staleIfError: Int64
    /// How long after its expiry an entry may be delivered while another is fetched, in microseconds.
    let staleWhileRevalidate: Int64

    private init(_ way: Way, staleIfError: Duration = .zero, staleWhileRevalidate: Duration = .zero) {
        self.way = way
        self.staleIfError = staleIfError.microseconds
        self.staleWhileRevalidate = staleWhileRevalidate.microseconds
    }

    /// A hit is delivered; otherwise the network is used.
    public static let cacheElseNetwork = CacheMode(.cacheElseNetwork)

    /// The cache is not looked up, but the response is stored.
    public static let reload = CacheMode(.reload)

    /// The network is not used: a miss fails with `notCached`, and so do streams and downloads, which use no cache.
    public static let cacheOnly = CacheMode(.cacheOnly)

    /// For the run that refreshes a response that was served stale.
    static let revalidate = CacheMode(.revalidate)

    /// Like ``cacheElseNetwork``, but expired entries are used, too (RFC 5861). For the given time after its expiry, an
    /// entry replaces a failure of the network or the server (no response, 500, 502, 503 or 504), or is delivered at
    /// once while a separate run fetches a new one. Then ``Response/isStale`` is `true`.
    public static func cacheElseNetwork(
        staleIfError: Duration = .zero, staleWhileRevalidate: Duration = .zero
    ) -> CacheMode {
        CacheMode(.cacheElseNetwork, staleIfError: staleIfError, staleWhileRevalidate: staleWhileRevalidate)
    }

    /// How long after its expiry an entry may be useful, in microseconds.
    var window: Int64 { max(staleIfError, staleWhileRevalidate, 0) }

    var reads: Bool { way != .reload }
    var asksNetwork: Bool { way != .cacheOnly }
}

/// Why there was no hit. The set is open.
public struct CacheMiss: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The name, like `expired`.
    public let rawValue: String

    /// Creates a reason from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    init(_ reason: CacheMissReason) { rawValue = reason.rawValue }

    init(absence: CacheAbsence) { rawValue = absence.rawValue }

    /// Nothing is stored under the request's key.
    public static let notFound = CacheMiss(.notFound)
    /// The entry is too old, or was stored before the clock was set back.
    public static let expired = CacheMiss(.expired)
    /// The entry has another version of the policy.
    public static let versionMismatch = CacheMiss(.versionMismatch)
    /// The entry has other sensitive data.
    public static let sensitiveDataMismatch = CacheMiss(.sensitiveDataMismatch)
    /// The entry has another version of the application.
    public static let appVersionMismatch = CacheMiss(.appVersionMismatch)
    /// A header field in the response's `Vary` has another value.
    public static let varyMismatch = CacheMiss(.varyMismatch)
    /// The cookie jar is not empty, and the policy has no sensitive data, so the owner of the response is unknown.
    public static let unknownCredentials = CacheMiss(rawValue: "unknownCredentials")
    /// The entry no longer passes the request's validation.
    public static let invalid = CacheMiss(.invalid)
    /// The entry was damaged, and is removed.
    public static let corrupt = CacheMiss(.corrupt)
    /// The disk cannot be read at the moment.
    public static let unavailable = CacheMiss(.unavailable)
    /// The mode was ``CacheMode/reload``.
    public static let reload = CacheMiss(.reload)
    /// There is no policy, no cache in the configuration, or the body is read from a file, a form or a stream.
    public static let notConfigured = CacheMiss(.notConfigured)

    /// The name.
    public var description: String { rawValue }
}

/// Why a response was not stored although the request's policy asked for it. The set is open.
public struct CacheRefusal: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The name, like `noStore`.
    public let rawValue: String

    /// Creates a reason from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// `Cache-Control: no-store` in the response or the request.
    public static let noStore = CacheRefusal(rawValue: "noStore")
    /// `Cache-Control: private` or a `Set-Cookie`, and neither the request nor its policy names the owner.
    public static let notShared = CacheRefusal(rawValue: "notShared")
    /// The request was sent with credentials that it does not show (of an adapter, an authenticator, a credential
    /// provider or a cookie jar), and the policy has no sensitive data. This includes responses to which such
    /// credentials led, by a redirect that dropped them or through a proxy that required them.
    public static let unknownCredentials = CacheRefusal(rawValue: "unknownCredentials")
    /// With ``CachePolicy/http(shared:sensitiveData:write:)``: responses to this method must not be stored.
    public static let method = CacheRefusal(rawValue: "method")
    /// With the same policy: the status cannot be reused without an explicit lifetime (RFC 9110, 15.1).
    public static let status = CacheRefusal(rawValue: "status")
    /// With the same policy: the response has no lifetime and no validator, so it could never be reused.
    public static let notReusable = CacheRefusal(rawValue: "notReusable")
    /// With the same policy: an unsafe request to the same URL succeeded in the meantime.
    public static let invalidated = CacheRefusal(rawValue: "invalidated")
    /// The response has `Vary: *`.
    public static let vary = CacheRefusal(rawValue: "vary")
    /// A partial response (206), or a 304.
    public static let partial = CacheRefusal(rawValue: "partial")
    /// The body ends with the connection, so it is unknown whether it is complete.
    public static let untilClose = CacheRefusal(rawValue: "untilClose")
    /// ``Request/shouldCache(_:)`` returned `false`.
    public static let request = CacheRefusal(rawValue: "request")
    /// The response is larger than ``CacheConfiguration/maxEntryBytes``.
    public static let tooLarge = CacheRefusal(rawValue: "tooLarge")
    /// The writing queue was full.
    public static let queueFull = CacheRefusal(rawValue: "queueFull")

    /// The name.
    public var description: String { rawValue }
}
