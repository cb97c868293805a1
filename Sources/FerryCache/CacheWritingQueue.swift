import Dispatch
import FerrySynchronization

/// The cache writing queue: accepts jobs up to a number of bytes, and writes those that wait in one transaction.
final class CacheWritingQueue: Sendable {
    private struct Job: Sendable {
        let operation: CacheWriter.Operation
        let bytes: Int
        let done: (@Sendable (Bool) -> Void)?
    }

    private struct State {
        var jobs: [Job] = []
        /// The bytes of the jobs that wait or are being written.
        var bytes = 0
        var touched: Set<CacheDigest> = []
        /// Entries whose replacement was not accepted: they must not be found any more.
        var outdated: Set<CacheDigest> = []
        /// Those that are being removed.
        var leaving: Set<CacheDigest> = []
        /// How soon the jobs will be looked at.
        var haste = Haste.none
        var isClosed = false

        /// Whether the queue must be woken: it is not scheduled yet, or not soon enough.
        mutating func wakes(_ haste: Haste) -> Bool {
            if self.haste >= haste { return false }
            self.haste = haste
            return true
        }
    }

    /// How soon the waiting jobs must be written.
    private enum Haste: Int, Comparable {
        case none
        /// Uses of entries only.
        case touches
        /// Nobody waits for them: more jobs may be collected first.
        case gathering
        case now

        static func < (left: Haste, right: Haste) -> Bool { left.rawValue < right.rawValue }
    }

    private let state = Mutex(State())
    /// Whether there are outdated entries: while there are none, lookups need no lock.
    private let hasOutdated = Atomic<Bool>(false)
    private let queue = DispatchQueue(label: "ferry.cache.writing")
    private let writer: CacheWriter
    private let options: CacheStoreOptions
    private let counter: CacheCounter
    private let owed = OwedRemovals()
    /// Whether a timer will repeat the owed removals. Used on the queue only.
    private let isRepeating = Atomic<Bool>(false)

    /// The maximum number of jobs in one transaction.
    private static let mostJobs = 1024
    private static let mostBytes = 8 << 20
    /// The maximum number of noted uses that are kept for the next transaction. A lost one makes an entry look older
    /// than it is.
    private static let mostTouched = 4096
    /// The maximum number of outdated entries that are remembered. Further ones stay until they expire.
    private static let mostOutdated = 10_000

    init(_ writer: CacheWriter, _ options: CacheStoreOptions, _ counter: CacheCounter) {
        self.writer = writer
        self.options = options
        self.counter = counter
    }

    var queuedBytes: Int { state.withLock { $0.bytes } }

    func write(_ entry: CacheEntry, under key: CacheKey, isAwaited: Bool, _ done: (@Sendable (Bool) -> Void)?) {
        if entry.count > options.maxEntryBytes {
            counter.count { $0.refused += 1 }
            outdate(key.digest)
            done?(false)
        } else if !submit(
            Job(operation: .put(entry, key), bytes: entry.count + key.count, done: done), isAwaited: isAwaited)
        {
            counter.count { $0.dropped += 1 }
            outdate(key.digest)
            done?(false)
        }
    }

    /// Removes an entry whose replacement is not written, without the other processes: they keep what they have in
    /// memory, as after any replacement.
    private func outdate(_ key: CacheDigest) {
        let wakes = state.withLock { state in
            if state.isClosed || state.outdated.count >= Self.mostOutdated { return false }
            hasOutdated.store(true, ordering: .releasing)
            return state.outdated.insert(key).inserted && state.wakes(.gathering)
        }
        if wakes { wake(.gathering) }
    }

    func remove(_ key: CacheDigest, _ done: (@Sendable (Bool) -> Void)?) {
        if !submit(Job(operation: .remove(key), bytes: 0, done: done)) { done?(false) }
    }

    func removeAll(_ done: (@Sendable (Bool) -> Void)?) {
        if !submit(Job(operation: .removeAll, bytes: 0, done: done)) { done?(false) }
    }

    /// Whether a removal of this key has failed and is still to be repeated.
    func owesRemoval(of key: CacheDigest) -> Bool { owed.contains(key) }

    /// Whether the entry must not be used because a newer one was not written.
    func isOutdated(_ key: CacheDigest) -> Bool {
        // In the order in which a key passes through them.
        if hasOutdated.load(ordering: .acquiring),
            state.withLock({ $0.outdated.contains(key) || $0.leaving.contains(key) })
        {
            return true
        }
        return owed.isOutdated(key)
    }

    func touch(_ key: CacheDigest) {
        let isNew = state.withLock { state in
            if state.isClosed || state.touched.count >= Self.mostTouched { return false }
            return state.touched.insert(key).inserted && state.wakes(.touches)
        }
        if isNew { wake(.touches) }
    }

    func measure(_ answer: @escaping @Sendable (CacheSize) -> Void) {
        queue.async { answer(self.writer.measure()) }
    }

