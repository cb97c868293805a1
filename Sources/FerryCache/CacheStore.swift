internal import Csqlite3
internal import Glibc
import Synchronization

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

/// How a store on the disk is to be.
package struct CacheStoreOptions: Sendable {
    /// Made, for its owner only, when it is not there.
    package var directory: String
    /// On the disk; the least recently used entries go first.
    package var maxBytes = 256 << 20
    /// Of one entry; larger ones are not taken.
    package var maxEntryBytes = 4 << 20
    /// Waiting to be written; what does not fit is not taken.
    package var maxQueuedBytes = 16 << 20
    /// Connections that read.
    package var readers = 2
    /// How long the disk is left alone after a fault of it, in microseconds.
    package var disabledTime: Int64 = 30_000_000
    /// How long to wait for another process that holds the files, in microseconds.
    package var patience: Int64 = 2_000_000
    /// A use of an entry that was noted less long ago is not noted again, in microseconds.
    package var touchTime: Int64 = 60_000_000
    /// How long the queue waits for company before it writes, in microseconds, where nobody waits for it.
    package var gatheringTime: Int64 = 5000
    package var clock: @Sendable () -> CacheTime = currentCacheTime

    package init(directory: String) { self.directory = directory }
}

/// What a store did and met, since it was made.
package struct CacheCounts: Sendable, Equatable {
    package var written: UInt64 = 0
    /// Not taken, because the writing queue was full.
    package var dropped: UInt64 = 0
    /// Not taken, because the entry is larger than allowed.
    package var refused: UInt64 = 0
    /// Not kept, because of a fault of the disk.
    package var failed: UInt64 = 0
    package var evicted: UInt64 = 0
    /// Entries that were damaged.
    package var corrupt: UInt64 = 0
    /// Databases that were put aside.
    package var putAside: UInt64 = 0
    package var faults: [CacheFault.Kind: UInt64] = [:]
    /// The disk is left alone for a while.
    package var isDisabled = false
    package var queuedBytes = 0

    package init() {}
}

/// The counters themselves.
final class CacheCounter: Sendable {
    private let state = Mutex(CacheCounts())

    var value: CacheCounts { state.withLock { $0 } }

    func count(_ change: (inout CacheCounts) -> Void) { state.withLock { change(&$0) } }

    func count(_ fault: CacheFault) { count { $0.faults[fault.kind, default: 0] += 1 } }
}

/// Why there is no hit.
package enum CacheMissReason: String, Sendable, Hashable, CaseIterable {
    /// Older than allowed, or from the future.
    case expired
    case versionMismatch
    case sensitiveDataMismatch
    case appVersionMismatch
    /// No cache, or none for this.
    case notConfigured
    case notFound
    /// It was damaged, and is gone.
    case corrupt
    /// A header field that the answer varies by is another one.
    case varyMismatch
    /// It does not pass the checks of the request any more.
    case invalid
    /// The store cannot be read.
    case unavailable
    /// Reading was not wanted.
    case reload
}

/// Something that went wrong with the disk or the database; never seen by a run.
package struct CacheFault: Error, CustomStringConvertible {
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        case noSpace
        case noPermission
        /// The disk failed, or a file is not what it must be.
        case io
        /// The database is damaged.
        case damaged
        /// It is somebody else's.
        case foreign
        /// Another process held it for too long.
        case busy
        case other
    }

    package let kind: Kind
    /// SQLite's extended code or the system's, with its word for it. Neither holds a byte of an entry.
    package let description: String

    /// Of a call of the system's.
    init(errno code: Int32, _ call: String) {
        kind = Self.kind(errno: code) ?? .io
        description = "\(call): \(String(cString: strerror(code)))"
    }

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// Of a call of SQLite's; `errno` is what the system said to it.
    init(sqlite code: Int32, errno: Int32) {
        description = "sqlite \(code): \(String(cString: sqlite3_errstr(code)))"
        switch code & 0xFF {
        case SQLITE_FULL: kind = .noSpace
        case SQLITE_PERM, SQLITE_READONLY, SQLITE_AUTH: kind = .noPermission
        case SQLITE_CANTOPEN, SQLITE_IOERR: kind = Self.kind(errno: errno) ?? .io
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: kind = .busy
        // An error in a statement of ours says that the schema is not ours any more.
        case SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR, SQLITE_FORMAT, SQLITE_SCHEMA, SQLITE_MISMATCH: kind = .damaged
        default: kind = .other
        }
    }

    private static func kind(errno code: Int32) -> Kind? {
        switch code {
        case ENOSPC, EDQUOT: .noSpace
        case EACCES, EPERM, EROFS: .noPermission
        default: nil
        }
    }

    /// The database cannot be used any more, and has to make room for another.
    var condemns: Bool { kind == .damaged || kind == .foreign }
}
