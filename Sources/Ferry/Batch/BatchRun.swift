import Synchronization

/// One run of a batch's members, whatever they are: the machine, and what they have brought.
final class BatchRun<Element: Sendable>: Sendable {
    private struct State {
        var machine: BatchMachine
        var results: [Result<Element, RequestError>?]
        /// Of those that ended well.
        var isFromCache: Bool?
        /// What ended it from outside.
        var interruption: RequestError?
    }

    private let state: Mutex<State>
    private let group: GroupRun
    let hands: Int

    init(_ machine: BatchMachine, in group: GroupRun) {
        state = Mutex(State(machine: machine, results: Array(repeating: nil, count: machine.count)))
        hands = machine.hands
        self.group = group
    }

    /// One hand: takes member after member. Throws when the others are to be cancelled.
    nonisolated(nonsending) func work(
        _ core: AgentCore, _ member: (Int) -> GroupMember<Element>
    ) async throws(RequestError) {
        while let index = state.withLock({ $0.machine.next() }) {
            let made: Result<Made<Element>, RequestError>
            do throws(RequestError) {
                made = .success(try await member(index).run(core, in: group))
            } catch {
                made = .failure(error)
            }
            if let reason = ended(index, made) { throw reason }
        }
    }

    /// The error when the batch goes no further.
    private func ended(_ index: Int, _ made: Result<Made<Element>, RequestError>) -> RequestError? {
        let error: RequestError? = if case .failure(let error) = made { error } else { nil }
        let isInterrupted = error != nil && (Task.isCancelled || group.ending != nil)
        let (action, progress) = state.withLock { state in
            switch made {
            case .success(let made):
                state.results[index] = .success(made.value)
                state.isFromCache.addMember(isFromCache: made.isFromCache)
            case .failure(let error): state.results[index] = .failure(error)
            }
            let action = state.machine.ended(index, well: error == nil, interrupted: isInterrupted)
            if isInterrupted, state.interruption == nil { state.interruption = error }
            return (action, GroupProgress(finished: state.machine.ended, total: state.machine.count))
        }
        group.advance(to: progress)
        return action == .stop ? error ?? RequestError(GroupRun.End.cancelled) : nil
    }

    /// What it came to, when all hands are at rest: the result of each member.
    func results() throws(RequestError) -> Made<[Result<Element, RequestError>]> {
        let state = try conclude()
        return Made(state.results.map { $0! }, isFromCache: state.isFromCache)
    }

    /// The same where no member may fail: the value of each.
    func values() throws(RequestError) -> Made<[Element]> {
        let state = try conclude()
        let values = try state.results.map { result throws(RequestError) in try result!.get() }
        return Made(values, isFromCache: state.isFromCache)
    }

    /// The state of one that is complete.
    private func conclude() throws(RequestError) -> State {
        let (state, end) = self.state.withLock { state in
            if state.machine.end == nil { _ = state.machine.interrupt() }
            return (state, state.machine.end)
        }
        switch end {
        case .complete: return state
        case .failed(let index):
            guard case .failure(let error) = state.results[index] else {
                preconditionFailure("a member that failed has no error")
            }
            throw error.at(GroupPlace(kind: .batch, index: index)) { finished(state.results) }
        case .interrupted, nil:
            throw state.interruption?.ofWhole ?? group.refusal() ?? RequestError(GroupRun.End.cancelled)
        }
    }
}

private func finished<Element: Sendable>(_ results: [Result<Element, RequestError>?]) -> [Int: any Sendable] {
    var finished: [Int: any Sendable] = [:]
    for (index, result) in results.enumerated() {
        // A member of a tuple is in a box.
        if case .success(let value) = result { finished[index] = (value as? Box)?.content ?? value }
    }
    return finished
}

extension AgentCore {
    /// Runs the members of a batch as children of the caller's task, to their end.
    nonisolated(nonsending) func runBatch<Element: Sendable>(
        of count: Int, atMost limit: Int, _ mode: BatchMachine.Mode, in group: GroupRun,
        _ member: @escaping @Sendable (Int) -> GroupMember<Element>
    ) async -> BatchRun<Element> {
        let batch = BatchRun<Element>(BatchMachine(count: count, atMost: limit, mode: mode), in: group)
        try? await hire(batch.hands, for: batch, member)
        return batch
    }

    /// A task group looks for each child that ends among all others, so many hands are groups of groups.
    private static let handsOfGroup = 128

    /// Has so many hands at work. One that throws has the others cancelled.
    private nonisolated(nonsending) func hire<Element: Sendable>(
        _ hands: Int, for batch: BatchRun<Element>, _ member: @escaping @Sendable (Int) -> GroupMember<Element>
    ) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            if hands <= Self.handsOfGroup {
                for _ in 0..<hands { group.addImmediateTask { try await batch.work(self, member) } }
                return
            }
            let share = max(Self.handsOfGroup, (hands - 1) / Self.handsOfGroup + 1)
            for first in stride(from: 0, to: hands, by: share) {
                group.addImmediateTask { try await self.hire(min(share, hands - first), for: batch, member) }
            }
        }
    }
}
