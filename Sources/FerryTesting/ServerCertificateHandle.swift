internal import CLoopback

/// Owns the C certificate: made once, freed once.
///
/// `@unchecked Sendable` is true because the certificate never changes after it was made.
final class ServerCertificateHandle: @unchecked Sendable {
    let pointer: OpaquePointer

    init(_ kind: ServerCertificate.Kind) throws(LoopbackError) {
        var made: OpaquePointer?
        loopback_certificate_make(Int32(kind.code), &made)
        guard let made else { throw .certificate }
        pointer = made
    }

    /// One of the client's parts, as PEM.
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
