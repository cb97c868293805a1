import Synchronization

/// One run of a batch's members, whatever they are: the machine, and what they have brought.
///
/// A task for each member would cost more than all else that a batch does. So a few hands carry them, tasks of which
/// each begins a transfer and does not wait for it; what is answered goes to whichever hand is free. Only what takes
/// more than one transfer, an errand, has a task of its own, a child of a hand's.
final class BatchRun: Sendable {
    let state: Mutex<BatchState>
    let core: AgentCore
    let group: GroupRun
    let member: @Sendable (Int) -> Member
    /// How many errands are under way.
    let errands = Atomic<Int>(0)

    init(
        _ machine: BatchMachine, by core: AgentCore, in group: GroupRun,
        _ member: @escaping @Sendable (Int) -> Member
    ) {
        state = Mutex(BatchState(machine))
        self.core = core
        self.group = group
        self.member = member
    }

    /// Runs all of them in the caller's task and children of that, to their end.
    nonisolated(nonsending) func run(byHands hands: Int) async {
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                // Not at once, as the first does not rest while there is anything to do.
                for _ in 1..<max(hands, 1) { group.addTask { await self.work() } }
                await work()
            }
        } onCancel: {
            interrupt()
        }
    }
}

// MARK: What it came to

extension BatchRun {
    /// The result of each member, when all hands are at rest. None is without one: the batch is complete.
    func results() throws(RequestError) -> [Result<Box, RequestError>] {
        try conclude().members.map { $0.result! }
    }

    /// The same where no member may fail: the value of each, likewise.
    func values() throws(RequestError) -> [Box] {
        try conclude().members.map { member throws(RequestError) in try member.result!.get() }
    }

    /// What is made of these.
    func made(_ value: some Sendable) -> Made {
        Made(.of(value), isFromCache: state.withLock { $0.isFromCache })
    }

    /// The state of one that is complete.
    private func conclude() throws(RequestError) -> BatchState {
        let (state, end) = self.state.withLock { state in
            if state.machine.end == nil { state.interrupt() }
            return (state, state.machine.end)
        }
        switch end {
        case .complete: return state
        case .failed(let index):
            guard case .failure(let error) = state.members[index].result else {
                preconditionFailure("a member that failed has no error")
            }
            throw error.at(GroupPlace(kind: .batch, index: index)) { finished(state.members) }
        case .interrupted, nil:
            throw state.interruption?.ofWhole ?? group.refusal() ?? RequestError(GroupRun.End.cancelled)
        }
    }
}

private func finished(_ members: [BatchMember]) -> [Int: any Sendable] {
    var finished: [Int: any Sendable] = [:]
    for (index, member) in members.enumerated() {
        if case .success(let value) = member.result { finished[index] = value.content }
    }
    return finished
}

extension AgentCore {
    /// Runs the members of a batch, to their end.
    nonisolated(nonsending) func runBatch(
        of count: Int, atMost limit: Int, _ mode: BatchMachine.Mode, in group: GroupRun,
        _ member: @escaping @Sendable (Int) -> Member
    ) async -> BatchRun {
        let machine = BatchMachine(count: count, atMost: limit, mode: mode)
        let batch = BatchRun(machine, by: self, in: group, member)
        // More than there are processors would have nothing to do: a hand never waits.
        await batch.run(byHands: min(machine.limit, processorCount))
        return batch
    }
}
