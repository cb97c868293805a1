/// The URLs to which paths are joined: the part of the configuration that can change while the agent runs.
final class Servers: Sendable {
    let baseText: String?
    let cdnText: String?
    let filters: [any URLFilter]
    private let base: Result<BaseURL?, URLFault>
    private let cdn: Result<BaseURL?, URLFault>
    /// The origins of base URL and CDN URL, if they are valid.
    private let origins: [HostKey]

    init(base: String?, cdn: String?, filters: [any URLFilter]) {
        baseText = base
        cdnText = cdn
        self.filters = filters
        self.base = Self.parsed(base)
        self.cdn = Self.parsed(cdn)
        origins = [self.base, self.cdn].compactMap { try? $0.get() }.compactMap { HostKey(url: $0.prefix) }
    }

    /// The servers that a request names itself.
    struct Named: Sendable {
        var base: String?
        var cdn: String?
    }

    func replacing(base: String?) -> Servers { Servers(base: base, cdn: cdnText, filters: filters) }
    func replacing(cdn: String?) -> Servers { Servers(base: baseText, cdn: cdn, filters: filters) }
    func replacing(filters: [any URLFilter]) -> Servers { Servers(base: baseText, cdn: cdnText, filters: filters) }

    private static func parsed(_ text: String?) -> Result<BaseURL?, URLFault> {
        Result { () throws(URLFault) in try text.map { text throws(URLFault) in try BaseURL(text) } }
    }

    /// Returns an absolute URL unchanged; any other path passes the filters and is joined.
    func join(_ path: String, of request: some Request) throws(RequestError) -> JoinedURL {
        var failed = path
        do throws(URLFault) {
            if Self.isAbsolute(path) {
                var joined = try URLJoiner.join(path, to: nil)
                joined.isForeign = isForeign(joined.url)
                return joined
            }
            var path = path
            for filter in filters { path = filter.filter(path, of: request) }
            let usesCDN = request.usesCDN
            let own = usesCDN ? request.cdnURL : request.baseURL
            failed = own ?? (usesCDN ? cdnText : baseText) ?? ""
            let base = if let own { try BaseURL(own) } else { try usesCDN ? cdn.get() : self.base.get() }
            failed = path
            if usesCDN && base == nil { throw .noCDN }
            // The result of a filter stays below the base URL, even if it looks like an absolute URL.
            return try URLJoiner.join(Self.isAbsolute(path) ? "/" + path : path, to: base)
        } catch {
            throw RequestError(error, text: failed)
        }
    }

    /// Whether the configuration names servers and this URL has another origin.
    private func isForeign(_ url: String) -> Bool {
        if origins.isEmpty { return false }
        guard let origin = HostKey(url: url) else { return true }
        return !origins.contains(origin)
    }

    /// The origins that may receive the configuration's secrets: base URL and CDN URL, and the one that the request
    /// names itself. Empty if the configuration names no servers; then secrets go to any server.
    func ownOrigins(_ named: Named, usesCDN: Bool) -> [HostKey] {
        if origins.isEmpty { return [] }
        let own = (usesCDN ? named.cdn : named.base).flatMap { try? BaseURL($0) }
        return own.flatMap { HostKey(url: $0.prefix) }.map { origins + [$0] } ?? origins
    }

    /// The same, with both servers that the request names: an adapter may choose the other one.
    func allOwnOrigins(_ named: Named) -> [HostKey] {
        if origins.isEmpty { return [] }
        let own = [named.cdn, named.base].compactMap { $0.flatMap { try? BaseURL($0) } }
        return origins + own.compactMap { HostKey(url: $0.prefix) }
    }

    /// The values of `Authorization` that come from users and passwords in base URL and CDN URL, those of the
    /// configuration and those that the request names. Empty for the origin of one of these URLs.
    func credentials(_ named: Named, hiddenFrom origin: HostKey?) -> [String] {
        let own = [named.cdn, named.base].compactMap { $0.flatMap { try? BaseURL($0) } }
        let all = [base, cdn].compactMap { try? $0.get() } + own
        if all.contains(where: { HostKey(url: $0.prefix) == origin }) { return [] }
        return all.compactMap { $0.credentials?.value }
    }

    private static func isAbsolute(_ path: String) -> Bool {
        // Most paths begin with a slash, and then have no scheme.
        if path.utf8.first == 0x2F { return false }
        var path = path
        return path.withUTF8 { URLJoiner.schemeLength($0) != nil }
    }
}

