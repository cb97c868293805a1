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
