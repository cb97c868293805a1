/// The connection that writes. It is used on the writing queue only, which makes it Sendable.
final class CacheWriter: @unchecked Sendable {
    enum Operation: Sendable {
        case put(CacheEntry, CacheKey)
        case remove(CacheDigest)
        case removeAll
        /// Removes an entry whose replacement was not written.
        case outdate(CacheDigest)

        /// Whether other processes must be told that entries were removed.
        var removes: Bool {
            switch self {
            case .put, .outdate: false
            case .remove, .removeAll: true
            }
        }

        /// The key of a single removed entry.
        var removedKey: CacheDigest? { if case .remove(let key) = self { key } else { nil } }
    }

    /// An open connection and its statements.
    private final class Session {
        let database: CacheDatabase
        let begin: SQLiteStatement
        let end: SQLiteStatement
        let put: SQLiteStatement
        let find: SQLiteStatement
        let remove: SQLiteStatement
        let touch: SQLiteStatement
        let oldest: SQLiteStatement
        let evict: SQLiteStatement
        let newest: SQLiteStatement
        let pages: SQLiteStatement
        let freePages: SQLiteStatement
        let pageSize: Int

        init(_ database: consuming CacheDatabase) throws(CacheFault) {
            // More frames between two checkpoints than SQLite's default, so that pages that are written often go to the
            // database once. A log that has grown beyond that is truncated.
            try database.connection.execute(
                "PRAGMA cache_size=-16000; PRAGMA wal_autocheckpoint=4000; PRAGMA journal_size_limit=33554432")
            begin = try database.connection.prepare("BEGIN IMMEDIATE")
            end = try database.connection.prepare("COMMIT")
            put = try database.connection.prepare(
                "INSERT OR REPLACE INTO entries(key, used, record) VALUES(?1, ?2, ?3)")
            find = try database.connection.prepare("SELECT used FROM entries WHERE key=?1")
            remove = try database.connection.prepare("DELETE FROM entries WHERE key=?1")
            touch = try database.connection.prepare("UPDATE OR REPLACE entries SET used=?2 WHERE key=?1")
            oldest = try database.connection.prepare("SELECT length(record) FROM entries ORDER BY used LIMIT 256")
            evict = try database.connection.prepare(
                "DELETE FROM entries WHERE used IN (SELECT used FROM entries ORDER BY used LIMIT ?1)")
            newest = try database.connection.prepare("SELECT max(used) FROM entries")
            pages = try database.connection.prepare("PRAGMA page_count")
            freePages = try database.connection.prepare("PRAGMA freelist_count")
            pageSize = Int(try database.connection.number("PRAGMA page_size") ?? 4096)
            self.database = database
        }

        /// The bytes in use in the file, including the changes of this transaction.
        func liveBytes() throws(CacheFault) -> Int {
            defer {
                pages.reset()
                freePages.reset()
            }
            guard try pages.step(), try freePages.step() else { return 0 }
            return Int(pages.number(0) - freePages.number(0)) * pageSize
        }
    }

    private let files: CacheFiles
    private let options: CacheStoreOptions
    private let counter: CacheCounter
    private let gate: DiskGate
    private var session: Session?
    private var lastUse: CacheTime = 0
    private var lastLook: CacheTime = 0
    private var isClosed = false

    init(_ files: CacheFiles, _ options: CacheStoreOptions, _ counter: CacheCounter, _ gate: DiskGate) {
        self.files = files
        self.options = options
        self.counter = counter
        self.gate = gate
    }

    /// Whether the disk is used at the moment.
    var mayWrite: Bool { !isClosed && gate.isOpen }

    /// Executes all operations in one transaction, or none. Returns whether they were executed.
    func write(_ operations: [Operation], touched: [CacheDigest], despiteGate: Bool = false) -> Bool {
        guard mayWrite || (despiteGate && !isClosed) else { return false }
        do throws(CacheFault) {
            try transact(operations, touched)
            return true
        } catch {
            return failed(error) && retry(operations, touched)
        }
    }

    /// Tries again, with a new database if this one is damaged, or after another process was in the way.
    private func retry(_ operations: [Operation], _ touched: [CacheDigest]) -> Bool {
        do throws(CacheFault) {
            try transact(operations, touched)
            return true
        } catch {
            _ = failed(error)
            gate.shut()
            return false
        }
    }

    private func transact(_ operations: [Operation], _ touched: [CacheDigest]) throws(CacheFault) {
        let session = try opened()
        try session.begin.run()
        var evicted: UInt64 = 0
        do throws(CacheFault) {
            try catchUp(session)
            for key in touched { try touch(key, session) }
            for operation in operations { try perform(operation, session) }
            evicted = try makeRoom(session)
            try session.end.run()
        } catch {
            // After some errors SQLite has done so itself.
            _ = try? session.database.connection.execute("ROLLBACK")
            throw error
        }
        // Only now, when the entries can no longer be found on disk.
        let removals = operations.filter(\.removes)
        if !removals.isEmpty { files.removals.add(removals.map(\.removedKey)) }
        if evicted > 0 { counter.count { $0.evicted += evicted } }
    }