extension RequestError {
    /// The error for a text that is not a valid URL.
    init(_ fault: URLFault, text: String) {
        switch fault {
        case .invalid:
            self.init(preparing: .invalidURL, message: "not a valid URL", url: text, isBroken: true)
        case .unsupportedScheme:
            self.init(
                preparing: .unsupportedScheme, message: "the scheme is not http or https", url: text, isBroken: true)
        case .noCDN:
            self.init(preparing: .invalidURL, message: "usesCDN is set but no CDN URL is configured", url: text)
        }
    }
}

/// The base URL, CDN URL and filters, which ``NetworkAgent/updateServers(_:)`` changes together.
public struct ServerSelection: Sendable {
    /// The URL to which paths are joined.
    public var baseURL: String?

    /// The URL to which the paths of requests that use the CDN are joined.
    public var cdnURL: String?

    /// The filters that change every path before it is joined, in their order.
    public var urlFilters: [any URLFilter]
}

/// A base URL, parsed once and shared by all requests. Paths are joined to `prefix`.
final class BaseURL: Sendable {
    /// `http://host:port/v1`, without a trailing slash.
    let prefix: String
    /// The base URL itself, which an empty path stands for.
    let whole: String
    /// The part of the query that comes before the query of every path.
    let query: String
    let credentials: Authorization?
    /// Whether the spelling of the origin is that of ``CanonicalOrigin``: checked once, for all keys in the cache.
    let isCanonical: Bool

    convenience init(_ text: String) throws(URLFault) {
        var text = text
        let outcome = text.withUTF8 { bytes -> Result<URLJoiner.Absolute?, URLFault> in
            guard let scheme = URLJoiner.schemeLength(bytes) else {
                return .failure(
                    bytes.contains { $0 <= 0x20 || $0 == 0x7F } || bytes.isEmpty ? .invalid : .unsupportedScheme)
            }
            return Result { () throws(URLFault) in
                let found = try URLJoiner.Absolute(bytes, scheme: scheme)
                return found.isPlain ? nil : found
            }
        }
        guard let found = try outcome.get() else {
            // A plain path, perhaps with a query, with nothing to escape.
            let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            self.init(prefix: String(parts[0]), query: parts.count > 1 ? String(parts[1]) : "", credentials: nil)
            return
        }
        self.init(
            prefix: String(decoding: found.origin + found.path, as: UTF8.self),
            query: String(decoding: found.query ?? [], as: UTF8.self), credentials: found.credentials)
    }

    /// A URL below this one.
    func joined(_ url: String) -> JoinedURL {
        JoinedURL(url: url, credentials: credentials, isCanonical: isCanonical)
    }

    private init(prefix: String, query: String, credentials: Authorization?) {
        var bare = Substring(prefix)
        while bare.utf8.last == 0x2F { bare = bare.dropLast() }
        self.prefix = String(bare)
        isCanonical = CanonicalOrigin.apply(to: self.prefix) == self.prefix
        // An origin without a path has the path "/". A path keeps its trailing slash or has none.
        let slashes = bare.utf8.filter { $0 == 0x2F }.count
        whole = slashes == 2 ? bare + "/" : prefix
        self.query = query
        self.credentials = credentials
    }
}

/// Changes the paths of an agent's requests before they are joined to a base URL. Use it for arguments that every
/// request carries, like a version or a signature.
///
/// Absolute URLs do not pass the filter, because what it adds may be secret. Filters run in their order, each on the
/// result of the one before, in the caller's thread.
public protocol URLFilter: Sendable {
    /// Returns the path to use instead of `path`, which may have a query.
    func filter(_ path: String, of request: any Request) -> String
}

/// Appends arguments to the query of every path, before a fragment, with `?` or `&` as needed.
///
///     configuration.urlFilters = [ArgumentsFilter(["version": "1.2", "platform": "linux"])]
public struct ArgumentsFilter: URLFilter {
    private let query: [UInt8]

    /// Creates a filter for these arguments, which are encoded as in any query.
    public init(_ arguments: Arguments) { query = arguments.formEncoded() }

    /// Returns the path with the arguments.
    public func filter(_ path: String, of request: any Request) -> String {
        URLJoiner.append(query: query, to: path)
    }
}

/// The two parts of a Unix socket URL like `http+unix://%2Frun%2Fdocker.sock/v1/info`.
struct SocketURL {
    /// `/run/docker.sock`
    let path: String
    /// `http://localhost/v1/info`
    let url: String

    /// `nil` for any other URL.
    init?(_ url: String) {
        guard let mark = url.firstRange(of: "+unix://"), ["http", "https"].contains(url[..<mark.lowerBound]) else {
            return nil
        }
        let authority = url[mark.upperBound...].prefix { !"/?#".contains($0) }
        path = String(decoding: PercentEncoding.decoded(authority.utf8), as: UTF8.self)
        self.url = url[..<mark.lowerBound] + "://localhost" + url[authority.endIndex...]
    }
}
