import Dispatch
import Synchronization

/// Few connections that read for many: lookups wait in one line, and a connection takes all that stand there.
final class CacheReaderPool: Sendable {
    struct Lookup: Sendable {
        let key: CacheKey
        let answer: @Sendable (CacheFinding) -> Void
    }

    private struct State {
        var waiting: [Lookup] = []
        var idle: [CacheReader]
        /// Somebody will look whether what waits is held up.
        var isWatched = false
        var isClosed = false
        /// Called when the last reader has come back.
        var closing: [@Sendable () -> Void] = []

        /// Whom to tell that all readers are back, once it is closed.
        mutating func endings(of count: Int) -> [@Sendable () -> Void] {
            guard isClosed, idle.count == count else { return [] }
            for reader in idle { reader.close() }
            defer { closing = [] }
            return closing
        }
    }

    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "ferry.cache.reading", attributes: .concurrent)
    private let count: Int
    /// What the readers found, besides the answer.
    private let note: @Sendable (CacheDigest, CacheFinding, _ used: CacheTime) -> Void

    /// So many are taken at once, that others find some left.
    private static let most = 64
    /// A second connection is worth waking for more than this.
    private static let few = 8
    /// Or where the first has been busy for so long: the disk, or another process, may hold it up.
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
            if state.isClosed { return .refuse }
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

    /// Wakes another reader for what still waits.
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

    /// The next lookups; `nil` when there are none, and the reader is idle again.
    private func take(for reader: CacheReader) -> [Lookup]? {
        let (lookups, closing) = state.withLock { state -> ([Lookup]?, [@Sendable () -> Void]) in
            if !state.waiting.isEmpty {
                let lookups = Array(state.waiting.prefix(Self.most))
                state.waiting.removeFirst(lookups.count)
                return (lookups, [])
            }
            state.idle.append(reader)
            return (nil, state.endings(of: count))
        }
        for close in closing { close() }
        return lookups
    }

    /// Answers what waits, and closes the connections. Any number of times.
    func close(_ done: @escaping @Sendable () -> Void) {
        let endings = state.withLock { state in
            state.isClosed = true
            state.closing.append(done)
            return state.endings(of: count)
        }
        for end in endings { end() }
    }
}
