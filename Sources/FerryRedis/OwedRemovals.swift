internal import FerryCache
internal import Synchronization

/// Removals that Redis has not heard of, or that others have not been told of: what stands under these keys is not to
/// be used, and goes as soon as Redis is back.
final class OwedRemovals: Sendable {
    private struct State {
        var last: UInt64 = 0
        /// The number of the removal that is owed last, by name.
        var owed: [String: UInt64] = [:]
        /// Those of them that nobody is about to make up for.
        var left: Set<String> = []
        /// Others may have in memory what was removed. They are to be told even if a write has paid since.
        var isUntold = false
    }

    private let state = Mutex(State())
    /// Looks have nothing to lock while there is nothing to be done.
    private let count = Atomic<Int>(0)

    /// The bound of them: beyond it some are forgotten, and what they were to remove stays until it expires.
    private static let most = 10_000

    /// Gives the number that pays for it.
    func add(_ name: String) -> UInt64 {
        change { state in
            state.last += 1
            if state.owed.count < Self.most || state.owed[name] != nil { state.owed[name] = state.last }
            state.left.remove(name)
            return state.last
        }
    }

    /// The removal of this number has not come about, or not to the ears of others, as far as is known.
    func leave(_ name: String, _ number: UInt64) {
        change { state in
            state.isUntold = true
            if state.owed[name] == number { state.left.insert(name) }
        }
    }

    /// What a later change of the entry pays for; 0 where nothing is owed.
    func number(_ name: String) -> UInt64 {
        count.load(ordering: .acquiring) > 0 ? state.withLock { $0.owed[name] ?? 0 } : 0
    }

    /// Redis has removed or replaced the entry after the removal of this number.
    func pay(_ name: String, _ number: UInt64) {
        if number == 0 { return }
        change { state in
            guard let owed = state.owed[name], owed <= number else { return }
            state.owed[name] = nil
            state.left.remove(name)
        }
    }

    /// Whether there is something that nobody is about to make up for.
    var hasLeft: Bool {
        count.load(ordering: .acquiring) > 0 && state.withLock { $0.isUntold || !$0.left.isEmpty }
    }

    /// All of that, which the caller is to make up for; `nil` where there is nothing.
    func takeLeft() -> RemovalDebt? {
        if count.load(ordering: .acquiring) == 0 { return nil }
        return change { state in
            if !state.isUntold && state.left.isEmpty { return nil }
            defer { (state.left, state.isUntold) = ([], false) }
            return RemovalDebt(self, state.left.compactMap { name in state.owed[name].map { (name, $0) } })
        }
    }

    /// Others have not been told of a removal of all entries.
    func leaveUntold() { change { $0.isUntold = true } }

    private func change<R: Sendable>(_ body: (inout State) -> R) -> R {
        state.withLock { state in
            defer { count.store(state.owed.count + (state.isUntold ? 1 : 0), ordering: .releasing) }
            return body(&state)
        }
    }
}

/// Removals that are being made up for. They are paid when Redis has removed the entries and told the others.
final class RemovalDebt: Sendable {
    let names: [(name: String, number: UInt64)]
    private let owed: OwedRemovals
    private let removed = Mutex<[(name: String, number: UInt64)]>([])

    fileprivate init(_ owed: OwedRemovals, _ names: [(name: String, number: UInt64)]) {
        (self.owed, self.names) = (owed, names)
    }

    /// What became of one.
    func remove(_ name: String, _ number: UInt64, _ outcome: RedisCommand.Outcome) {
        if case .reply(let reply) = outcome, reply.kind == .integer {
            removed.withLock { $0.append((name, number)) }
        } else {
            owed.leave(name, number)
        }
    }

    /// What became of the message, which comes behind all of them. Where Redis refuses it, nobody can be told.
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
