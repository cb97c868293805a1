/// Keeps entries under keys. Nothing of it blocks its caller, and none of its faults is anybody's but its own: what
/// cannot be read is missing, and what cannot be written is not kept.
package protocol CacheStore: AnyObject, Sendable {
    /// Looks an entry up. `answer` is called once, on a thread of the store's, and must not block.
    func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void)

    /// Takes an entry to be written, in the place of one that is there. `done` is called once, on a thread of the
    /// store's, when it outlives the process, or is not going to be kept.
    func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?)

    /// Removes an entry, after what was taken before. `done` is called likewise.
    func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)?)

    /// Removes all entries, after what was taken before. `done` is called likewise.
    func removeAll(_ done: (@Sendable (Bool) -> Void)?)

    /// Calls `forget` before it returns, when another store of the same directory, of this process or another one, has
    /// removed entries since the last call: what is held in memory may be among them.
    func hearRemovals(_ forget: () -> Void)

    /// An entry was used, and is to be evicted later. Kept for the next writing.
    func touch(_ key: CacheKey)

    /// Counts what is there. `answer` is called once, on a thread of the store's.
    func measure(_ answer: @escaping @Sendable (CacheSize) -> Void)

    /// Counters since the store was made.
    var counts: CacheCounts { get }

    /// Writes what was taken, and lets go of the disk; `done` is called once when that is done. Afterwards everything
    /// is missing, and nothing is taken. Any number of times.
    func close(_ done: @escaping @Sendable () -> Void)
}

/// What a store has under a key.
package enum CacheFinding: Sendable {
    case found(CacheEntry)
    /// `notFound`, `corrupt` or `unavailable`.
    case missing(CacheMissReason)
}

/// How much a store holds.
package struct CacheSize: Sendable, Equatable {
    package var entries = 0
    /// On the disk.
    package var bytes = 0

    package init() {}
}
