import FerryCache

/// What a cache holds, and what it did since its agent was made.
public struct CacheStatistics: Sendable {
    /// Entries on the disk, of all processes that share the directory.
    public internal(set) var entries = 0
    /// Their bytes on the disk.
    public internal(set) var bytes = 0
    /// Entries in memory.
    public internal(set) var memoryEntries = 0
    /// Bytes in memory.
    public internal(set) var memoryBytes = 0
    /// Answers from memory.
    public internal(set) var memoryHits: UInt64 = 0
    /// Answers from the disk.
    public internal(set) var diskHits: UInt64 = 0
    /// Of both, answers past their time.
    public internal(set) var staleHits: UInt64 = 0
    /// Runs that had no answer from the cache, by reason.
    public internal(set) var misses: [CacheMiss: UInt64] = [:]
    /// Answers that were not kept though the policy asked for it, by reason.
    public internal(set) var refusals: [CacheRefusal: UInt64] = [:]
    /// Entries written.
    public internal(set) var writes: UInt64 = 0
    /// Entries that a fault of the disk kept from being written.
    public internal(set) var failedWrites: UInt64 = 0
    /// Entries that went to make room.
    public internal(set) var evictions: UInt64 = 0
    /// Databases that were damaged, or somebody else's, and put aside.
    public internal(set) var replacedDatabases: UInt64 = 0
    /// Faults of the disk, by kind, like `noSpace`.
    public internal(set) var faults: [String: UInt64] = [:]
    /// After a fault the disk is left alone for a while.
    public internal(set) var isDisabled = false
    /// Bytes that wait to be written.
    public internal(set) var queuedBytes = 0

    /// All of them.
    public var hits: UInt64 { memoryHits + diskHits }
}

extension CacheStatistics {
    mutating func add(_ counts: CacheCounts) {
        writes = counts.written
        failedWrites = counts.failed
        evictions = counts.evicted
        replacedDatabases = counts.putAside
        faults = Dictionary(uniqueKeysWithValues: counts.faults.map { ($0.key.rawValue, $0.value) })
        isDisabled = counts.isDisabled
        queuedBytes = counts.queuedBytes
        if counts.dropped > 0 { refusals[.queueFull] = counts.dropped }
        if counts.refused > 0 { refusals[.tooLarge] = counts.refused }
    }
}
