internal import Csqlite3
internal import Glibc
import Synchronization

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
    package typealias Kind = CacheFaultKind

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
