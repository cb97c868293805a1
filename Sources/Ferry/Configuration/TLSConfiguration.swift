/// The TLS settings of an agent: which servers it trusts, and its own certificate. Requests that need different
/// settings use different agents, so they never share a connection.
public struct TLSConfiguration: Sendable, Hashable {
    /// What is verified of the server's certificate.
    public enum Verification: Sendable, Hashable {
        /// The chain up to an authority, and the name.
        case full
        /// Nothing. For tests only: anyone on the network can read and change the data.
        case none
    }

    /// A PEM file of authorities that replaces the system's. The default is `nil`, the system's. Like the files of
    /// ``clientCertificate`` it is read again when it has changed, for new connections.
    public var authorityFile: String?

    /// Pinned public keys as `sha256//BASE64`. The server's key must be one of them, also without verification. The
    /// default is none.
    public var pinnedKeys: [String]

    /// What is verified. The default is ``Verification/full``.
    public var verification: Verification

    /// The certificate for servers that ask for one. The default is `nil`.
    public var clientCertificate: ClientCertificate?

    /// The lowest accepted version. The default is ``Version/v12``.
    public var minimumVersion: Version

    /// A version of TLS.
    public enum Version: Sendable, Hashable {
        /// TLS 1.2 (RFC 5246).
        case v12
        /// TLS 1.3 (RFC 8446).
        case v13
    }

    /// Creates TLS settings. Parameters that are left out have their defaults.
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

/// A client certificate for mutual TLS. If its files cannot be used, every run over https fails with
/// `tls(configuration)`.
public struct ClientCertificate: Sendable, Hashable {
    /// A PEM file with the certificate, followed by its chain.
    public var certificateFile: String

    /// A PEM file with the private key; `nil` if the key is in the certificate's file.
    public var keyFile: String?

    /// The password of the private key. The default is `nil`, no encryption.
    public var keyPassword: String?

    /// Creates a client certificate.
    public init(certificateFile: String, keyFile: String? = nil, keyPassword: String? = nil) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile
        self.keyPassword = keyPassword
    }
}

extension ClientCertificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The path of the certificate's file.
    public var description: String { certificateFile }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// The members without the password.
    public var customMirror: Mirror {
        Mirror(self, children: ["certificateFile": certificateFile, "keyFile": keyFile as Any])
    }
}
