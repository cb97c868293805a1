/// A proxy that one transfer goes through.
package struct TransferProxy: Sendable, Hashable {
    package enum Kind: UInt8, Sendable {
        /// Spoken to in plain; asked to CONNECT for https.
        case http = 1
        /// SOCKS version 5 (RFC 1928); the server's name is looked up here.
        case socks5
        /// SOCKS version 5; the server's name is looked up by the proxy.
        case socks5h
    }

    package var kind: Kind
    /// `name:port` or `[v6]:port`.
    package var address: String
    /// Without schemes sent at once, without a challenge; no colon in it then.
    package var user: String?
    package var password: String?
    /// What challenges of an HTTP proxy (407) are answered with: the best of these that is asked for.
    package var schemes: TransferCredentials.Schemes = []

    package init(kind: Kind, address: String, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.address = address
        self.user = user
        self.password = password
    }
}
