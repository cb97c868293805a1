import FerrySynchronization

/// The removals that could not be written, and the entries whose replacements could not. The entries under these keys
/// must not be used. They are removed as soon as the database can be written again.
///
/// Removals are added and paid on the writing queue only, so what is paid is always everything.
final class OwedRemovals: Sendable {
    private struct State {
        var keys: Set<CacheDigest> = []
        var isAll = false
        /// The keys of entries that were not replaced.
        var outdated: Set<CacheDigest> = []

        var isEmpty: Bool { !isAll && keys.isEmpty && outdated.isEmpty }
    }

    private let state = Mutex(State())
    /// While nothing is owed, lookups need no lock.
    private let isAny = Atomic<Bool>(false)

    /// The maximum number of keys. With more, all entries are removed instead. Further entries that were not replaced
    /// stay until they expire, because most such keys are new ones, without an older entry.
    static let most = 10_000

    var isEmpty: Bool { !isAny.load(ordering: .acquiring) }

    /// Adds what the operations would have removed or replaced.
    func add(_ operations: [CacheWriter.Operation]) {
        state.withLock { state in
            for operation in operations {
                switch operation {
                case .put(_, let key): outdate(key.digest, &state)
                case .outdate(let key): outdate(key, &state)
                case .remove(let key): if !state.isAll { state.keys.insert(key) }
                case .removeAll: state.isAll = true
                }
                if state.keys.count > Self.most { state.isAll = true }
                if state.isAll { (state.keys, state.outdated) = ([], []) }
            }
            isAny.store(!state.isEmpty, ordering: .releasing)
        }
    }

    private func outdate(_ key: CacheDigest, _ state: inout State) {
        if state.outdated.count < Self.most { state.outdated.insert(key) }
    }

    func contains(_ key: CacheDigest) -> Bool {
        if isEmpty { return false }
        return state.withLock { $0.isAll || $0.keys.contains(key) }
    }

    func isOutdated(_ key: CacheDigest) -> Bool {
        if isEmpty { return false }
        return state.withLock { $0.outdated.contains(key) }
    }

    /// What has to be written.
    var operations: [CacheWriter.Operation] {
        if isEmpty { return [] }
        return state.withLock { state in
            if state.isAll { return [.removeAll] }
            return state.keys.map { .remove($0) } + state.outdated.map { .outdate($0) }
        }
    }

    /// Everything that was owed is written.
    func pay() {
        if isEmpty { return }
        state.withLock { state in
            state = State()
            isAny.store(false, ordering: .releasing)
        }
    }
}
