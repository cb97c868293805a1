/// How much at once.
public struct Limits: Sendable, Hashable {
    /// Exchanges at work at once; the others wait. The default is 1,024.
    public var concurrentTransfers = 1024

    /// Of these for one scheme, host and port. The default is 64.
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
