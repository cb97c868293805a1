public import FerryCache
import Synchronization

/// Where and how much an agent keeps of answers, for requests with a ``CachePolicy``.
///
///     configuration.cache = CacheConfiguration(directory: "/var/cache/shop")
public struct CacheConfiguration: Sendable {
    /// Made for its owner only when it is not there; several agents and processes may share one. It is passed through
    /// ``directoryFilters``. It has no meaning where there is a ``storage``.
    public var directory: String

    /// Makes the storage that stands in the place of the directory, once for each agent, which closes it when it is
    /// shut down. The default is `nil`: entries are on the disk.
    public var storage: (@Sendable () -> any CacheStorage)?

    /// Change the directory, in their order. The default is none.
    public var directoryFilters: [any CacheDirectoryFilter] = []

    /// Of entries on the disk; the least recently used go first. The default is 256 MiB. A ``storage`` has a bound of
    /// its own.
    ///
    /// Beside them stand a log, up to 32 MiB and more while somebody reads from it, and a database that was damaged and
    /// put aside, one at most.
    public var maxBytes = 256 << 20

    /// Of one entry, head and body; larger answers are not kept. The default is 4 MiB, the most 512 MiB.
    public var maxEntryBytes = 4 << 20

    /// In memory, in front of the disk; 0 keeps nothing there. The default is 16 MiB.
    public var memoryBytes = 16 << 20

    /// Of what waits to be written; what does not fit is not kept. The default is 16 MiB. A ``storage`` has a bound of
    /// its own.
    public var maxQueuedBytes = 16 << 20

    /// The version of the application: entries of another one are misses. The default is `nil`.
    public var applicationVersion: String?

    /// What a database takes in one row is bounded.
    static let mostEntryBytes = 512 << 20

    /// How long to wait for another process that holds the files, in microseconds.
    package var patience: Int64 = 2_000_000

    /// For tests, which have no time to wait.
    package var clock: @Sendable () -> CacheTime = currentCacheTime

    /// A cache in this directory, with the defaults.
    public init(directory: String, applicationVersion: String? = nil) {
        self.directory = directory
        self.applicationVersion = applicationVersion
    }

    /// A cache in a storage, in the place of the disk, with the defaults. `storage` makes it, once for each agent.
    public init(applicationVersion: String? = nil, storage: @escaping @Sendable () -> any CacheStorage) {
        directory = ""
        self.storage = storage
        self.applicationVersion = applicationVersion
    }

    /// The directory after the filters.
    var filteredDirectory: String { directoryFilters.reduce(directory) { $1.filter($0) } }
}

/// Changes the directory of a cache, once, when the agent is made: for a folder of each version, or of each tenant.
public protocol CacheDirectoryFilter: Sendable {
    /// The directory to use in the place of `directory`.
    func filter(_ directory: String) -> String
}

/// What a cache holds, and what it did since its agent was made.
public struct CacheStatistics: Sendable {
    /// Entries on the disk or in the ``CacheConfiguration/storage``, of all processes that share it. What is said of
    /// the disk below is said of the storage too.
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
    /// Answers past their time that the server has validated (RFC 9111, 4.3).
    public internal(set) var validations: UInt64 = 0
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

/// Counts what runs get from a cache. Hits are counted by single atomic words, as they are many.
final class CacheCounters: Sendable {
    private let memoryHits = Atomic<UInt64>(0)
    private let diskHits = Atomic<UInt64>(0)
    private let staleHits = Atomic<UInt64>(0)
    private let validations = Atomic<UInt64>(0)
    /// A miss of this kind comes before each validation.
    private let expired = Atomic<UInt64>(0)
    private let rest = Mutex((misses: [CacheMiss: UInt64](), refusals: [CacheRefusal: UInt64]()))

    func hit(fromMemory: Bool, isStale: Bool) {
        if fromMemory { memoryHits.add(1, ordering: .relaxed) } else { diskHits.add(1, ordering: .relaxed) }
        if isStale { staleHits.add(1, ordering: .relaxed) }
    }

    func validated() { validations.add(1, ordering: .relaxed) }

    func missed(_ miss: CacheMiss) {
        if miss == .expired {
            expired.add(1, ordering: .relaxed)
        } else {
            rest.withLock { $0.misses[miss, default: 0] += 1 }
        }
    }

    func refused(_ refusal: CacheRefusal) { rest.withLock { $0.refusals[refusal, default: 0] += 1 } }

    var statistics: CacheStatistics {
        var statistics = CacheStatistics()
        statistics.memoryHits = memoryHits.load(ordering: .relaxed)
        statistics.diskHits = diskHits.load(ordering: .relaxed)
        statistics.staleHits = staleHits.load(ordering: .relaxed)
        statistics.validations = validations.load(ordering: .relaxed)
        (statistics.misses, statistics.refusals) = rest.withLock { $0 }
        let expired = expired.load(ordering: .relaxed)
        if expired > 0 { statistics.misses[.expired] = expired }
        return statistics
    }
}
