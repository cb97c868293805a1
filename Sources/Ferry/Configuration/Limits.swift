/// How much at once.
///
/// What is below 1 counts as 1, a ``queueLength`` below 0 as 0. Where an agent has several loops, each has its share.
public struct Limits: Sendable, Hashable {
    /// Exchanges at work at once; the others wait. The default is 1,024, the most 1,048,576 for each loop.
    public var concurrentTransfers = 1024

    /// Of these for one scheme, host and port; with several loops each has one at least. The default is 64.
    public var transfersPerHost = 64

    /// Runs that may wait beyond ``concurrentTransfers``; one more fails with `queueFull`. The default is `nil`, no
    /// bound.
    public var queueLength: Int?

    /// Bytes of all heads of one answer together; more is `headersTooLarge`. The default is 64 KiB.
    public var headerBytes = 64 * 1024

    /// Bytes of a body held in memory, after decoding; more is `responseTooLarge`. The default is 64 MiB.
    public var bodyBytes = 64 * 1024 * 1024

    /// The defaults.
    public init() {}
}