    private func perform(_ operation: Operation, _ session: Session) throws(CacheFault) {
        switch operation {
        case .put(let entry, let key): try put(entry, under: key.digest, session)
        case .remove(let key), .outdate(let key):
            try session.remove.bind(bytesOf: key.number, at: 1)
            try session.remove.run()
        case .removeAll: try session.database.connection.execute("DELETE FROM entries")
        }
    }

    private func put(_ entry: CacheEntry, under key: CacheDigest, _ session: Session) throws(CacheFault) {
        let use = nextUse()
        try session.put.bind(bytesOf: key.number, at: 1)
        try session.put.bind(use, at: 2)
        let record = entry.sealed(under: key)
        let result = record.withUnsafeBytes { bytes -> Result<Void, CacheFault> in
            Result { () throws(CacheFault) in
                try session.put.bind(bytes, at: 3)
                try session.put.run()
            }
        }
        try result.get()
        // If the index is damaged, the row that this one replaces may remain, and be found, beside it.
        defer { session.find.reset() }
        try session.find.bind(bytesOf: key.number, at: 1)
        guard try session.find.step(), session.find.number(0) == use else {
            throw CacheFault(.damaged, "what was written is not what is found")
        }
    }

    private func touch(_ key: CacheDigest, _ session: Session) throws(CacheFault) {
        try session.touch.bind(bytesOf: key.number, at: 1)
        try session.touch.bind(nextUse(), at: 2)
        try session.touch.run()
    }

    /// Uses are numbered from the last one that any process has noted. The clock may have been set back since, but an
    /// entry used now must still be evicted last. No other process writes until the end of the transaction.
    private func catchUp(_ session: Session) throws(CacheFault) {
        defer { session.newest.reset() }
        guard try session.newest.step() else { return }
        let newest = session.newest.number(0)
        // No clock has ever been there.
        if newest > .max / 2 { throw CacheFault(.damaged, "a use in a far future") }
        lastUse = max(lastUse, newest)
    }

    /// The time, but never the same twice, as it is the number of a row.
    private func nextUse() -> CacheTime {
        lastUse = max(lastUse + 1, options.clock())
        return lastUse
    }

    /// Evicts entries until the file is within its limit, and a little more, so that not every transaction has to
    /// evict.
    private func makeRoom(_ session: Session) throws(CacheFault) -> UInt64 {
        var live = try session.liveBytes()
        if live <= options.maxBytes { return 0 }
        let aim = options.maxBytes - options.maxBytes / 64
        var evicted: UInt64 = 0
        while live > aim {
            try session.evict.bind(countOfOldest(live - aim, session), at: 1)
            try session.evict.run()
            let gone = session.database.connection.changes
            if gone == 0 { break }
            evicted += UInt64(gone)
            live = try session.liveBytes()
        }
        return evicted
    }

    /// How many of the oldest entries have so many bytes together; at least one, and at most 256.
    private func countOfOldest(_ bytes: Int, _ session: Session) throws(CacheFault) -> Int64 {
        defer { session.oldest.reset() }
        var (count, sum): (Int64, Int64) = (0, 0)
        while sum < bytes, try session.oldest.step() {
            count += 1
            sum += session.oldest.number(0)
        }
        return max(count, 1)
    }

    /// Returns the space of removed entries to the disk, if no other process is in the way.
    func compact() {
        guard gate.isOpen, let session else { return }
        _ = try? session.database.connection.execute("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
    }

    func measure() -> CacheSize {
        var size = CacheSize()
        guard !isClosed, gate.isOpen else { return size }
        do throws(CacheFault) {
            let session = try opened()
            size.entries = Int(try session.database.connection.number("SELECT count(*) FROM entries") ?? 0)
            size.bytes = try session.liveBytes()
        } catch {
            _ = failed(error)
        }
        return size
    }

    /// Closes the connection for good.
    func close() {
        session = nil
        isClosed = true
    }

    // MARK: The connection

    private func opened() throws(CacheFault) -> Session {
        if let session, session.database.epoch == files.epoch, isCurrent(session) { return session }
        session = nil
        var wasPutAside = false
        defer { if wasPutAside { counter.count { $0.putAside += 1 } } }
        let made = try Session(files.open(wasPutAside: &wasPutAside))
        session = made
        return made
    }

    /// Checks once a second whether the file is still the current one.
    private func isCurrent(_ session: Session) -> Bool {
        let now = options.clock()
        if abs(now - lastLook) < 1_000_000 { return true }
        lastLook = now
        return files.isCurrent(inode: session.database.inode)
    }

    /// Handles an error; returns whether the operation may be tried again.
    private func failed(_ fault: CacheFault) -> Bool {
        counter.count(fault)
        // A process that holds the database normally releases it soon. One that never lets us in may be stopped.
        if fault.kind == .busy && session != nil { return true }
        let inode = session?.database.inode
        session = nil
        guard fault.condemns, let inode else {
            gate.shut()
            return false
        }
        do throws(CacheFault) {
            if try files.condemn(inode: inode) { counter.count { $0.putAside += 1 } }
            return true
        } catch {
            counter.count(error)
            gate.shut()
            return false
        }
    }
}
