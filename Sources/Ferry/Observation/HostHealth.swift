/// What recent results say of a host, by scheme, name and port.
///
/// A host fails when it cannot be found or connected to, when TLS does not come about, when it breaks a connection or
/// lets time pass. Any whole answer, an error status included, shows that it is reachable. What is not the host's
/// doing, like a cancelled run, a full queue, a file that cannot be read, or what an adapter, an interceptor or the
/// refresh of a token throws, says nothing of it; nor does an answer of an interceptor's or of the cache's.
public enum HostHealth: Sendable, Hashable {
    /// Nothing was heard of it, or so long ago that others took its place.
    case unknown
    /// It answered the last time.
    case reachable(since: ContinuousClock.Instant)
    /// It did not.
    case failing(since: ContinuousClock.Instant, consecutiveFailures: Int, lastError: RequestError.Code)

    /// Whether it failed the last time.
    public var isFailing: Bool { if case .failing = self { true } else { false } }

    /// Whether it answered the last time.
    public var isReachable: Bool { if case .reachable = self { true } else { false } }
}

/// A host that has become reachable or failing.
public struct HostHealthChange: Sendable, Hashable {
    /// Scheme, host in lower case, and port unless it is the scheme's own: `http://h:8080`.
    public let host: String
    /// What it is now.
    public let health: HostHealth
}

/// The changes of all hosts of an agent, from the moment an iteration begins. Any number of them at once; each ends
/// when its task is cancelled or the agent is gone. One that does not keep up loses the oldest of more than 1,024
/// changes.
public struct HostHealthChanges: AsyncSequence, Sendable {
    /// A change.
    public typealias Element = HostHealthChange
    /// It does not fail.
    public typealias Failure = Never
    /// One iteration.
    public typealias AsyncIterator = AsyncStream<HostHealthChange>.Iterator

    let table: HostHealthTable

    /// Begins to listen.
    public func makeAsyncIterator() -> AsyncIterator { table.listen().makeAsyncIterator() }
}