    /// Returns `false` if there is no room, or if the queue is closed.
    private func submit(_ job: Job, isAwaited: Bool? = nil) -> Bool {
        let (isTaken, haste) = state.withLock { state -> (Bool, Haste) in
            if state.isClosed { return (false, .none) }
            // A job larger than the limit is accepted if the queue is empty.
            let isFull = state.bytes > 0 && state.bytes + job.bytes > options.maxQueuedBytes
            if job.bytes > 0 && isFull { return (false, .none) }
            state.jobs.append(job)
            state.bytes += job.bytes
            // It replaces the outdated entry.
            if case .put(_, let key) = job.operation, !state.outdated.isEmpty { state.outdated.remove(key.digest) }
            // Enough for a transaction: do not wait for more.
            let isMuch = state.bytes >= min(Self.mostBytes, options.maxQueuedBytes / 2)
            let haste = isAwaited ?? (job.done != nil) || isMuch ? Haste.now : .gathering
            return (true, state.wakes(haste) ? haste : .none)
        }
        wake(haste)
        return isTaken
    }

    private func wake(_ haste: Haste) {
        let microseconds: Int64
        switch haste {
        case .none: return
        case .now: return queue.async { self.work() }
        case .gathering: microseconds = options.gatheringTime
        case .touches: microseconds = max(options.gatheringTime, options.touchTime / 8)
        }
        queue.asyncAfter(deadline: .now() + .microseconds(Int(microseconds))) { self.work() }
    }

    private func work() {
        dispatchPrecondition(condition: .onQueue(queue))
        repeatRemovals()
        while let (jobs, touched, outdated) = take() {
            let operations = jobs.map(\.operation) + outdated.map { .outdate($0) }
            let isDone = write(operations, touched)
            let puts = UInt64(jobs.count { if case .put = $0.operation { true } else { false } })
            counter.count { if isDone { $0.written += puts } else { $0.failed += puts } }
            let bytes = jobs.reduce(0) { $0 + $1.bytes }
            state.withLock { state in
                state.bytes -= bytes
                state.leaving = []
                hasOutdated.store(!state.outdated.isEmpty, ordering: .releasing)
            }
            for job in jobs { job.done?(isDone) }
            repeatRemovals()
        }
        repeatLater()
    }

    /// Writes the operations, behind the removals that have failed. Those may be owed although the disk is used again:
    /// this is decided here, once.
    private func write(_ operations: [CacheWriter.Operation], _ touched: [CacheDigest]) -> Bool {
        let isOpen = writer.mayWrite
        let all = (isOpen ? owed.operations : []) + operations
        guard isOpen, writer.write(all, touched: touched) else {
            owed.add(operations)
            return false
        }
        owed.pay()
        compact(after: all)
        return true
    }

    /// Writes the removals that have failed.
    private func repeatRemovals(isLast: Bool = false) {
        if owed.isEmpty || !(isLast || writer.mayWrite) { return }
        let operations = owed.operations
        guard writer.write(operations, touched: [], despiteGate: isLast) else { return }
        owed.pay()
        compact(after: operations)
    }

    /// Repeats the removals when the disk is used again, also if there is nothing else to write by then.
    private func repeatLater() {
        if owed.isEmpty || state.withLock({ $0.isClosed }) { return }
        if isRepeating.exchange(true, ordering: .relaxed) { return }
        // A little later than the gate opens.
        let microseconds = Int(max(options.disabledTime, 0)) + 10_000
        queue.asyncAfter(deadline: .now() + .microseconds(microseconds)) { [weak self] in
            self?.isRepeating.store(false, ordering: .relaxed)
            self?.work()
        }
    }

    private func compact(after operations: [CacheWriter.Operation]) {
        if operations.contains(where: { if case .removeAll = $0 { true } else { false } }) { writer.compact() }
    }

    private func take() -> ([Job], touched: [CacheDigest], outdated: [CacheDigest])? {
        state.withLock { state in
            if state.jobs.isEmpty && state.touched.isEmpty && state.outdated.isEmpty {
                state.haste = .none
                return nil
            }
            var count = 0
            var bytes = 0
            while count < min(state.jobs.count, Self.mostJobs), bytes < min(Self.mostBytes, options.maxBytes / 4) {
                bytes += state.jobs[count].bytes
                count += 1
            }
            let jobs = Array(state.jobs[..<count])
            state.jobs.removeFirst(count)
            defer { state.touched = [] }
            // A job that still waits may be an older one for the same entry.
            if state.jobs.isEmpty { (state.leaving, state.outdated) = (state.outdated, []) }
            return (jobs, Array(state.touched), Array(state.leaving))
        }
    }

    /// Writes the waiting jobs and closes the connection. Nobody repeats removals after that, so the last attempt does
    /// not wait until the disk may be used again. May be called several times.
    func close(_ done: @escaping @Sendable () -> Void) {
        state.withLock { $0.isClosed = true }
        queue.async {
            self.work()
            self.repeatRemovals(isLast: true)
            self.writer.close()
            done()
        }
    }
}

/// A gate that stays closed for a while after an error of the disk, so that no run pays for repeated attempts.
final class DiskGate: Sendable {
    private let shutUntil = Atomic<CacheTime>(0)
    private let disabledTime: Int64
    private let clock: @Sendable () -> CacheTime

    init(_ options: CacheStoreOptions) {
        disabledTime = options.disabledTime
        clock = options.clock
    }

    /// If the clock is set back, the gate does not stay closed for longer.
    var isOpen: Bool {
        let until = shutUntil.load(ordering: .relaxed)
        if until == 0 { return true }
        let now = clock()
        return now >= until || now < until - disabledTime
    }

    func shut() { shutUntil.store(clock() + disabledTime, ordering: .relaxed) }
}
