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
