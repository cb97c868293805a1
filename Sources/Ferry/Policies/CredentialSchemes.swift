/// Ways to prove who one is (RFC 9110, 11.1) that libcurl speaks, as far as it was built for them.
public struct CredentialSchemes: OptionSet, Sendable, Hashable, CustomStringConvertible {
    /// One bit a scheme.
    public let rawValue: UInt8

    /// Makes a set of bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// User and password as they are (RFC 7617): only over TLS are they a secret.
    public static let basic = CredentialSchemes(rawValue: 1 << 0)
    /// A digest of them (RFC 7616).
    public static let digest = CredentialSchemes(rawValue: 1 << 1)
    /// Microsoft's, bound to a connection.
    public static let ntlm = CredentialSchemes(rawValue: 1 << 2)
    /// Kerberos, or NTLM within it (RFC 4559), bound to a connection.
    public static let negotiate = CredentialSchemes(rawValue: 1 << 3)

    /// All four.
    public static let all: CredentialSchemes = [.basic, .digest, .ntlm, .negotiate]

    /// The scheme of that name, without regard to case; empty for others.
    init(name: String) {
        self = Self.names.first { equalNames($0.name, name) }?.scheme ?? []
    }

    /// `Basic, Digest`
    public var description: String {
        Self.names.filter { contains($0.scheme) }.map(\.name).joined(separator: ", ")
    }

    private static let names: [(scheme: CredentialSchemes, name: String)] = [
        (.basic, "Basic"), (.digest, "Digest"), (.ntlm, "NTLM"), (.negotiate, "Negotiate"),
    ]
}
