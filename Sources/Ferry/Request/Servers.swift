/// Where paths are joined to: the part of the configuration that can be exchanged while the agent runs.
final class Servers: Sendable {
    let baseText: String?
    let cdnText: String?
    let filters: [any URLFilter]
    private let base: Result<BaseURL?, URLFault>
    private let cdn: Result<BaseURL?, URLFault>
    /// Base and CDN, where they are URLs.
    private let origins: [HostKey]

    init(base: String?, cdn: String?, filters: [any URLFilter]) {
        baseText = base
        cdnText = cdn
        self.filters = filters
        self.base = Self.parsed(base)
        self.cdn = Self.parsed(cdn)
        origins = [self.base, self.cdn].compactMap { try? $0.get() }.compactMap { HostKey(url: $0.prefix) }
    }

    func replacing(base: String?) -> Servers { Servers(base: base, cdn: cdnText, filters: filters) }
    func replacing(cdn: String?) -> Servers { Servers(base: baseText, cdn: cdn, filters: filters) }
    func replacing(filters: [any URLFilter]) -> Servers { Servers(base: baseText, cdn: cdnText, filters: filters) }

    private static func parsed(_ text: String?) -> Result<BaseURL?, URLFault> {
        Result { () throws(URLFault) in try text.map { text throws(URLFault) in try BaseURL(text) } }
    }

    /// An absolute URL is taken as it is; any other path passes the filters and is joined.
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
            // What a filter has made stays below the base, whatever it looks like.
            return try URLJoiner.join(Self.isAbsolute(path) ? "/" + path : path, to: base)
        } catch {
            throw RequestError(error, text: failed)
        }
    }

    /// Whether there are servers of the configuration's, and this URL is of another origin.
    private func isForeign(_ url: String) -> Bool {
        if origins.isEmpty { return false }
        guard let origin = HostKey(url: url) else { return true }
        return !origins.contains(origin)
    }

    /// The origins that secrets of the configuration are meant for: base and CDN, and the one that the request names
    /// for itself. None where the configuration names no servers, and they go anywhere.
    func ownOrigins(of request: some Request) -> [HostKey] {
        if origins.isEmpty { return [] }
        let own = (request.usesCDN ? request.cdnURL : request.baseURL).flatMap { try? BaseURL($0) }
        return own.flatMap { HostKey(url: $0.prefix) }.map { origins + [$0] } ?? origins
    }

    private static func isAbsolute(_ path: String) -> Bool {
        // Nearly every path begins with a slash, and then it has no scheme.
        if path.utf8.first == 0x2F { return false }
        var path = path
        return path.withUTF8 { URLJoiner.schemeLength($0) != nil }
    }
}

extension RequestError {
    /// A text that is no URL that can be asked for.
    init(_ fault: URLFault, text: String) {
        switch fault {
        case .invalid:
            self.init(preparing: .invalidURL, message: "this is not a URL", url: text, isBroken: true)
        case .unsupportedScheme:
            self.init(
                preparing: .unsupportedScheme, message: "only http and https are carried", url: text, isBroken: true)
        case .noCDN:
            self.init(preparing: .invalidURL, message: "it is to go to the CDN, and there is none", url: text)
        }
    }
}

/// Base, CDN and filters, as ``NetworkAgent/updateServers(_:)`` changes them together.
public struct ServerSelection: Sendable {
    /// Where paths are joined to.
    public var baseURL: String?

    /// Where the paths of requests that use the CDN are joined to.
    public var cdnURL: String?

    /// Change every path before it is joined, in their order.
    public var urlFilters: [any URLFilter]
}

/// A base, parsed once and shared by all requests: paths are joined to `prefix`.
final class BaseURL: Sendable {
    /// `http://host:port/v1`, without a slash at the end.
    let prefix: String
    /// The base alone: what an empty path stands for.
    let whole: String
    /// Goes before the query of every path.
    let query: String
    let credentials: Authorization?

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
            // Plain: a path, perhaps a query, nothing to be escaped.
            let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
            self.init(prefix: String(parts[0]), query: parts.count > 1 ? String(parts[1]) : "", credentials: nil)
            return
        }
        self.init(
            prefix: String(decoding: found.origin + found.path, as: UTF8.self),
            query: String(decoding: found.query ?? [], as: UTF8.self), credentials: found.credentials)
    }

    private init(prefix: String, query: String, credentials: Authorization?) {
        var bare = Substring(prefix)
        while bare.utf8.last == 0x2F { bare = bare.dropLast() }
        self.prefix = String(bare)
        // An origin alone has the path "/"; a path keeps the slash it ends in, or has none.
        let slashes = bare.utf8.filter { $0 == 0x2F }.count
        whole = slashes == 2 ? bare + "/" : prefix
        self.query = query
        self.credentials = credentials
    }
}

/// Changes the paths of an agent's requests before they are joined to a base: the place of arguments that every request
/// carries, like a version or a signature.
///
/// Absolute URLs do not pass it: what it adds may be a secret of one's own. Filters run in their order, each on what
/// the one before has made, in the caller's thread.
public protocol URLFilter: Sendable {
    /// The path to use in the place of `path`, which may have a query.
    func filter(_ path: String, of request: any Request) -> String
}

/// Appends arguments to the query of every path, before a fragment, with `?` or `&` as needed.
///
///     configuration.urlFilters = [ArgumentsFilter(["version": "1.2", "platform": "linux"])]
public struct ArgumentsFilter: URLFilter {
    private let query: [UInt8]

    /// A filter for these arguments, which are encoded as in any query.
    public init(_ arguments: Arguments) { query = arguments.formEncoded() }

    /// The path with the arguments.
    public func filter(_ path: String, of request: any Request) -> String {
        URLJoiner.append(query: query, to: path)
    }
}

/// A URL of a Unix socket, `http+unix://%2Frun%2Fdocker.sock/v1/info`, in its two parts.
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
