import FerryTransport
import FoundationEssentials

/// The proxies of an agent's requests. By default there is none; the environment is used only if you ask for it.
///
/// Through an HTTP proxy, `https` URLs use a tunnel (CONNECT), and `http` URLs are requested from the proxy itself. A
/// credential is sent to the proxy only, never to the server behind it.
///
///     var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
///     configuration.proxy = .http("proxy.example.com", port: 3128).except("localhost", ".internal", "10.0.0.0/8")
///     configuration.proxy = .environment                     // HTTPS_PROXY and the like
///     configuration.proxy = .schemes(http: .none, https: .url("socks5h://kim:secret@gate:1080"))
///
/// An invalid proxy, for example a malformed URL, fails each run that would use it, before anything is sent.
public struct ProxyConfiguration: Sendable, Hashable {
    /// The proxy for the requests of one scheme.
    private struct Side: Sendable, Hashable {
        var route: ProxyRoute?
        var fault: ProxyConfigurationFault?
        var exceptions = ProxyExceptions()

        var isNone: Bool { route == nil && fault == nil }

        init() {}

        init(_ make: () throws(ProxyConfigurationFault) -> ProxyRoute) {
            do throws(ProxyConfigurationFault) { route = try make() } catch { fault = error }
        }
    }

    private var http: Side
    private var https: Side

    private init(_ both: Side) { (http, https) = (both, both) }

    /// Where a server's name is resolved.
    public enum NameResolution: Sendable, Hashable, CaseIterable {
        /// By the proxy: names that only the proxy knows work, and this machine does no lookup.
        case remote
        /// By this machine; the proxy gets an address.
        case local
    }

    /// No proxy. This is the default.
    public static var none: ProxyConfiguration { ProxyConfiguration(Side()) }

    /// An HTTP proxy (RFC 9110, 3.7 and 9.3.6) for all requests. If host, port or credential is invalid, runs that
    /// would use it fail with `proxy(configuration)`.
    public static func http(_ host: String, port: Int, credential: Credential? = nil) -> ProxyConfiguration {
        ProxyConfiguration(
            Side { () throws(ProxyConfigurationFault) in
                try ProxyRoute(.http, host: host, port: port, credential: credential)
            })
    }

    /// A SOCKS 5 proxy (RFC 1928, RFC 1929) for all requests. By default its port is 1080, and it resolves the names.
    /// If host, port or credential is invalid, runs that would use it fail with `proxy(configuration)`.
    public static func socks5(
        _ host: String, port: Int = 1080, resolvesNames: NameResolution = .remote, credential: Credential? = nil
    ) -> ProxyConfiguration {
        let kind: ProxyRoute.Kind = resolvesNames == .remote ? .socks5h : .socks5
        return ProxyConfiguration(
            Side { () throws(ProxyConfigurationFault) in
                try ProxyRoute(kind, host: host, port: port, credential: credential)
            })
    }

    /// A proxy from a URL: `http://user:password@proxy:3128`, `socks5://…` (names are resolved locally) or
    /// `socks5h://…` (by the proxy). The default scheme is http. The default port is 80, or 1080 for SOCKS. User and
    /// password are percent-encoded.
    public static func url(_ text: String) -> ProxyConfiguration {
        ProxyConfiguration(Side { () throws(ProxyConfigurationFault) in try ProxyRoute(url: text) })
    }

    /// Different proxies for http and for https requests.
    public static func schemes(
        http: ProxyConfiguration = .none, https: ProxyConfiguration = .none
    ) -> ProxyConfiguration {
        var made = http
        made.https = https.https
        return made
    }

    /// The same proxies, except for these hosts, which are added to earlier exceptions:
    ///
    /// - `example.com` and `.example.com`: that host and its subdomains. `*`: all hosts.
    /// - `10.0.0.1`, `::1`, `[::1]`: an address in the URL; names are not resolved for this.
    /// - `10.0.0.0/8`, `fd00::/8`: all addresses of that network.
    /// - Any of these except a network, followed by a port, like `example.com:8080`: only with that port.
    public func except(_ hosts: String...) -> ProxyConfiguration { except(hosts) }

