/// A cookie of the jar (RFC 6265).
package struct TransferCookie: Sendable, Hashable {
    package var name: String
    package var value: String
    /// Without a leading dot.
    package var domain: String
    /// Also to the hosts below the domain.
    package var includesSubdomains = false
    package var path = "/"
    /// Only under TLS.
    package var isSecure = false
    package var isHTTPOnly = false
    /// Seconds since 1970; `nil` is as long as the jar lives.
    package var expires: Int64?

    package init(name: String, value: String, domain: String) {
        self.name = name
        self.value = value
        self.domain = domain
    }
}
