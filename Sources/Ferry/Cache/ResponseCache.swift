import Dispatch
import FerryCache
import FerrySynchronization
import FerryTransport
import Glibc

/// The cache of an agent: the memory cache, and the store behind it.
final class ResponseCache: Sendable {
    /// Whether the entry of a key meets the requirements of a run.
    enum Verdict: Sendable {
        case fresh(StoredResponse, CacheTrace)
        /// It does, except that it has expired by this many microseconds.
        case stale(StoredResponse, past: Int64, CacheTrace)
        case miss(CacheMiss)
    }

    let applicationVersion: CacheDigest
    let counters = CacheCounters()
    let maxEntryBytes: Int
    let clock: @Sendable () -> CacheTime
    /// The prefix of the keys of HTTP responses: what is the same for all requests of the agent.
    let httpPrefix: HTTPCacheKey.Prefix
    private let invalidations = Invalidations()
    /// Removals of single entries by others that share the storage.
    private let removedByOthers = Invalidations()
    let recentStores = RecentStores()
    let validations = ValidationTable()
    /// Keys of responses that were fetched for all that share the storage, but could not be stored: nobody waits for
    /// them again.
    let unshared = UnsharedKeys()
    /// Held while a stored set of variants is changed, so that no change is lost.
    let changing = Mutex(())
    private let front: MemoryFront<StoredEntry>
    private let store: any CacheStorage
    /// Entries that are being refreshed after they were served stale.
    private let revalidating = Mutex(Set<VariantKey>())
    /// The maximum time of a lease; `nil` if nobody waits for others.
    let leaseTime: Duration?
    private let queued = QueuedWrites<StoredEntry>()
    /// Entries that are being removed from the disk, with counts: they are no longer found there.
    private let removing = Mutex<[CacheKey: Int]>([:])
    /// The last time when removals by others were checked.
    private let looked = Atomic<Int64>(0)

    init(_ configuration: CacheConfiguration, httpPrefix: HTTPCacheKey.Prefix = .init(any: [], publicOnly: [])) {
        self.httpPrefix = httpPrefix
        applicationVersion = configuration.applicationVersion.map { CacheDigest(of: $0) } ?? .none
        maxEntryBytes = min(max(configuration.maxEntryBytes, 0), CacheConfiguration.mostEntryBytes)
        clock = configuration.clock
        front = MemoryFront(maxBytes: max(configuration.memoryBytes, 0), findsByDigest: true)
        var options = CacheStoreOptions(directory: configuration.filteredDirectory)
        options.maxBytes = max(configuration.maxBytes, 1 << 16)
        options.maxQueuedBytes = max(configuration.maxQueuedBytes, 0)
        // The caller need not count the overhead of the record.
        options.maxEntryBytes = maxEntryBytes + 65_536
        options.patience = configuration.patience
        options.clock = configuration.clock
        store = configuration.storage?() ?? SQLiteCacheStore(options)
        leaseTime = store.leaseTime
    }

    // MARK: Reading

    /// Increases with every removal of this key, of a few others, and of all keys: an entry that was read before a
    /// removal may be the removed one.
    func removals(of key: CacheKey) -> UInt64 { front.removals(of: key) }

    /// Looks into memory; `nil` if it is not there.
    func recall(_ key: CacheKey) -> StoredResponse? {
        recallEntry(key)?.response
    }

    /// Looks into memory; `nil` if it is not there.
    func recallEntry(_ key: CacheKey) -> StoredEntry? {
        var removals: UInt64 = 0
        return recallEntry(key, &removals)
    }

    /// The same, and `removals(of:)` at this moment.
    @inline(__always)
    func recallEntry(_ key: CacheKey, _ removals: inout UInt64) -> StoredEntry? {
        guard let stored = front.value(for: key, &removals) else { return nil }
        return hearsNewRemovals() ? front.value(for: key, &removals) : stored
    }

