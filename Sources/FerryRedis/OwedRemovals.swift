internal import FerryCache
internal import FerrySynchronization

/// The removals that Redis has not confirmed, or that other processes have not been told of. The entries under these
/// keys must not be used. They are removed as soon as Redis is available again.
final class OwedRemovals: Sendable {
    private struct State {
        var last: UInt64 = 0
        /// The number of the latest removal that is owed, by name.
        var owed: [String: UInt64] = [:]
        /// The names in `owed` of entries that only were not replaced: whether they exist is not known.
        var outdated: Set<String> = []
        /// The names in `owed` whose removal nobody is repeating at the moment.
        var left: Set<String> = []
        /// Other processes may still have removed entries in memory. They must be told, even if a later write has
        /// replaced an entry.
        var isUntold = false
    }

    private let state = Mutex(State())
    /// How much is owed. While it is 0, lookups need no lock.
    private let count = Atomic<Int>(0)

    /// The maximum number of owed removals. Further ones are not kept, and their entries stay until they expire.
    private static let most = 10_000

    /// Adds a removal, of an entry that was removed or `isOutdated`. Returns its number, with which it is paid.
    func add(_ name: String, isOutdated: Bool = false) -> UInt64 {
        change { state in
            state.last += 1
            if !isOutdated {
                state.outdated.remove(name)
                // It is more important than an entry that may not even exist.
                if state.owed.count >= Self.most, state.owed[name] == nil, let other = state.outdated.popFirst() {
                    (state.owed[other], _) = (nil, state.left.remove(other))
                }
            }
            if state.owed[name] == nil {
                if state.owed.count >= Self.most { return state.last }
                if isOutdated { state.outdated.insert(name) }
            }
            state.owed[name] = state.last
            state.left.remove(name)
            return state.last
        }
    }

    /// The removal with this number has failed, or others may not have been told of it. It must be repeated.
    func leave(_ name: String, _ number: UInt64, isUntold: Bool = true) {
        change { state in
            if isUntold { state.isUntold = true }
            if state.owed[name] == number { state.left.insert(name) }
        }
    }

    /// The number of the owed removal that a later change of the entry pays; 0 if nothing is owed.
    func number(_ name: String) -> UInt64 {
        count.load(ordering: .acquiring) > 0 ? state.withLock { $0.owed[name] ?? 0 } : 0
    }

    /// Whether a removal of the entry is owed, so that nobody has to look.
    func isRemoved(_ name: String) -> Bool {
        count.load(ordering: .acquiring) > 0
            && state.withLock { $0.owed[name] != nil && !$0.outdated.contains(name) }
    }

    /// Redis has removed or replaced the entry, so the removals up to this number are paid.
    func pay(_ name: String, _ number: UInt64) {
        if number == 0 { return }
        change { state in
            guard let owed = state.owed[name], owed <= number else { return }
            state.owed[name] = nil
            state.outdated.remove(name)
            state.left.remove(name)
        }
    }

    /// Whether there are removals that must be repeated and that nobody is repeating. Those of outdated entries only
    /// count if nothing waits to be written, because that may be an older entry under the same name.
    func hasLeft(nothingWaits: Bool) -> Bool {
        count.load(ordering: .acquiring) > 0
            && state.withLock { $0.isUntold || (nothingWaits ? !$0.left.isEmpty : !$0.left.isSubset(of: $0.outdated)) }
    }

    /// Takes all removals that must be repeated. The caller repeats them. `nil` if there are none.
    func takeLeft(nothingWaits: Bool) -> RemovalDebt? {
        if count.load(ordering: .acquiring) == 0 { return nil }
        return change { state in
            let taken = nothingWaits ? state.left : state.left.subtracting(state.outdated)
            if !state.isUntold && taken.isEmpty { return nil }
            defer { (state.left, state.isUntold) = (state.left.subtracting(taken), false) }
            let names = taken.compactMap { name in state.owed[name].map { (name, $0) } }
            return RemovalDebt(self, names, isUntold: state.isUntold)
        }
    }

    /// Other processes have not been told of a removal of all entries.
    func leaveUntold() { change { $0.isUntold = true } }

    private func change<R: Sendable>(_ body: (inout State) -> R) -> R {
        state.withLock { state in
            defer { count.store(state.owed.count + (state.isUntold ? 1 : 0), ordering: .releasing) }
            return body(&state)
        }
    }
}

/// Removals that are being repeated. They are paid when Redis has removed the entries and told the other processes.
final class RemovalDebt: Sendable {
    let names: [(name: String, number: UInt64)]
    /// Whether others must be told. They are not if newer entries were not stored: they may keep what they have.
    let isUntold: Bool
    private let owed: OwedRemovals
    private let removed = Mutex<[(name: String, number: UInt64)]>([])

    fileprivate init(_ owed: OwedRemovals, _ names: [(name: String, number: UInt64)], isUntold: Bool) {
        (self.owed, self.names, self.isUntold) = (owed, names, isUntold)
    }

    /// Takes the outcome of one removal.
    func remove(_ name: String, _ number: UInt64, _ outcome: RedisCommand.Outcome) {
        guard case .reply(let reply) = outcome, reply.kind == .integer else {
            return owed.leave(name, number, isUntold: isUntold)
        }
        if isUntold { removed.withLock { $0.append((name, number)) } } else { owed.pay(name, number) }
    }

    /// Takes the outcome of the message to the others, which is sent after all removals. If Redis itself refuses the
    /// message, the removals still count as paid, because nobody can be told.
    func tell(_ outcome: RedisCommand.Outcome) {
        let removed = removed.withLock { $0 }
        guard case .reply = outcome else {
            owed.leaveUntold()
            for (name, number) in removed { owed.leave(name, number) }
            return
        }
        for (name, number) in removed { owed.pay(name, number) }
    }
}