    /// The same proxies, except for these hosts, in the forms that the variadic method lists.
    public func except(_ hosts: [String]) -> ProxyConfiguration {
        adding(hosts) { ProxyConfigurationFault("invalid proxy exception: \(Redaction.url($0))") }
    }

    /// Adds exceptions. An invalid one is ignored if `fault` returns `nil`.
    func adding(_ hosts: [String], fault: (String) -> ProxyConfigurationFault?) -> ProxyConfiguration {
        var made = self
        for host in hosts {
            if made.http.exceptions.add(host), made.https.exceptions.add(host) { continue }
            guard let fault = fault(host) else { continue }
            made.http.fault = made.http.fault ?? fault
            made.https.fault = made.https.fault ?? fault
        }
        return made
    }

    /// Whether no request uses a proxy.
    var isNone: Bool { http.isNone && https.isNone }

    /// The proxy for a request; `nil` for none. `host` is in the form of libcurl's parser (`URLParts`).
    func route(isSecure: Bool, host: String, port: UInt16) throws(ProxyConfigurationFault) -> ProxyRoute? {
        let side = isSecure ? https : http
        if side.isNone || side.exceptions.contains(host: host, port: port) { return nil }
        if let fault = side.fault { throw fault }
        return side.route
    }
}

extension ProxyConfiguration: CustomStringConvertible {
    /// The proxies without credentials, like `http: http://proxy:3128, https: none`.
    public var description: String {
        func text(_ side: Side) -> String {
            if side.fault != nil { return "invalid" }
            return side.route?.description ?? "none"
        }
        return "http: \(text(http)), https: \(text(https))"
    }
}

extension ProxyConfiguration {
    /// The proxies that the environment of this process names, see ``environment(_:)``. It is read at this call.
    public static var environment: ProxyConfiguration { environment(ProcessInfo.processInfo.environment) }

    /// The proxies that these variables name: `http_proxy`, `https_proxy`, and `all_proxy` for the schemes that the
    /// other two leave open, as URLs like those of ``url(_:)``. `no_proxy` lists the exceptions of `except(_:)`,
    /// separated by commas or blanks. Variables in upper case work too, but lower case takes precedence. Empty
    /// variables are ignored.
    ///
    /// `HTTP_PROXY` in upper case is ignored if `REQUEST_METHOD` is set: in a CGI program it comes from a client's
    /// `Proxy` header (CVE-2016-5385). An invalid exception is ignored; an invalid proxy fails the runs that need it.
    public static func environment(_ variables: [String: String]) -> ProxyConfiguration {
        func value(_ name: String) -> String? {
            let isForged = name == "http_proxy" && variables["REQUEST_METHOD"] != nil
            for name in isForged ? [name] : [name, name.uppercased()] {
                if let value = variables[name], !value.isEmpty { return value }
            }
            return nil
        }
        let all = value("all_proxy")
        let made = schemes(
            http: (value("http_proxy") ?? all).map(url) ?? .none,
            https: (value("https_proxy") ?? all).map(url) ?? .none)
        let exceptions = (value("no_proxy") ?? "").split { $0 == "," || $0.isWhitespace }
        return made.adding(exceptions.map(String.init)) { _ in nil }
    }
}

extension ProxyConfiguration {
    /// The proxy for a complete URL; `nil` for none, as for a Unix socket.
    func route(for url: String) throws(RequestError) -> ProxyRoute? {
        let parts: URLParts
        do throws(TransferFailure) {
            parts = try URLParts(url)
        } catch {
            throw RequestError(error, url: url)
        }
        if parts.isLocal { return nil }
        do throws(ProxyConfigurationFault) {
            return try route(isSecure: parts.isSecure, host: parts.host, port: parts.port)
        } catch {
            throw RequestError(preparing: .proxy(.configuration), message: error.description, url: url)
        }
    }
}