    /// The same as `hearsRemovals`, once per tick of the system's clock: the check would be a tenth of the cost of a
    /// hit.
    private func hearsNewRemovals() -> Bool {
        let now = coarseTime()
        if looked.load(ordering: .relaxed) == now { return false }
        looked.store(now, ordering: .relaxed)
        return hearsRemovals()
    }

    /// Whether others have removed entries in the meantime, which are no longer in memory then.
    private func hearsRemovals() -> Bool {
        var hears = false
        store.hearRemovals { name in
            hears = true
            // What still waits to be written is found as soon as it is.
            if let digest = name.flatMap({ CacheDigest(hexadecimal: $0) }) {
                removedByOthers.note(digest)
                queued.forget(digest)
                front.remove(digest)
            } else {
                if name != nil { removedByOthers.noteAll() }
                queued.forget()
                front.removeAll()
            }
        }
        return hears
    }

    /// Whether other processes may have stored a newer entry than the one in memory.
    var isShared: Bool { store.isShared }

    // MARK: Invalidation

    /// The numbers of invalidations and of removals by others so far.
    struct InvalidationMark: Sendable {
        fileprivate var own: UInt64 = 0
        fileprivate var others: UInt64 = 0
        /// Of removals of unknown entries.
        fileprivate var unknown: UInt64 = 0
    }

    /// Read it before sending a request.
    var invalidationMark: InvalidationMark {
        _ = hearsNewRemovals()
        return InvalidationMark(
            own: invalidations.mark, others: removedByOthers.mark, unknown: store.removalsHeard)
    }

    /// Whether the response to a request that was sent after `mark` was read may be older than an invalidation, by this
    /// agent or by others that share the storage. Then it is not stored.
    func isInvalidated(_ key: CacheKey, since mark: InvalidationMark) -> Bool {
        _ = hearsNewRemovals()
        return store.removalsHeard != mark.unknown || invalidations.isNoted(key, since: mark.own)
            || removedByOthers.isNoted(key, since: mark.others)
    }

    /// Whether this agent itself has invalidated the key since `mark` was read; any key, if it is not known.
    func hasInvalidated(_ key: CacheKey?, since mark: InvalidationMark) -> Bool {
        key.map { invalidations.isNoted($0, since: mark.own) } ?? (invalidations.mark != mark.own)
    }

