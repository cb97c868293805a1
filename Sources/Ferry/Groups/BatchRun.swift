import FerrySynchronization

/// One run of a batch: the state machine, and the results of the members.
///
/// A task for each member would cost more than everything else in a batch. So a few worker tasks carry the members: a
/// worker starts a transfer and does not wait for it, and the result goes to any worker that is free. Only a member
/// that takes more than one transfer has a task of its own, a child of a worker's.
final class BatchRun: Sendable {
    let state: Mutex<BatchState>
    let core: AgentCore
    let group: GroupRun
    let member: @Sendable (Int) -> Member
    /// The number of active tasks.
    let tasks = Atomic<Int>(0)

    init(
        _ machine: BatchMachine, by core: AgentCore, in group: GroupRun,
        _ member: @escaping @Sendable (Int) -> Member
    ) {
        state = Mutex(BatchState(machine))
        self.core = core
        self.group = group
        self.member = member
    }

    /// Runs all members to their end, in the caller's task and child tasks.
    nonisolated(nonsending) func run(byWorkers workers: Int) async {
        await withTaskCancellationHandler {
            await withDiscardingTaskGroup { group in
                // Not at once, because the first worker does not rest while there is work.
                for _ in 1..<max(workers, 1) { group.addTask { await self.work() } }
                await work()
            }
        } onCancel: {
            interrupt()
        }
    }
}

// MARK: Results

extension BatchRun {
    /// The result of each member, when all workers are done. Every member has one, because the batch is complete.
    func results() throws(RequestError) -> [Result<Box, RequestError>] {
        try conclude().members.map { $0.result! }
    }

    /// The values of all members, if none may fail.
    func values() throws(RequestError) -> [Box] {
        try conclude().members.map { member throws(RequestError) in try member.result!.get() }
    }

    /// The result of the batch with this value.
    func made(_ value: some Sendable) -> Made {
        Made(.of(value), isFromCache: state.withLock { $0.isFromCache })
    }

    /// The state of a completed batch.
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

extension BatchRun {
    /// Runs the members of a batch to their end.
    nonisolated(nonsending) static func run(
        of count: Int, atMost limit: Int, _ mode: BatchMachine.Mode, in group: GroupRun, by core: AgentCore,
        _ member: @escaping @Sendable (Int) -> Member
    ) async -> BatchRun {
        let machine = BatchMachine(count: count, atMost: limit, mode: mode)
        let batch = BatchRun(machine, by: core, in: group, member)
        // More workers than processors would be idle, because a worker never waits.
        await batch.run(byWorkers: min(machine.limit, processorCount))
        return batch
    }
}

extension BatchRun: AnswerReading {
    typealias Work = BatchWorkQueue.Work

    /// A task group searches all its children for each child that ends, so a large number of tasks is divided among
    /// several groups.
    private static var tasksOfGroup: Int { 128 }

    /// Runs one worker, until there is no work and its tasks have ended.
    nonisolated(nonsending) func work(from first: Work? = nil, groups: Int = 1) async {
        await withDiscardingTaskGroup { children in
            var next = first
            if next == nil { next = await self.next(after: nil) }
            while let work = next {
                if tasks.load(ordering: .relaxed) >= Self.tasksOfGroup * groups {
                    return await self.work(from: work, groups: groups + 1)
                }
                perform(work, &children)
                next = await self.next(after: work)
            }
        }
    }

    private func perform(_ work: Work, _ children: inout DiscardingTaskGroup) {
        switch work {
        case .begin(let index): begin(index, &children)
        case .settle(let index, let transfer, let answer): settle(index, transfer, answer, &children)
        case .take(let index, let made): ended(index, made)
        }
    }

    // MARK: Work

    private nonisolated(nonsending) func next(after last: Work?) async -> Work? {
        switch state.withLock({ $0.next(after: last) }) {
        case .work(let work): return work
        case .leave: return nil
        case .rest: break
        }
        defer { state.orderAfterResume() }
        return await withUnsafeContinuation { worker in
            let next = state.withLock { state in
                let next = state.next(after: nil)
                if case .rest = next { state.work.rest(worker) }
                return next
            }
            switch next {
            case .work(let work): worker.resume(returning: work)
            case .leave: worker.resume(returning: nil)
            case .rest: break
            }
        }
    }

    private func post(_ work: Work) {
        state.withLock { $0.work.push(work) }?.resume(returning: work)
    }

