import FerryTransport

/// A request made concrete: ready for the transport.
struct BuiltRequest: Sendable {
    var transfer: TransferRequest
    /// What gives out its body, where that is pulled. One of an attempt that is not made closes itself when it goes.
    var source: (any BodySource)?
    /// What the source was made of.
    var pulled: RequestBody?
    /// Counts the body as it is sent, where somebody may ask.
    var meter: UploadMeter?
}
