import Dispatch
import FerrySynchronization
internal import Glibc

/// A connection that reads. The pool ensures that one thread at a time uses it, which makes it Sendable.
final class CacheReader: @unchecked Sendable {
    /// The parts of an open connection.
    private final class Session {
        let database: CacheDatabase
        private let find: SQLiteStatement
        private let begin: SQLiteStatement
        private let end: SQLiteStatement

        init(_ database: consuming CacheDatabase, pageCache: Int) throws(CacheFault) {
            try database.connection.execute("PRAGMA query_only=ON; PRAGMA cache_size=-\(pageCache / 1024)")
            // A reader waits only for a process that is recovering the log.
            database.connection.setPatience(500_000)
            find = try database.connection.prepare("SELECT used, record FROM entries WHERE key=?1")
            begin = try database.connection.prepare("BEGIN")
            end = try database.connection.prepare("COMMIT")
            self.database = database
        }

        func each<C: Collection<CacheDigest>>(
            _ keys: C, _ found: (Int, CacheFinding, _ used: CacheTime) -> Void
        ) throws(CacheFault) {
            // One check of the database's locks for all of them.
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
        // Holds most of the index of a large database: with four times as much, a hit among a million entries costs a
        // seventh less. The memory is allocated as pages are read.
        pageCache = min(max(options.maxBytes / 128, 8 << 20), 32 << 20)
        self.files = files
        self.counter = counter
        self.gate = gate
    }

    /// Looks up all of them; entries that cannot be read are `unavailable`.
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
        // A process that holds the database normally releases it soon. One that never lets us in may be stopped.
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

/// A few connections for all readers: lookups wait in one queue, and a connection takes all that are in it.
final class CacheReaderPool: Sendable {
    struct Lookup: Sendable {
        let key: CacheKey
        let answer: @Sendable (CacheFinding) -> Void
    }

    private struct State {
        var waiting: [Lookup] = []
        /// When lookups were taken last, or began to wait.
        var lastTaken = ContinuousClock.now
        var idle: [CacheReader]
        /// A timer will check whether the lookups are held up.
        var isWatched = false
        var isClosed = false
        /// Called when the last reader has returned.
        var closing: [@Sendable () -> Void] = []

        /// Whether the disk hangs, and enough lookups wait for it.
        var isHungUp: Bool {
            waiting.count >= mostWaiting && lastTaken.duration(to: .now) > longestWait
        }

        /// The readers to close when all have returned after a close, and the closures to call then.
        mutating func endings(of count: Int) -> (readers: [CacheReader], closing: [@Sendable () -> Void])? {
            guard isClosed, idle.count == count, !closing.isEmpty else { return nil }
            defer { closing = [] }
            return (idle, closing)
        }
    }

    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "ferry.cache.reading", attributes: .concurrent)
    private let count: Int
    /// Receives what the readers found, in addition to the caller.
    private let note: @Sendable (CacheDigest, CacheFinding, _ used: CacheTime) -> Void

    /// The number of lookups taken at once, so that some are left for other readers.
    private static let most = 64
    /// Only more lookups than this justify waking a second connection.
    private static let few = 8
    /// If so many wait, and none was taken for this long, further lookups are answered at once: a disk that hangs must
    /// not collect them.
    private static let (mostWaiting, longestWait): (Int, Duration) = (10_000, .seconds(2))
    /// Or if the first has been busy for this long: the disk or another process may hold it up.
    private static let patience = DispatchTimeInterval.milliseconds(10)

    init(
        _ readers: [CacheReader], note: @escaping @Sendable (CacheDigest, CacheFinding, _ used: CacheTime) -> Void
    ) {
        count = readers.count
        state = Mutex(State(idle: readers))
        self.note = note
    }

    func read(_ lookup: Lookup) {
        enum Action {
            case refuse
            case wake(CacheReader)
            case watch
            case none
        }
        let action = state.withLock { state -> Action in
            if state.isClosed || state.isHungUp { return .refuse }
            if state.waiting.isEmpty { state.lastTaken = .now }
            state.waiting.append(lookup)
            let isNeeded = state.idle.count == count || state.waiting.count > Self.few
            if isNeeded, let reader = state.idle.popLast() { return .wake(reader) }
            if state.idle.isEmpty || state.isWatched { return .none }
            state.isWatched = true
            return .watch
        }
        switch action {
        case .refuse: lookup.answer(.missing(.unavailable))
        case .wake(let reader): queue.async { self.work(reader) }
        case .watch: queue.asyncAfter(deadline: .now() + Self.patience) { self.look() }
        case .none: break
        }
    }

    /// Wakes another reader for the lookups that still wait.
    private func look() {
        let reader = state.withLock { state in
            state.isWatched = false
            return state.waiting.isEmpty ? nil : state.idle.popLast()
        }
        if let reader { work(reader) }
    }

    private func work(_ reader: CacheReader) {
        while let lookups = take(for: reader) {
            let keys = lookups.map(\.key.digest)
            for (index, found) in reader.find(keys).enumerated() {
                note(keys[index], found.finding, found.used)
                lookups[index].answer(found.finding)
            }
        }
    }

    /// The next lookups; `nil` if there are none, and the reader becomes idle.
    private func take(for reader: CacheReader) -> [Lookup]? {
        let (lookups, endings) = state.withLock { state in
            if !state.waiting.isEmpty {
                let lookups = Array(state.waiting.prefix(Self.most))
                state.waiting.removeFirst(lookups.count)
                state.lastTaken = .now
                return (lookups as [Lookup]?, nil as (readers: [CacheReader], closing: [@Sendable () -> Void])?)
            }
            state.idle.append(reader)
            return (nil, state.endings(of: count))
        }
        end(endings)
        return lookups
    }

    /// The last connection that closes may copy much of the database's log.
    private func end(_ endings: (readers: [CacheReader], closing: [@Sendable () -> Void])?) {
        guard let endings else { return }
        queue.async(flags: .barrier) {
            for reader in endings.readers { reader.close() }
            for close in endings.closing { close() }
        }
    }

    /// Ends the waiting lookups and closes the connections. May be called several times.
    func close(_ done: @escaping @Sendable () -> Void) {
        let endings = state.withLock { state in
            state.isClosed = true
            state.closing.append(done)
            return state.endings(of: count)
        }
        end(endings)
    }
}
