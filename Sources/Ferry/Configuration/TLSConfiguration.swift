/// Whom to trust over https.
public struct TLSConfiguration: Sendable, Hashable {
    /// What is checked of the server's certificate.
    public enum Verification: Sendable, Hashable {
        /// The chain up to an authority, and the name.
        case full
        /// Neither. For tests only: anyone may read and change everything.
        case none
    }

    /// A file of authorities in PEM that takes the place of the system's. The default is `nil`, the system's.
    public var authorityFile: String?

    /// `sha256//BASE64` of public keys, one of which the server's must be; checked also without verification. The
    /// default is none.
    public var pinnedKeys: [String]

    /// What is checked. The default is ``Verification/full``.
    public var verification: Verification

    /// The defaults, and what is named here.
    public init(authorityFile: String? = nil, pinnedKeys: [String] = [], verification: Verification = .full) {
        self.authorityFile = authorityFile
        self.pinnedKeys = pinnedKeys
        self.verification = verification
    }
}
