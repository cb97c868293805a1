import FerryTransport

/// The proxy that a request goes through.
struct ProxyRoute: Sendable, Hashable, CustomStringConvertible {
    enum Kind: String, Sendable {
        case http
        /// Names are looked up here.
        case socks5
        /// Names are looked up by the proxy.
        case socks5h
    }

    var kind: Kind
    /// Lower case, punycode; an address of IPv6 in its brackets.
    var host: String
    var port: UInt16
    var credential: Credential?

    /// `proxy:3128`
    var address: String { "\(host):\(port)" }

    /// `socks5h://proxy:1080`, without the credential.
    var description: String { "\(kind.rawValue)://\(address)" }
}

extension ProxyRoute {
    /// Reads `http://user:password@proxy:3128`, `socks5://…` (names looked up here) or `socks5h://…` (by the proxy); no
    /// scheme is http. The port is 80 or 1080 where none is written.
    init(url text: String) throws(ProxyConfigurationFault) {
        var rest = Substring(text)
        var kind = Kind.http
        if let mark = rest.firstRange(of: "://") {
            guard let known = Kind(rawValue: rest[..<mark.lowerBound].lowercased()) else {
                throw ProxyConfigurationFault(
                    "a proxy is spoken to by http, socks5 or socks5h: \(Self.shown(text))")
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

    /// Of parts that are given one by one.
    init(_ kind: Kind, host: String, port: Int, credential: Credential?) throws(ProxyConfigurationFault) {
        let isBareV6 = host.contains(":") && host.first != "["
        guard port > 0, port <= 65535 else { throw ProxyConfigurationFault("\(port) is not the port of a proxy") }
        let authority = (isBareV6 ? "[\(host)]" : host) + ":\(port)"
        try self.init(kind, authority: Substring(authority), credential: credential, text: authority)
    }

    private init(
        _ kind: Kind, authority: Substring, credential: Credential?, text: String
    ) throws(ProxyConfigurationFault) {
        // One parser decides what the host is, here too.
        guard !authority.contains(where: { "/?#@".contains($0) }), let parts = try? URLParts("http://\(authority)/"),
            parts.port > 0
        else { throw Self.notAProxy(text) }
        if let credential, !credential.isUsable || credential.user.utf8.contains(0x3A) {
            throw ProxyConfigurationFault(
                "a user with a colon or a control character cannot be told to the proxy \(parts.host)")
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
            throw ProxyConfigurationFault("user and password are not UTF-8: \(shown(text))")
        }
        return Credential(user: user, password: password)
    }

    private static func unescaped(_ text: Substring) -> String? {
        String(validating: PercentEncoding.decoded(text.utf8), as: UTF8.self)
    }

    private static func notAProxy(_ text: String) -> ProxyConfigurationFault {
        ProxyConfigurationFault("this is not the URL of a proxy: \(shown(text))")
    }

    /// All that stands before an `@` may be a password.
    private static func shown(_ text: String) -> String { Redaction.url(text, isBroken: true) }
}

extension ProxyRoute {
    /// In the form the transport takes.
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