    /// Removes an entry that an unsafe request has invalidated (RFC 9111, 4.4), or that the application removes. A
    /// response that this agent has requested before is not stored.
    func invalidate(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)? = nil) {
        changing.withLock { _ in
            invalidations.note(key.digest)
            remove(key, done)
        }
    }

    /// Does the same with all entries.
    func invalidateAll(_ done: @escaping @Sendable (Bool) -> Void) {
        changing.withLock { _ in
            invalidations.noteAll()
            queued.forget()
            front.removeAll()
            store.removeAll { [front] isDone in
                front.removeAll()
                done(isDone)
            }
        }
    }

    /// Looks on disk. `done` is called once, on a thread of the store or before this returns.
    func load(_ key: CacheKey, _ done: @escaping @Sendable (StoredResponse?, CacheMiss) -> Void) {
        loadEntry(key) { entry, miss in
            done(entry?.response, miss)
        }
    }

    /// Looks on disk. `done` is called once, on a thread of the store or before this returns.
    func loadEntry(
        _ key: CacheKey, tries: Int = 8, _ done: @escaping @Sendable (StoredEntry?, CacheMiss) -> Void
    ) {
        let removals = front.removals(of: key)
        if let newest = queued.beginLookup(key) { return done(newest, .notFound) }
        store.read(key) { [self] finding in
            // The entry may have been read just before it was removed, or replaced.
            _ = hearsRemovals()
            let (newest, isOutdated) = queued.endLookup(key)
            if newest != nil || isOutdated { return done(newest, .notFound) }
            switch finding {
            case .missing(let reason): done(nil, CacheMiss(absence: reason))
            case .found(let entry):
                guard let stored = StoredEntry.read(entry) else { return done(nil, .corrupt) }
                if removing.withLock({ $0[key] != nil }) || tries == 0 { return done(nil, .notFound) }
                // The entry may have been removed since it was read from the disk.
                if front.removals(of: key) != removals { return loadEntry(key, tries: tries - 1, done) }
                front.insert(stored, for: key, bytes: stored.count + key.count, since: removals) {
                    $0.marks.stored < stored.marks.stored
                }
                done(stored, .notFound)
            }
        }
    }

    /// Notes that an entry was used.
    func used(_ stored: StoredEntry, under key: CacheKey, now: CacheTime) {
        if stored.isUsed(at: now) { store.touch(key) }
    }

    // MARK: Writing

    /// What is read before the request for a response with a time to live is sent.
    struct Sending: Sendable {
        let mark: InvalidationMark
        /// The number of the request in `recentStores`.
        let number: UInt64
        /// Whether the request was sent again later: then its number says nothing of the order.
        var wasRetried = false

        init(_ cache: ResponseCache) { (mark, number) = (cache.invalidationMark, cache.recentStores.next()) }
    }

    /// Stores a response, unless this agent has invalidated the key since its request was sent, or has stored the
    /// response to a later request. It is in memory when this returns. `done` is called once, when it is on disk or
    /// will not be. Without `sending`, it is newer than all others.
    func keep(
        _ kept: KeptResponse, under key: CacheKey, since sending: Sending? = nil,
        _ done: (@Sendable (Bool) -> Void)? = nil
    ) {
        let isKept = changing.withLock { _ in
            if let sending {
                if hasInvalidated(key, since: sending.mark) { return false }
                if !sending.wasRetried, recentStores.hasNewer(under: key, than: sending.number) { return false }
            }
            recentStores.note(key, sent: sending?.number ?? recentStores.next())
            front.insert(kept.stored, for: key, bytes: kept.stored.count + key.count)
            write(kept.stored, kept.entry, under: key, done)
            return true
        }
        if isKept { return }
        counters.refused(.invalidated)
        done?(false)
    }

    private func write(
        _ stored: StoredEntry, _ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?
    ) {
        queued.begin(stored, key)
        store.write(entry, under: key, isAwaited: done != nil) { [queued] isDone in
            queued.end(key)
            done?(isDone)
        }
    }

    /// Stores the variants of a URL. Without an entry only in memory: the disk stays unchanged.
    func keep(
        _ variants: StoredVariants, under key: CacheKey, _ entry: CacheEntry?,
        _ done: (@Sendable (Bool) -> Void)? = nil
    ) {
        front.insert(variants, for: key, bytes: variants.count + key.count)
        if let entry { write(variants, entry, under: key, done) } else { done?(true) }
    }

    func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)? = nil) {
        removing.withLock { $0[key, default: 0] += 1 }
        queued.forget(key)
        front.remove(key)
        store.remove(key) { [self] isDone in
            // Somebody may have read it from the disk in the meantime.
            front.remove(key)
            removing.withLock { $0[key] = $0[key].flatMap { $0 > 1 ? $0 - 1 : nil } }
            done?(isDone)
        }
    }

    /// Whether the caller is the one to refresh a stored response; then it has to report the end.
    func beginsRevalidating(_ key: VariantKey) -> Bool { revalidating.withLock { $0.insert(key).inserted } }
    func endRevalidating(_ key: VariantKey) { _ = revalidating.withLock { $0.remove(key) } }

    /// Requests the lease of an entry. `answer` receives `nil` if another run has it, usually in another process.
    func lease(_ key: CacheKey, _ answer: @escaping @Sendable (CacheLease?) -> Void) {
        let holder = CacheLease.nextHolder()
        store.lease(key, of: holder) { [store] in answer($0 ? CacheLease(store, key, holder) : nil) }
    }

    // MARK: The whole cache

    func statistics() async -> CacheStatistics {
        let size = await withCheckedContinuation { continuation in store.measure { continuation.resume(returning: $0) }
        }
        var statistics = counters.statistics
        statistics.add(store.counts)
        (statistics.entries, statistics.bytes) = (size.entries, size.bytes)
        (statistics.memoryEntries, statistics.memoryBytes) = (front.size.entries, front.size.bytes)
        return statistics
    }

    /// Waits until everything is written, but no longer than this: a shutdown must not wait for a disk that hangs. The
    /// store goes on in the background.
    func close(patience: DispatchTimeInterval = .seconds(10)) async {
        await withCheckedContinuation { continuation in
            let waiting = Waiting(continuation)
            DispatchQueue.global().asyncAfter(deadline: .now() + patience) { waiting.end() }
            // A store may close its files at once, which also takes time.
            DispatchQueue.global().async { [store] in store.close { waiting.end() } }
        }
    }

    /// A task that waits for one of two ends.
    private final class Waiting: Sendable {
        private let task: Mutex<CheckedContinuation<Void, Never>?>

        init(_ task: CheckedContinuation<Void, Never>) { self.task = Mutex(task) }

        func end() { task.withLock { $0.take() }?.resume() }
    }
}

