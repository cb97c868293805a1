import FerryCache

/// Whether responses to a request are stored, and who says for how long: the application or the server.
///
///     var cachePolicy: CachePolicy { .timeToLive(.seconds(180), version: 2) }
///
/// With ``timeToLive(_:version:sensitiveData:write:)`` the application knows how old a response may be: what the server
/// says of freshness (`max-age`, `no-cache`, `Expires`) has no part in it. What it says of whose a response is, and
/// that it must not be stored, is respected. With ``http(shared:sensitiveData:write:)`` the server says all of it.
public struct CachePolicy: Sendable {
    /// When an answer that is to be kept has to be on the disk.
    public enum Writing: Sendable, Hashable {
        /// Some time after the run: it does not wait.
        case asynchronous
        /// Before anybody is told of the result. It outlives the process then; only a loss of power can take it back.
        /// Where the deadline of the run passes first, the result does not wait.
        case synchronous
    }

    /// What is wanted of an entry.
    struct Terms: Sendable {
        var lifetime: Duration
        var version: Int
        var sensitiveData: CacheDigest
        var writing: Writing
    }

    /// What a cache by RFC 9111 needs to know.
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

    /// Those of a policy with a time; `nil` of any other.
    var terms: Terms? { if case .timeToLive(let terms) = kind { terms } else { nil } }

    /// Those of the policy by RFC 9111; `nil` of any other.
    var http: HTTPTerms? { if case .http(let terms) = kind { terms } else { nil } }

    var isOn: Bool {
        switch kind {
        case .timeToLive, .http: true
        case .none, .configured: false
        }
    }

    /// Nothing is kept, and nothing is looked for.
    public static let none = CachePolicy(kind: .none)

    /// The configuration's: ``NetworkConfiguration/cachePolicy``.
    public static let configured = CachePolicy(kind: .configured)

    /// Responses are stored, reused, validated and invalidated as the server says (RFC 9111), by a cache of this
    /// client alone, or by one that is `shared` by several users. The default is a private one.
    ///
    /// A private cache keeps what it stores apart by the credentials that a request carries: what was stored for one
    /// user never answers another. `sensitiveData` says whose the responses are (an account, a tenant); then the token
    /// of an ``Authenticator`` and what adapters add does not count, so that what is stored outlives a refresh of the
    /// token. Only a hash of it is kept. A shared cache stores responses to requests with `Authorization` only where
    /// they allow that (RFC 9111, 3.5), and then for everybody.
    ///
    /// A request whose method is unsafe, like POST, has no response that is reused, but it invalidates what is stored
    /// for its URL (RFC 9111, 4.4): make this the configuration's policy, so that all requests have it.
    /// ``Request/cacheArguments`` and ``Request/cacheHeaders`` have no part in it: the URL and `Vary` decide.
    public static func http(
        shared: Bool = false, sensitiveData: String? = nil, write: Writing = .asynchronous
    ) -> CachePolicy {
        CachePolicy(
            kind: .http(
                HTTPTerms(
                    isShared: shared, sensitiveData: sensitiveData.map { CacheDigest(of: $0) } ?? .none,
                    writing: write)))
    }

    /// An answer is kept after it passed validation, and used again while it is not older than `lifetime`. A lifetime
    /// that is not positive keeps nothing.
    ///
    /// An entry of another `version` is a miss: raise it when the format of the answers changes. So is one of other
    /// `sensitiveData`, which is where to say whose the answer is (an account, a tenant) when the request does not show
    /// it; only a hash of it is kept.
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

/// How a start uses the cache. It matters only for requests with a ``CachePolicy``.
///
/// Both at once, the kept answer and then the network's, is `send` and `start` with `cached:`.
public struct CacheMode: Sendable, Hashable {
    /// `revalidate` asks the network also where the cache has a fresh response. It is for runs of Ferry's own.
    enum Way: Sendable { case cacheElseNetwork, reload, cacheOnly, revalidate }

    let way: Way
    /// Microseconds past its time for which an entry may stand in for a failure.
    let staleIfError: Int64
    /// Likewise, for which it is delivered while another is fetched.
    let staleWhileRevalidate: Int64

    private init(_ way: Way, staleIfError: Duration = .zero, staleWhileRevalidate: Duration = .zero) {
        self.way = way
        self.staleIfError = staleIfError.microseconds
        self.staleWhileRevalidate = staleWhileRevalidate.microseconds
    }

    /// A hit answers the run; everything else goes to the network.
    public static let cacheElseNetwork = CacheMode(.cacheElseNetwork)

    /// The cache is not asked; the answer is kept all the same.
    public static let reload = CacheMode(.reload)

    /// The network is not asked: a miss fails with `notCached`.
    public static let cacheOnly = CacheMode(.cacheOnly)

    /// For the run that fetches anew what was served past its time.
    static let revalidate = CacheMode(.revalidate)

