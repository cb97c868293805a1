import FerryTransport

/// A request made concrete: ready for the transport.
struct BuiltRequest: Sendable {
    var transfer: TransferRequest
}
