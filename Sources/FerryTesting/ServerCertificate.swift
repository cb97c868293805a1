internal import CLoopback
internal import FoundationEssentials

/// A certificate for ``LoopbackServer``. It is created in the process, together with the authority that signs it.
///
/// ```swift
/// let certificate = try ServerCertificate(.expired)
/// let server = try LoopbackServer(.init(certificate: certificate))
/// // a client that trusts certificate.authorityFile finds the certificate expired
/// ```
public final class ServerCertificate: Sendable {
    /// The kind of certificate: valid, or invalid in one way.
    public enum Kind: Sendable, CaseIterable {
        /// Valid for localhost, 127.0.0.1 and ::1, signed by ``ServerCertificate/authority``.
        case valid
        /// Expired yesterday.
        case expired
        /// Valid from ten days in the future.
        case notYetValid
        /// Valid for `wrong.example` only.
        case wrongHost
        /// Signed by an authority that is not ``ServerCertificate/authority``.
        case untrusted
        /// Self-signed.
        case selfSigned
    }

    /// The kind of this certificate.
    public let kind: Kind
    /// The authority that a client should trust, as PEM.
    public let authority: String
    /// The path of ``authority`` as a file, in a temporary directory that is removed with this object.
    public let authorityFile: String
    /// The pin: `sha256//` and the Base64 of the hash of the public key, as in `CURLOPT_PINNEDPUBLICKEY`.
    public let publicKeyPin: String

    /// The path of a client certificate from the same authority, as a PEM file.
    public let clientCertificateFile: String
    /// The path of its key, as a PEM file.
    public let clientKeyFile: String
    /// The path of the same key, encrypted with the password `ferry`.
    public let lockedClientKeyFile: String

    private let handle: ServerCertificateHandle
    private let directory: String

    /// Creates a key, an authority and a certificate.
    public init(_ kind: Kind = .valid) throws(LoopbackError) {
        self.kind = kind
        handle = try ServerCertificateHandle(kind)
        authority = String(cString: loopback_certificate_authority(handle.pointer))
        publicKeyPin = String(cString: loopback_certificate_pin(handle.pointer))
        directory =
            FileManager.default.temporaryDirectory
            .appending(component: "ferry-testing-\(UUID().uuidString)").path
        authorityFile = directory + "/authority.pem"
        clientCertificateFile = directory + "/client.pem"
        clientKeyFile = directory + "/client.key"
        lockedClientKeyFile = directory + "/client-locked.key"
        do {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            for (text, file) in [
                (authority, authorityFile), (handle.client(LOOPBACK_CLIENT_CERTIFICATE), clientCertificateFile),
                (handle.client(LOOPBACK_CLIENT_KEY), clientKeyFile),
                (handle.client(LOOPBACK_CLIENT_LOCKED_KEY), lockedClientKeyFile),
            ] {
                try Data(text.utf8).write(to: URL(filePath: file))
            }
        } catch {
            throw .file(directory)
        }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: directory)
    }

    var pointer: OpaquePointer { handle.pointer }
}

/// Owns the C certificate: created once, freed once.
///
/// `@unchecked Sendable` is true because the certificate is immutable.
final class ServerCertificateHandle: @unchecked Sendable {
    let pointer: OpaquePointer

    init(_ kind: ServerCertificate.Kind) throws(LoopbackError) {
        var made: OpaquePointer?
        loopback_certificate_make(Int32(kind.code), &made)
        guard let made else { throw .certificate }
        pointer = made
    }

    /// One of the client's files, as PEM.
    func client(_ part: Int) -> String {
        String(cString: loopback_certificate_client(pointer, Int32(part)))
    }

    deinit {
        loopback_certificate_free(pointer)
    }
}

extension ServerCertificate.Kind {
    fileprivate var code: Int {
        switch self {
        case .valid: LOOPBACK_CERTIFICATE_VALID
        case .expired: LOOPBACK_CERTIFICATE_EXPIRED
        case .notYetValid: LOOPBACK_CERTIFICATE_NOT_YET_VALID
        case .wrongHost: LOOPBACK_CERTIFICATE_WRONG_HOST
        case .untrusted: LOOPBACK_CERTIFICATE_UNTRUSTED
        case .selfSigned: LOOPBACK_CERTIFICATE_SELF_SIGNED
        }
    }
}
