public import FerryCache
import FerrySynchronization

/// The store of an agent's cache and its limits, for requests with a ``CachePolicy``.
///
///     configuration.cache = CacheConfiguration(directory: "/var/cache/shop")
public struct CacheConfiguration: Sendable {
    /// The directory. If it does not exist, it is created with access for its owner only. Several agents and processes
    /// may share it. It is passed through ``directoryFilters``. It is ignored if ``storage`` is set.
    public var directory: String

    /// Creates a storage that replaces the directory. It is called once for each agent, which closes the storage on
    /// shutdown. The default is `nil`: entries are on disk.
    public var storage: (@Sendable () -> any CacheStorage)?

    /// The filters that change the directory, in order. The default is none.
    public var directoryFilters: [any CacheDirectoryFilter] = []

    /// The maximum size of the entries on disk in bytes; the least recently used ones are evicted first. The default is
    /// 256 MiB. A ``storage`` has its own limit.
    ///
    /// The log comes on top (up to 32 MiB, and more during reads), and so does at most one damaged database that was
    /// moved aside.
    public var maxBytes = 256 << 20

    /// The maximum size of an entry, head and body, in bytes; larger responses are not stored. The default is 4 MiB,
    /// the maximum 512 MiB.
    public var maxEntryBytes = 4 << 20

    /// The size of the memory cache in front of the disk in bytes, with URLs; 0 turns it off. The default is 16 MiB.
    public var memoryBytes = 16 << 20

    /// The maximum size of the writing queue in bytes; entries that do not fit are not stored. The default is 16 MiB. A
    /// ``storage`` has its own limit.
    public var maxQueuedBytes = 16 << 20

    /// The version of the application: entries of another version are misses. The default is `nil`.
    public var applicationVersion: String?

    /// The size of a database row is limited.
    static let mostEntryBytes = 512 << 20

    /// How long to wait for another process that holds the files, in microseconds.
    package var patience: Int64 = 2_000_000

    /// The clock, which tests replace.
    package var clock: @Sendable () -> CacheTime = currentCacheTime

    /// Creates a cache in this directory, with the defaults.
    public init(directory: String, applicationVersion: String? = nil) {
        self.directory = directory
        self.applicationVersion = applicationVersion
    }

    /// Creates a cache in a storage instead of on disk, with the defaults. `storage` is called once for each agent.
    public init(applicationVersion: String? = nil, storage: @escaping @Sendable () -> any CacheStorage) {
        directory = ""
        self.storage = storage
        self.applicationVersion = applicationVersion
    }

    /// The directory after the filters.
    var filteredDirectory: String { directoryFilters.reduce(directory) { $1.filter($0) } }
}

/// Changes the directory of a cache once, when the agent is created: for example, for a directory per version or
/// tenant.
public protocol CacheDirectoryFilter: Sendable {
    /// Returns the directory to use instead of `directory`.
    func filter(_ directory: String) -> String
}

/// The contents of a cache, and what has happened since its agent was created.
public struct CacheStatistics: Sendable {
    /// The number of entries on disk or in the ``CacheConfiguration/storage``, including those of other processes that
    /// share it. The figures for the disk below apply to the storage, too.
    public internal(set) var entries = 0
    /// The size of the entries on disk, in bytes.
    public internal(set) var bytes = 0
    /// The number of entries in memory.
    public internal(set) var memoryEntries = 0
    /// The size of the entries in memory, in bytes.
    public internal(set) var memoryBytes = 0
    /// Hits in memory.
    public internal(set) var memoryHits: UInt64 = 0
    /// Hits on disk.
    public internal(set) var diskHits: UInt64 = 0
    /// Hits of both kinds that were stale.
    public internal(set) var staleHits: UInt64 = 0
    /// Stale responses that the server has validated (RFC 9111, 4.3).
    public internal(set) var validations: UInt64 = 0
    /// Misses by reason.
    public internal(set) var misses: [CacheMiss: UInt64] = [:]
    /// Responses that were not stored although the policy asked for it, by reason.
    public internal(set) var refusals: [CacheRefusal: UInt64] = [:]
    /// Entries written.
    public internal(set) var writes: UInt64 = 0
    /// Entries that could not be written because of a disk error.
    public internal(set) var failedWrites: UInt64 = 0
    /// Entries evicted to make room.
    public internal(set) var evictions: UInt64 = 0
    /// Databases moved aside, because they were damaged or belonged to another application.
    public internal(set) var replacedDatabases: UInt64 = 0
    /// Disk errors by kind, like `noSpace`.
    public internal(set) var faults: [String: UInt64] = [:]
    /// Whether the disk is not used for a while after an error.
    public internal(set) var isDisabled = false
    /// The size of the writing queue in bytes.
    public internal(set) var queuedBytes = 0

    /// The sum of all hits.
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

/// Counts the results of cache lookups. Hits are frequent, so they are single atomic words.
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
