internal import Csqlite3

/// One connection to a database (sqlite3_open_v2(3)). Used by one thread at a time; who owns it sees to that.
struct SQLiteConnection: ~Copyable {
    private let raw: OpaquePointer

    /// Opens the file, which must be there.
    init(path: String) throws(CacheFault) {
        var opened: OpaquePointer?
        let code = sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nil)
        guard code == SQLITE_OK, let opened else {
            let errno = opened.map { sqlite3_system_errno($0) } ?? 0
            sqlite3_close_v2(opened)
            throw CacheFault(sqlite: code, errno: errno)
        }
        raw = opened
        sqlite3_extended_result_codes(raw, 1)
    }

    deinit { sqlite3_close_v2(raw) }

    /// How long to wait for another process, in microseconds.
    func setPatience(_ microseconds: Int64) { sqlite3_busy_timeout(raw, Int32(clamping: microseconds / 1000)) }

    func execute(_ sql: String) throws(CacheFault) {
        let code = sqlite3_exec(raw, sql, nil, nil, nil)
        if code != SQLITE_OK { throw fault(code) }
    }

    func prepare(_ sql: String) throws(CacheFault) -> SQLiteStatement {
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v3(raw, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
        guard code == SQLITE_OK, let statement else { throw fault(code) }
        return SQLiteStatement(statement)
    }

    /// The first column of the first row; `nil` when there is none.
    func text(_ sql: String) throws(CacheFault) -> String? {
        let statement = try prepare(sql)
        return try statement.step() ? statement.text(0) : nil
    }

    func number(_ sql: String) throws(CacheFault) -> Int64? {
        let statement = try prepare(sql)
        return try statement.step() ? statement.number(0) : nil
    }

    /// Whether SQLite takes it for one that may only be read: by the file's permissions, or by its header.
    var isReadOnly: Bool { sqlite3_db_readonly(raw, "main") == 1 }

    /// Rows that the last statement changed.
    var changes: Int64 { sqlite3_changes64(raw) }

    private func fault(_ code: Int32) -> CacheFault { CacheFault(sqlite: code, errno: sqlite3_system_errno(raw)) }
}
