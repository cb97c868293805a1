/// Stores the entries of a cache under keys. The agent's own store on disk is one; `CacheConfiguration(storage:)` takes
/// another.
///
/// An agent makes a storage for its own use, and closes it when it is shut down. It calls the methods from any thread,
/// including the threads of its event loops and Swift's cooperative pool, and several at once: none of them may block.
/// A closure that a method takes is called exactly once, on any thread, possibly before the method returns; it does not
/// block and may call the storage again. Changes take effect in the order of the calls: a removal also removes entries
/// that were to be written before it.
///
/// An error of a storage fails no request: an entry that cannot be read is missing, and one that cannot be written is
/// not stored. A stored entry may be missing at any time, but must never be replaced by anything else: return only
/// entries that ``CacheEntry/init(record:for:)`` has accepted.
public protocol CacheStorage: AnyObject, Sendable {
    /// Looks up an entry. A lookup that takes longer than a request to the server is worse than a miss.
    func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void)

    /// Stores an entry; it replaces an existing one. `done` receives whether it is stored: `false` if there is no room
    /// for it, or after an error. In this case an existing entry, which is older, must not be found any more.
    func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?)

    /// The same. If it `isAwaited`, a run waits for the end; otherwise several entries may be written together. The
    /// default implementation calls ``write(_:under:_:)``.
    func write(
        _ entry: CacheEntry, under key: CacheKey, isAwaited: Bool, _ done: @escaping @Sendable (Bool) -> Void)

    /// Removes an entry. `done` receives whether the entry can no longer be found, not even by other processes: `false`
    /// after an error.
    func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)?)

    /// Removes all entries, including those of other processes. `done` is called like that of `remove`.
    func removeAll(_ done: (@Sendable (Bool) -> Void)?)

    /// Calls `forget`, before it returns, for each entry that another process has removed since the last call, with the
    /// name of its key (``CacheKey/name``), or once with `nil` if any entry may have been removed. The agent then drops
    /// the entry, or all, from its memory, and does not store the response to a request for it that was sent before
    /// (RFC 9111, 4.4). The agent calls this often, at most once in each tick of the system's clock, so it must be
    /// cheap. The default implementation assumes that only this agent removes entries.
    func hearRemovals(_ forget: (_ name: String?) -> Void)

    /// A number that grows whenever any entry may have been removed, except at the beginning, when nothing is known.
    /// If it has changed since a request was sent, the agent does not store the response, which may be older than what
    /// the other process has changed. The default implementation assumes that only this agent removes entries.
    var removalsHeard: UInt64 { get }

    /// Whether other processes may store entries, too. If so, with the policy `http` the agent looks here for a newer
    /// entry than the one in memory before it delivers that one without a request to the server, and before a
    /// validation whose failure a stale response may replace. The default is `true`.
    var isShared: Bool { get }

    /// The agent has used an entry that it holds in memory, so it should be evicted later. Called at most once a minute
    /// for each entry. The default implementation does nothing.
    func touch(_ key: CacheKey)

    /// Counts the entries and their size.
    func measure(_ answer: @escaping @Sendable (CacheSize) -> Void)

    /// What the storage has done, and which errors it met, since it was made.
    var counts: CacheCounts { get }

    /// The maximum time for which an agent that fetches a missing response may keep others from fetching it. The
    /// default is `nil`: nobody waits for others.
    var leaseTime: Duration? { get }

    /// Requests the lease for a key: only its holder, among all processes, fetches the missing response. Called only if
    /// there is a ``leaseTime``. `answer` receives `false` if another process holds the lease, and `true` otherwise,
    /// also if that cannot be determined. `holder` is a different number for every lease of this process.
    func lease(_ key: CacheKey, of holder: UInt64, _ answer: @escaping @Sendable (Bool) -> Void)

    /// Ends a lease: the response was passed to `write`, or there is nothing to store. Others may fetch it now. If the
    /// lease of this holder has expired, another one may have the lease now, also in this process, and keeps it.
    func endLease(_ key: CacheKey, of holder: UInt64)

    /// Writes the accepted entries and frees all resources, then calls `done`. Afterwards every lookup is
    /// `unavailable`, and nothing is stored. May be called several times.
    func close(_ done: @escaping @Sendable () -> Void)
}

