internal import Csqlite3
internal import Glibc

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