/// Why a proxy cannot be used. It is determined when the configuration is created, and thrown by each run that needs
/// the proxy.
struct ProxyConfigurationFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// A sentence without secrets.
    let description: String

    init(_ description: String) { self.description = description }
}

/// The hosts that are connected to without a proxy, as in `NO_PROXY`.
struct ProxyExceptions: Sendable, Hashable {
    private enum Pattern: Sendable, Hashable {
        case all
        /// The name itself and its subdomains.
        case domain(String)
        case network(IPNetwork)
    }

    private struct Entry: Sendable, Hashable {
        let pattern: Pattern
        /// `nil` means all ports.
        let port: UInt16?
    }

    private var entries: [Entry] = []

    /// Adds an entry; `false` if it is invalid.
    mutating func add(_ text: String) -> Bool {
        guard let entry = Self.entry(text) else { return false }
        entries.append(entry)
        return true
    }

    /// `host` is in the form of libcurl's parser (`URLParts`).
    func contains(host: String, port: UInt16) -> Bool {
        if entries.isEmpty { return false }
        let address = IPNetwork(address: host)
        let name = host.last == "." ? host.dropLast() : Substring(host)
        return entries.contains { entry in
            if let own = entry.port, own != port { return false }
            switch entry.pattern {
            case .all: return true
            case .network(let network): return address.map(network.contains) ?? false
            case .domain(let domain):
                guard address == nil, name.hasSuffix(domain) else { return false }
                let before = name.dropLast(domain.count)
                return before.isEmpty || before.last == "."
            }
        }
    }

    private static func entry(_ text: String) -> Entry? {
        var name = text.drop(while: isBlank)
        while let last = name.last, isBlank(last) { name = name.dropLast() }
        if name.contains("/") { return IPNetwork(block: name).map { Entry(pattern: .network($0), port: nil) } }
        if let address = IPNetwork(address: name) { return Entry(pattern: .network(address), port: nil) }
        var port: UInt16?
        if let colon = name.lastIndex(of: ":") {
            guard let number = decimal(name[name.index(after: colon)...]) else { return nil }
            port = number
            name = name[..<colon]
        }
        if name == "*" { return Entry(pattern: .all, port: port) }
        if name.hasPrefix("*.") { name = name.dropFirst(2) } else if name.hasPrefix(".") { name = name.dropFirst() }
        if let address = IPNetwork(address: name) { return Entry(pattern: .network(address), port: port) }
        // Here, too, one parser decides what a name is.
        guard !name.isEmpty, !name.contains(where: { "/?#@\\:*[]".contains($0) }),
            let parts = try? URLParts("http://\(name)/")
        else { return nil }
        if let address = IPNetwork(address: parts.host) { return Entry(pattern: .network(address), port: port) }
        let host = parts.host.last == "." ? String(parts.host.dropLast()) : parts.host
        return host.isEmpty ? nil : Entry(pattern: .domain(host), port: port)
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

    private static func decimal(_ text: Substring) -> UInt16? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let number = UInt16(text), number > 0
        else { return nil }
        return number
    }
}

/// The proxy that a request uses.
struct ProxyRoute: Sendable, Hashable, CustomStringConvertible {
    enum Kind: String, Sendable {
        case http
        /// Names are resolved locally.
        case socks5
        /// Names are resolved by the proxy.
        case socks5h
    }

    var kind: Kind
    /// In lower case and punycode; an IPv6 address has brackets.
    var host: String
    var port: UInt16
    var credential: Credential?

    /// `proxy:3128`
    var address: String { "\(host):\(port)" }

    /// `socks5h://proxy:1080`, without the credential.
    var description: String { "\(kind.rawValue)://\(address)" }
}

