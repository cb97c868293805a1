/// Whom to trust over https, and who one is. It holds for all of an agent: requests with different trust take different
/// agents, and so never share a connection.
public struct TLSConfiguration: Sendable, Hashable {
    /// What is checked of the server's certificate.
    public enum Verification: Sendable, Hashable {
        /// The chain up to an authority, and the name.
        case full
        /// Neither. For tests only: anyone may read and change everything.
        case none
    }

    /// A file of authorities in PEM that takes the place of the system's. The default is `nil`, the system's. It is
    /// read again when it has changed, for new connections, as are the files of ``clientCertificate``.
    public var authorityFile: String?

    /// `sha256//BASE64` of public keys, one of which the server's must be; checked also without verification. The
    /// default is none.
    public var pinnedKeys: [String]

    /// What is checked. The default is ``Verification/full``.
    public var verification: Verification

    /// What servers that ask for it are shown. The default is `nil`.
    public var clientCertificate: ClientCertificate?

    /// The oldest version that is spoken. The default is ``Version/v12``.
    public var minimumVersion: Version

    /// A version of TLS.
    public enum Version: Sendable, Hashable {
        /// RFC 5246
        case v12
        /// RFC 8446
        case v13
    }

    /// The defaults, and what is named here.
    public init(
        authorityFile: String? = nil, pinnedKeys: [String] = [], verification: Verification = .full,
        clientCertificate: ClientCertificate? = nil, minimumVersion: Version = .v12
    ) {
        self.authorityFile = authorityFile
        self.pinnedKeys = pinnedKeys
        self.verification = verification
        self.clientCertificate = clientCertificate
        self.minimumVersion = minimumVersion
    }
}

/// Who one is, to servers that ask for a certificate (mutual TLS). Files that cannot be used fail each run over https
/// with `tls(.configuration)`.
public struct ClientCertificate: Sendable, Hashable {
    /// A file of the certificate in PEM, with its chain behind it.
    public var certificateFile: String

    /// A file of its private key in PEM. `nil` when the key stands in the certificate's file.
    public var keyFile: String?

    /// What the key is encrypted with. The default is `nil`, it is not.
    public var keyPassword: String?

    /// A certificate of its parts.
    public init(certificateFile: String, keyFile: String? = nil, keyPassword: String? = nil) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.keyPassword = keyPassword
    }
}

extension ClientCertificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The certificate's file.
    public var description: String { certificateFile }

    /// Likewise.
    public var debugDescription: String { description }

    /// Without the password.
    public var customMirror: Mirror {
        Mirror(self, children: ["certificateFile": certificateFile, "keyFile": keyFile as Any])
    }
}
