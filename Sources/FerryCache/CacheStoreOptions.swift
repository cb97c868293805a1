internal import Csqlite3
import FerrySynchronization
internal import Glibc

/// The options of a store on disk.
package struct CacheStoreOptions: Sendable {
    /// The directory. It is created, for its owner only, if it does not exist.
    package var directory: String
    /// The maximum size on disk, in bytes; the least recently used entries are evicted first.
    package var maxBytes = 256 << 20
    /// The maximum size of one entry, in bytes; larger ones are refused.
    package var maxEntryBytes = 4 << 20
    /// The maximum number of bytes that wait to be written; entries beyond it are dropped.
    package var maxQueuedBytes = 16 << 20
    /// The number of connections that read.
    package var readers = 2
    /// How long the disk is not used after an error, in microseconds.
    package var disabledTime: Int64 = 30_000_000
    /// How long to wait for another process that holds the files, in microseconds.
    package var patience: Int64 = 2_000_000
    /// If a use of an entry was noted less than this long ago, in microseconds, it is not noted again.
    package var touchTime: Int64 = 60_000_000
    /// How long the queue collects jobs before it writes them, in microseconds, if nobody waits for them.
    package var gatheringTime: Int64 = 5000
    package var clock: @Sendable () -> CacheTime = currentCacheTime

    package init(directory: String) { self.directory = directory }
}

/// Holds the counters behind a lock.
final class CacheCounter: Sendable {
    private let state = Mutex(CacheCounts())

    var value: CacheCounts { state.withLock { $0 } }

    func count(_ change: (inout CacheCounts) -> Void) { state.withLock { change(&$0) } }

    func count(_ fault: CacheFault) { count { $0.faults[fault.kind, default: 0] += 1 } }
}

/// Why there was no hit.
package enum CacheMissReason: String, Sendable, Hashable, CaseIterable {
    /// It is older than allowed, or from the future.
    case expired
    case versionMismatch
    case sensitiveDataMismatch
    case appVersionMismatch
    /// There is no cache, or none for this request.
    case notConfigured
    case notFound
    /// It was damaged and has been removed.
    case corrupt
    /// A header field that the response varies by is different.
    case varyMismatch
    /// It no longer passes the checks of the request.
    case invalid
    /// The store could not be read.
    case unavailable
    /// The request does not want a cached response.
    case reload
}

/// An error of the disk or the database; runs never see it.
package struct CacheFault: Error, CustomStringConvertible {
    package typealias Kind = CacheFaultKind

    package let kind: Kind
    /// The extended code of SQLite or the code of the system, with its message. It contains no byte of an entry.
    package let description: String

    /// Creates the fault of a system call.
    init(errno code: Int32, _ call: String) {
        kind = Self.kind(errno: code) ?? .io
        description = "\(call): \(String(cString: strerror(code)))"
    }

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// Creates the fault of an SQLite call; `errno` is the system error behind it.
    init(sqlite code: Int32, errno: Int32) {
        description = "sqlite \(code): \(String(cString: sqlite3_errstr(code)))"
        switch code & 0xFF {
        case SQLITE_FULL: kind = .noSpace
        case SQLITE_PERM, SQLITE_READONLY, SQLITE_AUTH: kind = .noPermission
        case SQLITE_CANTOPEN, SQLITE_IOERR: kind = Self.kind(errno: errno) ?? .io
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: kind = .busy
        // An error in one of our statements means that the schema is not ours any more.
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

    /// Whether the database is unusable and has to be replaced.
    var condemns: Bool { kind == .damaged || kind == .foreign }
}
