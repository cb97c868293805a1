internal import Csqlite3
internal import Glibc

/// One connection to a database (sqlite3_open_v2(3)). Its owner ensures that one thread at a time uses it.
struct SQLiteConnection: ~Copyable {
    private let raw: OpaquePointer

    /// Opens the file, which must exist.
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

    /// Sets how long to wait for another process, in microseconds.
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

    /// The first column of the first row; `nil` if there is none.
    func text(_ sql: String) throws(CacheFault) -> String? {
        let statement = try prepare(sql)
        return try statement.step() ? statement.text(0) : nil
    }

    func number(_ sql: String) throws(CacheFault) -> Int64? {
        let statement = try prepare(sql)
        return try statement.step() ? statement.number(0) : nil
    }

    /// Whether SQLite treats the database as read-only, because of the file's permissions or its header.
    var isReadOnly: Bool { sqlite3_db_readonly(raw, "main") == 1 }

    /// The number of rows that the last statement changed.
    var changes: Int64 { sqlite3_changes64(raw) }

    private func fault(_ code: Int32) -> CacheFault { CacheFault(sqlite: code, errno: sqlite3_system_errno(raw)) }
}

/// A prepared statement (sqlite3_prepare_v3(3)). It keeps the underlying connection open, even after its owner has
/// released it.
struct SQLiteStatement: ~Copyable {
    private let raw: OpaquePointer

    init(_ raw: OpaquePointer) { self.raw = raw }

    deinit { sqlite3_finalize(raw) }

    func bind(_ number: Int64, at index: Int32) throws(CacheFault) {
        try check(sqlite3_bind_int64(raw, index, number))
    }

    /// Binds bytes, which must stay valid until the statement is reset.
    func bind(_ bytes: UnsafeRawBufferPointer, at index: Int32) throws(CacheFault) {
        try check(sqlite3_bind_blob64(raw, index, bytes.baseAddress, UInt64(bytes.count), nil))
    }

    /// Binds the eight bytes of the number in memory; SQLite copies them.
    func bind(bytesOf number: Int64, at index: Int32) throws(CacheFault) {
        let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        let code = withUnsafeBytes(of: number) {
            sqlite3_bind_blob64(raw, index, $0.baseAddress, UInt64($0.count), copies)
        }
        try check(code)
    }

    /// Takes a step; returns whether there is a row.
    func step() throws(CacheFault) -> Bool {
        let code = sqlite3_step(raw)
        switch code {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw fault(code)
        }
    }

    /// Runs the statement to its end and resets it.
    func run() throws(CacheFault) {
        defer { reset() }
        while try step() {}
    }

    /// Resets the statement for its next use. Its error is ignored, because the step has reported it.
    func reset() { sqlite3_reset(raw) }

    func number(_ column: Int32) -> Int64 { sqlite3_column_int64(raw, column) }

    func text(_ column: Int32) -> String? { sqlite3_column_text(raw, column).map { String(cString: $0) } }

    /// Calls `body` with the bytes of a column, valid until the next step or reset; they are empty if the column has
    /// none.
    func withBytes<R>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        let start = sqlite3_column_blob(raw, column)
        let count = Int(sqlite3_column_bytes(raw, column))
        return body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
    }

    private func fault(_ code: Int32) -> CacheFault {
        CacheFault(sqlite: code, errno: sqlite3_system_errno(sqlite3_db_handle(raw)))
    }

    private func check(_ code: Int32) throws(CacheFault) {
        if code != SQLITE_OK { throw fault(code) }
    }
}

/// A connection to the database of a store, with a verified schema.
struct CacheDatabase: ~Copyable {
    let connection: SQLiteConnection
    let inode: UInt64
    let epoch: Int

    /// `Fery`, which marks our databases (PRAGMA application_id).
    private static let application = 0x4665_7279

    /// Rows are in the order of their last use: new ones are appended, which moves no other, and the first ones are
    /// evicted first. They are found by the first bytes of their key's digest. These are a blob, because SQLite does
    /// not check whether two integers lie within their record: in a damaged record it compares bytes beyond the page,
    /// which differ for each connection.
    private static let schema = [
        "CREATE TABLE entries(used INTEGER PRIMARY KEY, key BLOB NOT NULL, record BLOB NOT NULL)",
        "CREATE UNIQUE INDEX keys ON entries(key)",
    ]

    init(path: String, isNew: Bool, inode: UInt64, epoch: Int, patience: Int64) throws(CacheFault) {
        let connection = try SQLiteConnection(path: path)
        connection.setPatience(patience)
        if !isNew { try Self.check(connection, path) }
        // Both settings are permanent for the file. A new one must have them before its first page is written.
        guard try connection.text("PRAGMA journal_mode=WAL") == "wal" else {
            throw CacheFault(.io, "no write-ahead log here")
        }
        try connection.execute(
            "PRAGMA synchronous=NORMAL; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0")
        if isNew { try Self.make(connection) }
        self.connection = connection
        self.inode = inode
        self.epoch = epoch
    }

    private static func check(_ connection: borrowing SQLiteConnection, _ path: String) throws(CacheFault) {
        guard try connection.number("PRAGMA application_id") == Int64(application) else {
            throw CacheFault(.foreign, "somebody else's database")
        }
        // Its header has a version for writing: SQLite only reads files of a later version than its own.
        if connection.isReadOnly, access(path, W_OK) == 0 {
            throw CacheFault(.damaged, "a file that may be written, a header that says otherwise")
        }
        let statement = try connection.prepare("SELECT sql FROM sqlite_master ORDER BY rowid")
        var found: [String] = []
        while try statement.step() { found.append(statement.text(0) ?? "") }
        guard found == schema else { throw CacheFault(.damaged, "another schema") }
    }

    private static func make(_ connection: borrowing SQLiteConnection) throws(CacheFault) {
        try connection.execute("BEGIN IMMEDIATE")
        do throws(CacheFault) {
            try connection.execute("PRAGMA application_id=\(application)")
            for statement in schema { try connection.execute(statement) }
            try connection.execute("COMMIT")
        } catch {
            // It may have been rolled back already.
            _ = try? connection.execute("ROLLBACK")
            throw error
        }
    }
}