    /// [event loop, or the worker that starts it]
    func answered(_ index: Int, _ answer: Answer) {
        let (worker, work): (BatchWorkQueue.Worker?, Work?) = state.withLock { state in
            switch state.members[index] {
            case .beginning:
                state.members[index] = .answered(answer)
                return (nil, nil)
            case .transfer(let transfer):
                let work = Work.settle(index, transfer, answer)
                return (state.work.push(work), work)
            case .waiting, .answered, .ownTask, .ended: preconditionFailure("this member is not a transfer")
            }
        }
        worker?.resume(returning: work)
    }

    // MARK: Performing work

    private func begin(_ index: Int, _ children: inout DiscardingTaskGroup) {
        let member = member(index)
        if case .request(let request) = member.content, request.isTransfer(for: core) {
            begin(index, request, &children)
        } else {
            send(index, &children) { [self] in
                if let task = RunningTask() { note(.task(task), of: index) }
                return await Result { () async throws(RequestError) in try await member.run(core, in: group) }
            }
        }
    }

    private func begin(_ index: Int, _ request: MemberRequest, _ children: inout DiscardingTaskGroup) {
        let run = request.begin(by: core, in: group, answering: AnswerReader(object: self, place: index))
        let transfer = BatchMember.Transfer(request: request, run: run)
        let (answer, isUnwanted): (Answer?, Bool) = state.withLock { state in
            let before = state.members[index]
            state.members[index] = .transfer(transfer)
            if case .answered(let answer) = before { return (answer, false) }
            return (nil, state.isEnding)
        }
        if let answer {
            settle(index, transfer, answer, &children)
        } else if isUnwanted {
            BatchMember.transfer(transfer).end(by: core, in: group)
        }
    }

    private func settle(
        _ index: Int, _ transfer: BatchMember.Transfer, _ answer: Answer, _ children: inout DiscardingTaskGroup
    ) {
        if transfer.run.isSettled(answer, by: core) {
            guard let queues = group.queues else { return ended(index, transfer.conclude(answer, by: core)) }
            return transfer.request.conclude(answer, of: transfer.run, on: queues, by: core) { [self] made in
                post(.take(index, made))
            }
        }
        let control = transfer.run.control(by: core)
        note(.control(control), of: index)
        send(index, &children) { [core, group] in
            let last = await transfer.request.goOn(transfer.run, control, after: answer, by: core)
            return await transfer.request.end(last, of: transfer.run, in: group, by: core)
        }
    }

    /// Runs a member in a task of its own; its result goes to a worker.
    private func send(
        _ index: Int, _ children: inout DiscardingTaskGroup,
        in task: @escaping @Sendable () async -> Result<Made, RequestError>
    ) {
        tasks.add(1, ordering: .relaxed)
        children.addImmediateTask { [self] in
            let made = await task()
            tasks.subtract(1, ordering: .relaxed)
            post(.take(index, made))
        }
    }

    private func note(_ task: BatchMember.OwnTask, of index: Int) {
        let isUnwanted = state.withLock { state in
            state.members[index] = .ownTask(task)
            return state.isEnding
        }
        if isUnwanted { BatchMember.ownTask(task).end(by: core, in: group) }
    }

    // MARK: End

    private func ended(_ index: Int, _ made: Result<Made, RequestError>) {
        let (action, progress, workers, before) = state.withLock { state in
            let before = state.members[index]
            let action = state.ended(index, made, isGroupEnding: group.ending != nil)
            return (action, state.progress, state.freeWorkers(), before)
        }
        // This may release objects of the application, whose `deinit` must not run under the lock.
        withExtendedLifetime(before) {}
        group.advance(to: progress)
        if action == .stop { endMembers() }
        for worker in workers { worker.resume(returning: nil) }
    }

    /// Ends the batch from outside. Any thread.
    func interrupt() {
        let workers = state.withLock { state in
            state.interrupt()
            return state.freeWorkers()
        }
        endMembers()
        for worker in workers { worker.resume(returning: nil) }
    }

    /// Ends the active members, once.
    private func endMembers() {
        let members = state.withLock { state in
            defer { state.isEnding = true }
            return state.isEnding ? [] : state.members
        }
        for member in members { member.end(by: core, in: group) }
    }
}

extension Result where Success == Made, Failure == RequestError {
    fileprivate nonisolated(nonsending) init(_ work: () async throws(RequestError) -> Made) async {
        do throws(RequestError) {
            self = .success(try await work())
        } catch {
            self = .failure(error)
        }
    }
}

extension BatchMember.Transfer {
    fileprivate func conclude(_ answer: Answer, by core: AgentCore) -> Result<Made, RequestError> {
        Result { () throws(RequestError) in try request.conclude(answer, of: run, by: core) }
    }
}
