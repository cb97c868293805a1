internal import Glibc

/// One of the connections that read. Used by one thread at a time: the pool sees to that, and it is what makes it
/// Sendable.
final class CacheReader: @unchecked Sendable {
    /// What an open connection consists of.
    private final class Session {
        let database: CacheDatabase
        private let find: SQLiteStatement
        private let begin: SQLiteStatement
        private let end: SQLiteStatement

        init(_ database: consuming CacheDatabase, pageCache: Int) throws(CacheFault) {
            try database.connection.execute("PRAGMA query_only=ON; PRAGMA cache_size=-\(pageCache / 1024)")
            // A reader waits for nobody but one who recovers the log.
            database.connection.setPatience(500_000)
            find = try database.connection.prepare("SELECT used, record FROM entries WHERE key=?1")
            begin = try database.connection.prepare("BEGIN")
            end = try database.connection.prepare("COMMIT")
            self.database = database
        }

        func each<C: Collection<CacheDigest>>(
            _ keys: C, _ found: (Int, CacheFinding, _ used: CacheTime) -> Void
        ) throws(CacheFault) {
            // One look at the locks of the database for all of them.
            if keys.count > 1 { try begin.run() }
            defer { if keys.count > 1 { _ = try? end.run() } }
            for (index, key) in keys.enumerated() {
                defer { find.reset() }
                try find.bind(bytesOf: key.number, at: 1)
                if try find.step() {
                    found(index, finding(key), find.number(0))
                } else {
                    found(index, .missing(.notFound), 0)
                }
            }
        }

        private func finding(_ key: CacheDigest) -> CacheFinding {
            guard let entry = find.withBytes(1, { CacheEntry(record: $0, row: key.number) }) else {
                return .missing(.corrupt)
            }
            // Another key may have the same number.
            return entry.key == key ? .found(entry) : .missing(.notFound)
        }
    }

    private let files: CacheFiles
    private let counter: CacheCounter
    private let gate: DiskGate
    private let pageCache: Int
    private var session: Session?

    init(_ files: CacheFiles, _ options: CacheStoreOptions, _ counter: CacheCounter, _ gate: DiskGate) {
        // Most of the index of a large database: a hit among a million entries costs a seventh less with four times as
        // much. It is taken as pages are read.
        pageCache = min(max(options.maxBytes / 128, 8 << 20), 32 << 20)
        self.files = files
        self.counter = counter
        self.gate = gate
    }

    /// Looks all of them up; what cannot be read is `unavailable`.
    func find(_ keys: [CacheDigest]) -> [(finding: CacheFinding, used: CacheTime)] {
        var findings = Array(
            repeating: (finding: CacheFinding.missing(.unavailable), used: CacheTime(0)), count: keys.count)
        guard gate.isOpen else { return findings }
        do throws(CacheFault) {
            try opened().each(keys) { findings[$0] = ($1, $2) }
        } catch {
            failed(error)
        }
        return findings
    }

    private func opened() throws(CacheFault) -> Session {
        if let session, session.database.epoch == files.epoch { return session }
        session = nil
        var wasPutAside = false
        defer { if wasPutAside { counter.count { $0.putAside += 1 } } }
        let made = try Session(files.open(wasPutAside: &wasPutAside), pageCache: pageCache)
        session = made
        return made
    }

    private func failed(_ fault: CacheFault) {
        counter.count(fault)
        // Another process that is in the way goes out of it. One that does not let us in at all may be stopped.
        if fault.kind == .busy && session != nil { return }
        let inode = session?.database.inode
        session = nil
        guard fault.condemns, let inode else { return gate.shut() }
        do throws(CacheFault) {
            if try files.condemn(inode: inode) { counter.count { $0.putAside += 1 } }
        } catch {
            counter.count(error)
            gate.shut()
        }
    }

    func close() { session = nil }
}
