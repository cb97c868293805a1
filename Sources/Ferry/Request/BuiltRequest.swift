import FerryTransport

/// A request made concrete: ready for the transport. It is handed on, never copied: it is large.
struct BuiltRequest: ~Copyable, Sendable {
    var transfer: TransferRequest
    /// What gives out its body, where that is pulled. One of an attempt that is not made closes itself when it goes.
    var source: (any BodySource)?
    /// False when it is only to be looked at: then no file is opened, and no stream is taken.
    var opensBody = true
    /// The body that is pulled, with the arguments that go into it.
    var pulled: RequestBody?
    /// Counts the body as it is sent, where somebody may ask.
    var meter: UploadMeter?
}
