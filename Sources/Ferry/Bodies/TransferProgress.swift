/// How much of a request's body has been handed to the network.
///
/// When a request is sent again, after a redirect or by a retry, it begins anew.
public struct TransferProgress: Sendable, Hashable {
    /// Bytes handed over. A body that lies in memory counts when all of it has left.
    public let bytesSent: UInt64
    /// Bytes there are to send; `nil` while that is not known.
    public let bytesToSend: UInt64?

    /// From 0 to 1; `nil` while it is not known how much there is.
    public var fraction: Double? {
        bytesToSend.map { $0 == 0 ? 1 : Double(bytesSent) / Double($0) }
    }

    init(bytesSent: UInt64, bytesToSend: UInt64?) {
        self.bytesSent = bytesSent
        self.bytesToSend = bytesToSend
    }
}
