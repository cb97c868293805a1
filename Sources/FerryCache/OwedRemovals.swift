import Synchronization

/// The removals that could not be written. The entries under these keys must not be used. They are removed as soon as
/// the database can be written again.
///
/// Removals are added and paid on the writing queue only, so what is paid is always everything.
final class OwedRemovals: Sendable {
    private struct State {
        var keys: Set<CacheDigest> = []
        var isAll = false
    }

    private let state = Mutex(State())
    /// While nothing is owed, lookups need no lock.
    private let isAny = Atomic<Bool>(false)

    /// The maximum number of keys. With more, all entries are removed instead.
    static let most = 10_000

    var isEmpty: Bool { !isAny.load(ordering: .acquiring) }

    /// Adds those of the operations that remove entries.
    func add(_ operations: [CacheWriter.Operation]) {
        state.withLock { state in
            for operation in operations {
                switch operation {
                case .put: break
                case .remove(let key): if !state.isAll { state.keys.insert(key) }
                case .removeAll: state.isAll = true
                }
                if state.keys.count > Self.most { state.isAll = true }
                if state.isAll { state.keys = [] }
            }
            isAny.store(state.isAll || !state.keys.isEmpty, ordering: .releasing)
        }
    }

    func contains(_ key: CacheDigest) -> Bool {
        if isEmpty { return false }
        return state.withLock { $0.isAll || $0.keys.contains(key) }
    }

    /// What has to be written.
    var operations: [CacheWriter.Operation] {
        state.withLock { state in state.isAll ? [.removeAll] : state.keys.map { .remove($0) } }
    }

    /// Everything that was owed is written.
    func pay() {
        state.withLock { state in
            state = State()
            isAny.store(false, ordering: .releasing)
        }
    }
}