    /// As ``cacheElseNetwork``, with use for an entry that is past its time (RFC 5861): for so much longer it stands in
    /// for a network or a server that fails (no answer, 500, 502, 503 or 504), or is delivered at once while a run of
    /// its own fetches a new one. The response says so (``Response/isStale``).
    public static func cacheElseNetwork(
        staleIfError: Duration = .zero, staleWhileRevalidate: Duration = .zero
    ) -> CacheMode {
        CacheMode(.cacheElseNetwork, staleIfError: staleIfError, staleWhileRevalidate: staleWhileRevalidate)
    }

    /// How long past its time an entry may be of use yet, in microseconds.
    var window: Int64 { max(staleIfError, staleWhileRevalidate, 0) }

    var reads: Bool { way != .reload }
    var asksNetwork: Bool { way != .cacheOnly }
}

/// Why the cache had no answer for a run. An open set.
public struct CacheMiss: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// A word, like `expired`.
    public let rawValue: String

    /// One of a word.
    public init(rawValue: String) { self.rawValue = rawValue }

    init(_ reason: CacheMissReason) { rawValue = reason.rawValue }

    init(absence: CacheAbsence) { rawValue = absence.rawValue }

    /// Nothing is kept under the request's key.
    public static let notFound = CacheMiss(.notFound)
    /// Older than allowed, or stored before the clock was set back.
    public static let expired = CacheMiss(.expired)
    /// Of another version of the policy.
    public static let versionMismatch = CacheMiss(.versionMismatch)
    /// Of other sensitive data.
    public static let sensitiveDataMismatch = CacheMiss(.sensitiveDataMismatch)
    /// Of another version of the application.
    public static let appVersionMismatch = CacheMiss(.appVersionMismatch)
    /// A header field that the answer varies by (`Vary`) is another one.
    public static let varyMismatch = CacheMiss(.varyMismatch)
    /// The cookie jar is not empty, and the policy has no sensitive data: whose the answer is cannot be known.
    public static let unknownCredentials = CacheMiss(rawValue: "unknownCredentials")
    /// It does not pass the request's checks any more.
    public static let invalid = CacheMiss(.invalid)
    /// It was damaged, and is removed.
    public static let corrupt = CacheMiss(.corrupt)
    /// The disk cannot be read now.
    public static let unavailable = CacheMiss(.unavailable)
    /// The mode was ``CacheMode/reload``.
    public static let reload = CacheMiss(.reload)
    /// No policy, no cache in the configuration, or a body that is read from a file, a form or a stream.
    public static let notConfigured = CacheMiss(.notConfigured)

    /// The word.
    public var description: String { rawValue }
}

/// Why an answer was not kept, although the request's policy asked for it. An open set.
public struct CacheRefusal: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// A word, like `noStore`.
    public let rawValue: String

    /// One of a word.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// `Cache-Control: no-store`, in the answer or in the request.
    public static let noStore = CacheRefusal(rawValue: "noStore")
    /// `Cache-Control: private` or a `Set-Cookie`, and nothing in the request or its policy says whose it is.
    public static let notShared = CacheRefusal(rawValue: "notShared")
    /// It was sent with credentials that the request does not show (of an adapter, an authenticator, a credential
    /// provider or a cookie jar), and the policy has no sensitive data. Nor is a response kept that such credentials
    /// led to, by a redirect that dropped them or past a proxy that asked for them.
    public static let unknownCredentials = CacheRefusal(rawValue: "unknownCredentials")
    /// With ``CachePolicy/http(shared:sensitiveData:write:)``: a response to this method may not be stored.
    public static let method = CacheRefusal(rawValue: "method")
    /// Likewise: the status is none that may be reused where nothing says for how long (RFC 9110, 15.1).
    public static let status = CacheRefusal(rawValue: "status")
    /// Likewise: it has no lifetime and no validator, and so could never be reused.
    public static let notReusable = CacheRefusal(rawValue: "notReusable")
    /// Likewise: an unsafe request to the same URL went well while it was under way.
    public static let invalidated = CacheRefusal(rawValue: "invalidated")
    /// `Vary: *`
    public static let vary = CacheRefusal(rawValue: "vary")
    /// A part (206), or no answer of its own (304).
    public static let partial = CacheRefusal(rawValue: "partial")
    /// Its end is the end of the connection: whether all of it came cannot be known.
    public static let untilClose = CacheRefusal(rawValue: "untilClose")
    /// ``Request/shouldCache(_:)`` said no.
    public static let request = CacheRefusal(rawValue: "request")
    /// Larger than ``CacheConfiguration/maxEntryBytes``.
    public static let tooLarge = CacheRefusal(rawValue: "tooLarge")
    /// The writing queue was full.
    public static let queueFull = CacheRefusal(rawValue: "queueFull")

    /// The word.
    public var description: String { rawValue }
}
