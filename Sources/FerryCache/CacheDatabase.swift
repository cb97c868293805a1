internal import Glibc

/// A connection to the database of a store, with the schema looked at.
struct CacheDatabase: ~Copyable {
    let connection: SQLiteConnection
    let inode: UInt64
    let epoch: Int

    /// `Fery`, by which databases of ours are known (PRAGMA application_id).
    private static let application = 0x4665_7279

    /// Rows stand in the order of their last use: new ones are appended, which moves no other, and what is evicted
    /// first stands first. They are found by the first bytes of their key's digest: as a blob, since of two integers
    /// SQLite does not look whether they stand within their record, and where that is damaged it compares what stands
    /// behind the page, which is something else for each connection.
    private static let schema = [
        "CREATE TABLE entries(used INTEGER PRIMARY KEY, key BLOB NOT NULL, record BLOB NOT NULL)",
        "CREATE UNIQUE INDEX keys ON entries(key)",
    ]

    init(path: String, isNew: Bool, inode: UInt64, epoch: Int, patience: Int64) throws(CacheFault) {
        let connection = try SQLiteConnection(path: path)
        connection.setPatience(patience)
        if !isNew { try Self.check(connection, path) }
        // Both last for the file. A new one must say so before its first page is written.
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
        // Its header has a version for writing, and SQLite only reads what a later one than its own has written.
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
