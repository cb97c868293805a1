import Dispatch
import Synchronization

/// The cache writing queue: takes what is to be written, bounded in bytes, and writes what waits in one transaction.
final class CacheWritingQueue: Sendable {
    private struct Job: Sendable {
        let operation: CacheWriter.Operation
        let bytes: Int
        let done: (@Sendable (Bool) -> Void)?
    }

    private struct State {
        var jobs: [Job] = []
        /// Of the jobs that wait or are being written.
        var bytes = 0
        var touched: Set<CacheDigest> = []
        /// Somebody will look at the jobs.
        var haste = Haste.none
        var isClosed = false

        /// Whether somebody has to be woken who is not on the way yet, or not soon enough.
        mutating func wakes(_ haste: Haste) -> Bool {
            if self.haste >= haste { return false }
            self.haste = haste
            return true
        }
    }

    /// How soon what waits is to be written.
    private enum Haste: Int, Comparable {
        case none
        /// Uses of entries only.
        case touches
        /// Nobody waits for it: others may come along.
        case gathering
        case now

        static func < (left: Haste, right: Haste) -> Bool { left.rawValue < right.rawValue }
    }

    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "ferry.cache.writing")
    private let writer: CacheWriter
    private let options: CacheStoreOptions
    private let counter: CacheCounter

    /// Of one transaction.
    private static let mostJobs = 1024
    private static let mostBytes = 8 << 20
    /// Touches that are kept for the next writing; one that is lost makes an entry look older than it is.
    private static let mostTouched = 4096

    init(_ writer: CacheWriter, _ options: CacheStoreOptions, _ counter: CacheCounter) {
        self.writer = writer
        self.options = options
        self.counter = counter
    }

    var queuedBytes: Int { state.withLock { $0.bytes } }

    func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
        if entry.count > options.maxEntryBytes {
            counter.count { $0.refused += 1 }
            done?(false)
        } else if !submit(Job(operation: .put(entry, key), bytes: entry.count, done: done)) {
            counter.count { $0.dropped += 1 }
            done?(false)
        }
    }

    func remove(_ key: CacheDigest, _ done: (@Sendable (Bool) -> Void)?) {
        if !submit(Job(operation: .remove(key), bytes: 0, done: done)) { done?(false) }
    }

    func removeAll(_ done: (@Sendable (Bool) -> Void)?) {
        if !submit(Job(operation: .removeAll, bytes: 0, done: done)) { done?(false) }
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

    /// False when there is no room, or it is closed.
    private func submit(_ job: Job) -> Bool {
        let (isTaken, haste) = state.withLock { state -> (Bool, Haste) in
            if state.isClosed { return (false, .none) }
            // One that is larger than all of the room has it to itself.
            let isFull = state.bytes > 0 && state.bytes + job.bytes > options.maxQueuedBytes
            if job.bytes > 0 && isFull { return (false, .none) }
            state.jobs.append(job)
            state.bytes += job.bytes
            // What fills a transaction does not wait for more.
            let isMuch = state.bytes >= min(Self.mostBytes, options.maxQueuedBytes / 2)
            let haste = job.done != nil || isMuch ? Haste.now : .gathering
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
        while let (jobs, touched) = take() {
            let isDone = writer.write(jobs.map(\.operation), touched: touched)
            let puts = UInt64(jobs.count { if case .put = $0.operation { true } else { false } })
            counter.count { if isDone { $0.written += puts } else { $0.failed += puts } }
            if isDone, jobs.contains(where: { if case .removeAll = $0.operation { true } else { false } }) {
                writer.compact()
            }
            let bytes = jobs.reduce(0) { $0 + $1.bytes }
            state.withLock { $0.bytes -= bytes }
            for job in jobs { job.done?(isDone) }
        }
    }

    private func take() -> ([Job], [CacheDigest])? {
        state.withLock { state in
            if state.jobs.isEmpty && state.touched.isEmpty {
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
            return (jobs, Array(state.touched))
        }
    }

    /// Writes what is there, and closes the connection. Any number of times.
    func close(_ done: @escaping @Sendable () -> Void) {
        state.withLock { $0.isClosed = true }
        queue.async {
            self.work()
            self.writer.close()
            done()
        }
    }
}

/// Shut for a while after a fault of the disk, so that no run pays for trying again and again.
final class DiskGate: Sendable {
    private let shutUntil = Atomic<CacheTime>(0)
    private let disabledTime: Int64
    private let clock: @Sendable () -> CacheTime

    init(_ options: CacheStoreOptions) {
        disabledTime = options.disabledTime
        clock = options.clock
    }

    /// One set back does not keep the gate shut longer than it would have been.
    var isOpen: Bool {
        let until = shutUntil.load(ordering: .relaxed)
        if until == 0 { return true }
        let now = clock()
        return now >= until || now < until - disabledTime
    }

    func shut() { shutUntil.store(clock() + disabledTime, ordering: .relaxed) }
}
