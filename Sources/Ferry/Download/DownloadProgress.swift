/// How far a download has come.
public struct DownloadProgress: Sendable, Hashable {
    /// Bytes of the file that are on the disk, those of earlier runs included.
    public let received: Int64

    /// Bytes that it will have; `nil` while, or as, that is not known.
    public let total: Int64?

    /// Bytes a second over the last seconds; 0 before anything is known.
    public let rate: Double

    /// How many bytes were there when the run began.
    public let resumedFrom: Int64

    /// Whether another run could go on from here if this one ended now.
    public let isResumable: Bool

    /// From 0 to 1; `nil` while it is not known how much there is.
    public var fraction: Double? {
        total.map { $0 == 0 ? 1 : min(Double(received) / Double($0), 1) }
    }

    /// The time that is left if it goes on like this; `nil` while that cannot be said.
    public var remaining: Duration? {
        guard let total, rate > 0 else { return nil }
        return .seconds(Double(max(total - received, 0)) / rate)
    }

    /// Progress of its parts, for tests of what shows it.
    public init(received: Int64, total: Int64?, rate: Double, resumedFrom: Int64, isResumable: Bool) {
        self.received = received
        self.total = total
        self.rate = rate
        self.resumedFrom = resumedFrom
        self.isResumable = isResumable
    }
}

/// The progress of one download as it changes: never more often than every 100 milliseconds, and the last one always.
/// A reader that is slower gets the latest. It ends with the run.
public struct DownloadProgressUpdates: AsyncSequence, Sendable {
    /// How far it has come.
    public typealias Element = DownloadProgress
    /// None.
    public typealias Failure = Never

    private let stream: AsyncStream<DownloadProgress>

    init(_ stream: AsyncStream<DownloadProgress>) { self.stream = stream }

    /// Begins with what comes next.
    public func makeAsyncIterator() -> AsyncStream<DownloadProgress>.Iterator { stream.makeAsyncIterator() }
}