/// Nanoseconds of a clock that advances with the system's ticks, usually every 4 ms, and is nearly free to read.
private func coarseTime() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now)
    return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
}

/// An entry in memory. A class, because this is cheaper to hold than an enum with two cases.
///
/// Sendable because it has only constants; what subclasses add is constant or atomic, too.
class StoredEntry: @unchecked Sendable {
    let marks: CacheEntry.Marks
    /// The approximate size in bytes.
    let count: Int
    private let use: EntryUse

    init(_ marks: CacheEntry.Marks, count: Int) {
        (self.marks, self.count) = (marks, count)
        use = EntryUse(marks.stored)
    }

    /// With a time to live.
    var response: StoredResponse? { nil }
    /// With RFC 9111.
    var variants: StoredVariants? { nil }

    /// Whether to tell the store that it was used; once in a while.
    final func isUsed(at now: CacheTime) -> Bool { use.isUsed(at: now) }

    /// Decodes an entry of the store; `nil` if a part of it is invalid.
    static func read(_ entry: CacheEntry) -> StoredEntry? {
        let format = entry.withAttributes { $0.first }
        return format == StoredVariants.format ? StoredVariants(entry) : StoredResponse(entry)
    }
}

/// The last time when the store was told that an entry was used.
final class EntryUse: Sendable {
    private let touched: Atomic<CacheTime>

    init(_ time: CacheTime) { touched = Atomic(time) }

    /// Whether to tell the store that it was used; once in a while.
    func isUsed(at now: CacheTime) -> Bool {
        let last = touched.load(ordering: .relaxed)
        let (age, overflow) = now.subtractingReportingOverflow(last)
        if !overflow && age.magnitude < UInt64(Self.touchTime) { return false }
        return touched.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
    }

    /// A minute, in microseconds.
    private static let touchTime: Int64 = 60_000_000
}

/// A response in the forms in which it is stored.
struct KeptResponse: Sendable {
    let stored: StoredResponse
    let entry: CacheEntry
}

/// A stored response in memory: hits share its head and body. Sendable for the same reason as its superclass.
final class StoredResponse: StoredEntry, @unchecked Sendable {
    let result: TransferResult
    let attributes: CacheAttributes

    init(_ result: TransferResult, _ marks: CacheEntry.Marks, _ attributes: CacheAttributes) {
        // Its size is that of body and head; an object that a run parses from it is held by the run.
        result.keepNothing()
        self.result = result
        self.attributes = attributes
        super.init(marks, count: Int(clamping: result.bodyLength) + Int(clamping: result.headBytesReceived) + 1024)
    }

    override var response: StoredResponse? { self }

    /// `nil` if a part of it is invalid.
    convenience init?(_ entry: CacheEntry) {
        guard let attributes = entry.withAttributes({ CacheAttributes($0) }),
            let result = entry.withHead({ head in
                entry.withBody { try? TransferResult(id: 1, head: head, body: $0) }
            })
        else { return nil }
        self.init(result, entry.marks, attributes)
    }
}
