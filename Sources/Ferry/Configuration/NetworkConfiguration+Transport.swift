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
    fileprivate var field: String { map(\.rawValue).joined(separator: ", ") }
}
