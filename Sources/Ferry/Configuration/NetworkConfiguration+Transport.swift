package import FerryTransport

extension NetworkConfiguration {
    /// The part of it that the transport is made with.
    package var transport: TransportConfiguration {
        var made = TransportConfiguration()
        made.loops = max(loops, 1)
        made.maxTransfers = max(limits.concurrentTransfers, 1)
        made.maxTransfersPerHost = max(limits.transfersPerHost, 1)
        made.idleConnectionTime = milliseconds(idleConnectionTime)
        made.authorityFile = tls.authorityFile
        made.pinnedKeys = tls.pinnedKeys
        made.isInsecure = tls.verification == .none
        made.clientCertificateFile = tls.clientCertificate?.certificateFile
        made.clientKeyFile = tls.clientCertificate?.keyFile
        made.clientKeyPassword = tls.clientCertificate?.keyPassword
        switch tls.minimumVersion {
        case .v12: made.minimumTLSVersion = .v12
        case .v13: made.minimumTLSVersion = .v13
        }
        switch http2 {
        case .never: made.http2 = .never
        case .negotiated: made.http2 = .negotiated
        case .priorKnowledge: made.http2 = .priorKnowledge
        }
        made.engine = engine == .automatic ? .http1 : .libcurl
        made.keepsCookies = keepsCookies
        made.userAgent = userAgent
        made.acceptedEncodings = acceptedEncodings.isEmpty ? nil : acceptedEncodings.field
        return made
    }
}

extension TransferEncodings {
    init(_ encodings: [ContentEncoding]) { self = encodings.isEmpty ? .none : .these(encodings.field) }
}

extension [ContentEncoding] {
    /// The value of an `Accept-Encoding` field.
    var field: String { map(\.rawValue).joined(separator: ", ") }
}