extension ProxyRoute {
    /// Parses `http://user:password@proxy:3128`, `socks5://…` (names are resolved locally) or `socks5h://…` (by the
    /// proxy). The default scheme is http, the default port 80 or 1080.
    init(url text: String) throws(ProxyConfigurationFault) {
        var rest = Substring(text)
        var kind = Kind.http
        if let mark = rest.firstRange(of: "://") {
            guard let known = Kind(rawValue: rest[..<mark.lowerBound].lowercased()) else {
                throw ProxyConfigurationFault(
                    "the scheme of a proxy must be http, socks5 or socks5h: \(Self.shown(text))")
            }
            kind = known
            rest = rest[mark.upperBound...]
        }
        if rest.last == "/" { rest = rest.dropLast() }
        guard !rest.contains(where: { #"/\?#"#.contains($0) }) else { throw Self.notAProxy(text) }
        var credential: Credential?
        if let at = rest.lastIndex(of: "@") {
            credential = try Self.credential(rest[..<at], of: text)
            rest = rest[rest.index(after: at)...]
        }
        try self.init(kind, authority: rest, credential: credential, text: text)
    }

    /// Creates a route from its parts.
    init(_ kind: Kind, host: String, port: Int, credential: Credential?) throws(ProxyConfigurationFault) {
        let isBareV6 = host.contains(":") && host.first != "["
        guard port > 0, port <= 65535 else { throw ProxyConfigurationFault("invalid proxy port \(port)") }
        let authority = (isBareV6 ? "[\(host)]" : host) + ":\(port)"
        try self.init(kind, authority: Substring(authority), credential: credential, text: authority)
    }

    private init(
        _ kind: Kind, authority: Substring, credential: Credential?, text: String
    ) throws(ProxyConfigurationFault) {
        // Here, too, one parser decides what the host is.
        guard !authority.contains(where: { "/?#@".contains($0) }), let parts = try? URLParts("http://\(authority)/"),
            parts.port > 0
        else { throw Self.notAProxy(text) }
        if let credential, !credential.isUsable || credential.user.utf8.contains(0x3A) {
            throw ProxyConfigurationFault(
                "the user for proxy \(parts.host) contains a colon or a control character")
        }
        let afterHost = authority.last == ":" ? nil : authority.lastIndex(of: ":")
        let hasPort = afterHost.map { !authority[$0...].contains("]") } ?? false
        self.kind = kind
        self.host = parts.host
        self.port = hasPort || kind == .http ? parts.port : 1080
        self.credential = credential
    }

    private static func credential(
        _ userinfo: Substring, of text: String
    ) throws(ProxyConfigurationFault) -> Credential? {
        if userinfo.isEmpty { return nil }
        let colon = userinfo.firstIndex(of: ":") ?? userinfo.endIndex
        guard let user = unescaped(userinfo[..<colon]), let password = unescaped(userinfo[colon...].dropFirst()) else {
            throw ProxyConfigurationFault("user and password of the proxy are not UTF-8: \(shown(text))")
        }
        return Credential(user: user, password: password)
    }

    private static func unescaped(_ text: Substring) -> String? {
        String(validating: PercentEncoding.decoded(text.utf8), as: UTF8.self)
    }

    private static func notAProxy(_ text: String) -> ProxyConfigurationFault {
        ProxyConfigurationFault("invalid proxy URL: \(shown(text))")
    }

    /// Everything before an `@` may be a password.
    private static func shown(_ text: String) -> String { Redaction.url(text, isBroken: true) }
}

extension ProxyRoute {
    /// The form that the transport needs.
    var transfer: TransferProxy {
        let kind: TransferProxy.Kind =
            switch kind {
            case .http: .http
            case .socks5: .socks5
            case .socks5h: .socks5h
            }
        return TransferProxy(kind: kind, address: address, user: credential?.user, password: credential?.password)
    }
}
