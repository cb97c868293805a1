/// Stores the entries of a cache under keys: the agent's own store on the disk is one, and a store behind
/// `CacheConfiguration(storage:)` is another.
///
/// An agent makes one for itself, has it to itself, and closes it when it is shut down. It calls the methods from any
/// thread, also from the threads of its loop and from Swift's cooperative pool, several at once: none of them may block
/// its caller. A closure that a method takes is called exactly once, on any thread, possibly before the method returns;
/// it does not block and may call the storage again. What changes entries is done in the order in which it was taken: a
/// removal removes what was to be written before it.
///
/// A fault of a storage fails no request: what cannot be read is missing, and what cannot be written is not kept. What
/// was stored under a key may be missing at any time, but never anything else: hand out only what
/// ``CacheEntry/init(record:for:)`` has accepted.
public protocol CacheStorage: AnyObject, Sendable {
    /// Looks an entry up. A look that takes longer than a request to the server does more harm than a miss.
    func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void)

    /// Stores an entry in the place of one that is there. `done` is told whether it is stored; `false` where there is
    /// no room for it, or after a fault.
    func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?)

    /// Removes an entry. `done` is told whether nothing is found under the key from now on, by other processes neither;
    /// `false` after a fault.
    func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)?)

    /// Removes all entries, those of other processes included. `done` is called as that of `remove`.
    func removeAll(_ done: (@Sendable (Bool) -> Void)?)

    /// Calls `forget` before it returns if somebody else, as another process, has removed entries since the last call:
    /// the agent then forgets what it has in memory, as it may be among them. It is called often, at most once in each
    /// tick of the system's clock, and must cost little. By default nobody else removes anything.
    func hearRemovals(_ forget: () -> Void)

    /// An entry that the agent has in memory was used, and is to be evicted later. At most once a minute for each. By
    /// default it does nothing.
    func touch(_ key: CacheKey)

    /// Counts the entries.
    func measure(_ answer: @escaping @Sendable (CacheSize) -> Void)

    /// What was done and what went wrong, since the storage was made.
    var counts: CacheCounts { get }

    /// How long one who fetches what is missing may keep others from doing so, at most. `nil` where nobody waits for
    /// others, which is the default.
    var leaseTime: Duration? { get }

    /// Asks to be the one of all processes who fetches what is missing under a key. Called only where there is a
    /// ``leaseTime``. `answer` is told `false` where somebody else does, and `true` also where nobody can know.
    func lease(_ key: CacheKey, _ answer: @escaping @Sendable (Bool) -> Void)

    /// What was fetched has been handed to `write`, or there is nothing to be stored: somebody else may fetch it.
    func endLease(_ key: CacheKey)

    /// Writes what was taken, and lets go of everything; `done` is called when that is done. Afterwards everything is
    /// `unavailable`, and nothing is taken. It may be called several times.
    func close(_ done: @escaping @Sendable () -> Void)
}

extension CacheStorage {
    /// Does nothing: nobody else removes entries.
    public func hearRemovals(_ forget: () -> Void) {}

    /// Does nothing.
    public func touch(_ key: CacheKey) {}

    /// Nobody waits for others.
    public var leaseTime: Duration? { nil }

    /// Everybody fetches what is missing.
    public func lease(_ key: CacheKey, _ answer: @escaping @Sendable (Bool) -> Void) { answer(true) }

    /// Does nothing.
    public func endLease(_ key: CacheKey) {}
}

/// What a storage has under a key.
public enum CacheFinding: Sendable {
    /// An entry.
    case found(CacheEntry)
    /// None, and why.
    case missing(CacheAbsence)
}

/// Why a storage has no entry under a key.
public enum CacheAbsence: String, Sendable, Hashable, CaseIterable {
    /// None is stored.
    case notFound
    /// There was one that is damaged, or none of the cache's; the storage removes it.
    case corrupt
    /// The storage cannot be read now.
    case unavailable
}

/// How much a storage holds.
public struct CacheSize: Sendable, Equatable {
    /// Entries.
    public var entries = 0
    /// Their bytes; 0 where nobody knows.
    public var bytes = 0

    /// Nothing.
    public init(entries: Int = 0, bytes: Int = 0) { (self.entries, self.bytes) = (entries, bytes) }
}

/// What a storage did and met, since it was made.
public struct CacheCounts: Sendable, Equatable {
    /// Entries that were written.
    public var written: UInt64 = 0
    /// Entries that were not taken, because too much was waiting to be written.
    public var dropped: UInt64 = 0
    /// Entries that were not taken, because they are larger than allowed.
    public var refused: UInt64 = 0
    /// Entries that were not stored, because of a fault.
    public var failed: UInt64 = 0
    /// Entries that were removed to make room.
    public var evicted: UInt64 = 0
    /// Entries that were damaged.
    public var corrupt: UInt64 = 0
    /// Databases that were put aside.
    package var putAside: UInt64 = 0
    /// Faults, by kind.
    public var faults: [CacheFaultKind: UInt64] = [:]
    /// After faults nothing is read or written for a while.
    public var isDisabled = false
    /// Bytes of entries that wait to be written.
    public var queuedBytes = 0

    /// Nothing.
    public init() {}
}

/// What kind of fault a storage has met. An open set.
public struct CacheFaultKind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// A word, like `noSpace`.
    public let rawValue: String

    /// One of a word.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// There is no room.
    public static let noSpace = CacheFaultKind(rawValue: "noSpace")
    /// It is not allowed.
    public static let noPermission = CacheFaultKind(rawValue: "noPermission")
    /// The disk or the connection failed, or a file is not what it must be.
    public static let io = CacheFaultKind(rawValue: "io")
    /// The database is damaged, or a server said what it must not say.
    public static let damaged = CacheFaultKind(rawValue: "damaged")
    /// The database is somebody else's.
    public static let foreign = CacheFaultKind(rawValue: "foreign")
    /// Another process held it for too long, or a server is not ready.
    public static let busy = CacheFaultKind(rawValue: "busy")
    /// It took too long.
    public static let timeout = CacheFaultKind(rawValue: "timeout")
    /// Any other.
    public static let other = CacheFaultKind(rawValue: "other")

    /// The word.
    public var description: String { rawValue }
}