extension CacheStorage {
    /// Writes it at once.
    public func write(
        _ entry: CacheEntry, under key: CacheKey, isAwaited: Bool, _ done: @escaping @Sendable (Bool) -> Void
    ) { write(entry, under: key, done) }

    /// Does nothing: only this agent removes entries.
    public func hearRemovals(_ forget: (_ name: String?) -> Void) {}

    /// 0: only this agent removes entries.
    public var removalsHeard: UInt64 { 0 }

    /// `true`: others may store entries.
    public var isShared: Bool { true }

    /// Does nothing.
    public func touch(_ key: CacheKey) {}

    /// `nil`: nobody waits for others.
    public var leaseTime: Duration? { nil }

    /// Always grants the lease: everybody fetches what is missing.
    public func lease(_ key: CacheKey, of holder: UInt64, _ answer: @escaping @Sendable (Bool) -> Void) { answer(true) }

    /// Does nothing.
    public func endLease(_ key: CacheKey, of holder: UInt64) {}
}

/// The result of a lookup in a storage.
public enum CacheFinding: Sendable {
    /// The entry.
    case found(CacheEntry)
    /// No entry, and the reason.
    case missing(CacheAbsence)
}

/// Why a storage has no entry under a key.
public enum CacheAbsence: String, Sendable, Hashable, CaseIterable {
    /// No entry is stored.
    case notFound
    /// The entry is damaged, or is not one of the cache; the storage removes it.
    case corrupt
    /// The storage cannot be read at the moment.
    case unavailable
}

/// The number of entries in a storage, and their size.
public struct CacheSize: Sendable, Equatable {
    /// The number of entries.
    public var entries = 0
    /// Their size in bytes; 0 if unknown.
    public var bytes = 0

    /// Creates a size; the default is 0 for both.
    public init(entries: Int = 0, bytes: Int = 0) { (self.entries, self.bytes) = (entries, bytes) }
}

/// What a storage has done, and which errors it met, since it was made.
public struct CacheCounts: Sendable, Equatable {
    /// Entries written.
    public var written: UInt64 = 0
    /// Entries that were not accepted because too many bytes were waiting to be written.
    public var dropped: UInt64 = 0
    /// Entries that were not accepted because they are larger than allowed.
    public var refused: UInt64 = 0
    /// Entries that were not stored because of an error.
    public var failed: UInt64 = 0
    /// Entries evicted to make room.
    public var evicted: UInt64 = 0
    /// Damaged entries.
    public var corrupt: UInt64 = 0
    /// Databases that were moved aside.
    package var putAside: UInt64 = 0
    /// The number of errors by kind.
    public var faults: [CacheFaultKind: UInt64] = [:]
    /// Whether reading and writing are disabled for a while after an error.
    public var isDisabled = false
    /// The bytes of entries that wait to be written.
    public var queuedBytes = 0

    /// Creates counts that are all 0.
    public init() {}
}

/// The kind of an error of a storage. An open set.
public struct CacheFaultKind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The name of the kind, such as `noSpace`.
    public let rawValue: String

    /// Creates a kind with this name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// There is no space left.
    public static let noSpace = CacheFaultKind(rawValue: "noSpace")
    /// Permission is missing.
    public static let noPermission = CacheFaultKind(rawValue: "noPermission")
    /// The disk or the connection failed, or a file is not of the right type.
    public static let io = CacheFaultKind(rawValue: "io")
    /// The database is damaged, or a server sent an invalid reply.
    public static let damaged = CacheFaultKind(rawValue: "damaged")
    /// The database belongs to something else.
    public static let foreign = CacheFaultKind(rawValue: "foreign")
    /// Another process held the storage for too long, or a server is not ready.
    public static let busy = CacheFaultKind(rawValue: "busy")
    /// A server has an untrusted certificate, or refuses the client's, or TLS is not possible for another reason.
    public static let tls = CacheFaultKind(rawValue: "tls")
    /// The operation took too long.
    public static let timeout = CacheFaultKind(rawValue: "timeout")
    /// Any other error.
    public static let other = CacheFaultKind(rawValue: "other")

    /// The name of the kind.
    public var description: String { rawValue }
}
