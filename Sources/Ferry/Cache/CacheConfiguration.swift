package import FerryCache

/// Where and how much an agent keeps of answers, for requests with a ``CachePolicy``.
///
///     configuration.cache = CacheConfiguration(directory: "/var/cache/shop")
public struct CacheConfiguration: Sendable {
    /// Made for its owner only when it is not there; several agents and processes may share one. It is passed through
    /// ``directoryFilters``.
    public var directory: String

    /// Change the directory, in their order. The default is none.
    public var directoryFilters: [any CacheDirectoryFilter] = []

    /// Of entries on the disk; the least recently used go first. The default is 256 MiB.
    ///
    /// Beside them stand a log, up to 32 MiB and more while somebody reads from it, and a database that was damaged and
    /// put aside, one at most.
    public var maxBytes = 256 << 20

    /// Of one entry, head and body; larger answers are not kept. The default is 4 MiB, the most 512 MiB.
    public var maxEntryBytes = 4 << 20

    /// In memory, in front of the disk; 0 keeps nothing there. The default is 16 MiB.
    public var memoryBytes = 16 << 20

    /// Of what waits to be written; what does not fit is not kept. The default is 16 MiB.
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

    /// The directory after the filters.
    var filteredDirectory: String { directoryFilters.reduce(directory) { $1.filter($0) } }
}

/// Changes the directory of a cache, once, when the agent is made: for a folder of each version, or of each tenant.
public protocol CacheDirectoryFilter: Sendable {
    /// The directory to use in the place of `directory`.
    func filter(_ directory: String) -> String
}
