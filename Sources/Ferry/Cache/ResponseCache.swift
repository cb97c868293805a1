import Dispatch
import FerryCache
import FerryTransport
import Glibc
import Synchronization

/// The cache of an agent: a front in memory, and the store behind it.
final class ResponseCache: Sendable {
    /// What a key has, measured by the terms of a run.
    enum Verdict: Sendable {
        case fresh(StoredResponse, CacheTrace)
        /// It agrees but for its time, which is over by so many microseconds.
        case stale(StoredResponse, past: Int64, CacheTrace)
        case miss(CacheMiss)
    }

    let applicationVersion: CacheDigest
    let counters = CacheCounters()
    let maxEntryBytes: Int
    let clock: @Sendable () -> CacheTime
    private let front: MemoryFront<StoredResponse>
    private let store: any CacheStore
    /// Of entries that are fetched anew behind an answer that is past its time.
    private let revalidating = Mutex(Set<CacheKey>())
    /// Of entries that are being removed from the disk, and how often: nobody finds them there any more.
    private let removing = Mutex<[CacheKey: Int]>([:])
    /// When the removals of others were looked for last.
    private let looked = Atomic<Int64>(0)

    init(_ configuration: CacheConfiguration) {
        applicationVersion = configuration.applicationVersion.map { CacheDigest(of: $0) } ?? .none
        maxEntryBytes = min(max(configuration.maxEntryBytes, 0), CacheConfiguration.mostEntryBytes)
        clock = configuration.clock
        front = MemoryFront(maxBytes: max(configuration.memoryBytes, 0))
        var options = CacheStoreOptions(directory: configuration.filteredDirectory)
        options.maxBytes = max(configuration.maxBytes, 1 << 16)
        options.maxQueuedBytes = max(configuration.maxQueuedBytes, 0)
        // What the record has around the answer is not the caller's to reckon with.
        options.maxEntryBytes = maxEntryBytes + 65_536
        options.patience = configuration.patience
        options.clock = configuration.clock
        store = SQLiteCacheStore(options)
    }

    // MARK: Reading

    /// From memory; `nil` when it is not there.
    func recall(_ key: CacheKey) -> StoredResponse? {
        guard let stored = front.value(for: key) else { return nil }
        // The look would be a tenth of the cost of a hit: once each tick of the system's clock is soon enough.
        let now = coarseTime()
        if looked.load(ordering: .relaxed) == now { return stored }
        looked.store(now, ordering: .relaxed)
        return hearsRemovals() ? nil : stored
    }

    /// Whether others have removed entries meanwhile: then nothing is in memory any more.
    private func hearsRemovals() -> Bool {
        var hears = false
        store.hearRemovals {
            front.removeAll()
            hears = true
        }
        return hears
    }

    /// From the disk; `done` is called once, on a thread of the store's.
    func load(
        _ key: CacheKey, tries: Int = 8, _ done: @escaping @Sendable (StoredResponse?, CacheMiss) -> Void
    ) {
        let removals = front.removals
        store.read(key) { [self] finding in
            switch finding {
            case .missing(let reason): done(nil, CacheMiss(reason))
            case .found(let entry):
                guard let stored = StoredResponse(entry) else { return done(nil, .corrupt) }
                if removing.withLock({ $0[key] != nil }) || tries == 0 { return done(nil, .notFound) }
                // It may have been this one, and be gone from the disk since it was read there.
                if front.removals != removals { return load(key, tries: tries - 1, done) }
                // It may have been read just before it was removed.
                _ = hearsRemovals()
                front.insert(stored, for: key, bytes: stored.count, since: removals) {
                    $0.marks.stored < stored.marks.stored
                }
                done(stored, .notFound)
            }
        }
    }

    /// Notes that an entry was of use.
    func used(_ stored: StoredResponse, under key: CacheKey, now: CacheTime) {
        if stored.isUsed(at: now) { store.touch(key) }
    }

    // MARK: Writing

    /// Keeps an answer. In memory it is there when this returns; `done` is called once when it is on the disk, or is
    /// not going to be.
    func keep(_ kept: KeptResponse, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)? = nil) {
        front.insert(kept.stored, for: key, bytes: kept.stored.count)
        store.write(kept.entry, under: key, done)
    }

    func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)? = nil) {
        removing.withLock { $0[key, default: 0] += 1 }
        front.remove(key)
        store.remove(key) { [self] isDone in
            // Somebody may have read it from the disk meanwhile.
            front.remove(key)
            removing.withLock { $0[key] = $0[key].flatMap { $0 > 1 ? $0 - 1 : nil } }
            done?(isDone)
        }
    }

    func removeAll(_ done: @escaping @Sendable (Bool) -> Void) {
        front.removeAll()
        store.removeAll { [front] isDone in
            front.removeAll()
            done(isDone)
        }
    }

    /// Whether the caller is the one to fetch an entry anew; then it says when that is over.
    func beginsRevalidating(_ key: CacheKey) -> Bool { revalidating.withLock { $0.insert(key).inserted } }
    func endRevalidating(_ key: CacheKey) { _ = revalidating.withLock { $0.remove(key) } }

    // MARK: All of it

    func statistics() async -> CacheStatistics {
        let size = await withCheckedContinuation { continuation in store.measure { continuation.resume(returning: $0) }
        }
        var statistics = counters.statistics
        statistics.add(store.counts)
        (statistics.entries, statistics.bytes) = (size.entries, size.bytes)
        (statistics.memoryEntries, statistics.memoryBytes) = (front.size.entries, front.size.bytes)
        return statistics
    }

    /// Writes what waits.
    func close() async {
        await withCheckedContinuation { continuation in store.close { continuation.resume() } }
    }
}

/// Nanoseconds of a clock that moves with the system's ticks, every 4 ms as a rule, and costs next to nothing.
private func coarseTime() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now)
    return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
}

/// An answer in the forms in which it is kept.
struct KeptResponse: Sendable {
    let stored: StoredResponse
    let entry: CacheEntry
}
