import FerryTransport
import Synchronization

extension AgentCore {
    /// Runs a group in the caller's task, as a run of its own.
    nonisolated(nonsending) func send(_ body: GroupBody, in outer: GroupRun?) async throws(RequestError) -> Made {
        try await send(body, begin(body, in: outer))
    }

    /// Likewise one that has begun. Not on the caller's actor.
    @concurrent
    func sendOffActor(_ body: GroupBody, _ group: GroupRun) async throws(RequestError) -> Made {
        try await send(body, group)
    }

    private nonisolated(nonsending) func send(_ body: GroupBody, _ group: GroupRun) async throws(RequestError) -> Made {
        let refusal = enter(group)
        let result = await carry(body, group, refusal: refusal)
        // A cancel that came after the result is nothing to one who awaits it.
        _ = group.deliver(RunState(result))
        let outcome = RunOutcome(result)
        group.watch?.willStop(outcome, group.metrics)
        group.watch?.didStop(outcome)
        leave(group)
        return try result.get()
    }

    /// A group begins: who observes it is told.
    func begin(
        _ body: GroupBody, in outer: GroupRun?, reporter: ProgressReporter? = nil
    ) -> GroupRun {
        let settings = body.settings
        let number = nextNumber
        var watch: RunWatch?
        if !(observers.isEmpty && settings.observers.isEmpty && log == nil) {
            let info = RunInfo(
                id: number, kind: body.kind, tag: settings.tag, userInfo: settings.userInfo, group: outer?.number)
            watch = RunWatch(observers + settings.observers, log, info)
        }
        let group = GroupRun(
            number: number, settings: settings, total: body.total, watch: watch, in: outer, reporter: reporter)
        watch?.willStart()
        return group
    }

    /// Keeps a group until it ends; the reason when it may not run.
    func enter(_ group: GroupRun) -> RequestError? {
        let isRefused = state.withLock { state in
            state.groups[ObjectIdentifier(group)] = group
            return state.isClosed && !state.letsIn(group.outer != nil || isRefreshing)
        }
        return isRefused ? RequestError(.shutdown) : nil
    }

    /// A group is over, its callbacks included.
    func leave(_ group: GroupRun) {
        state.withLock { state in
            state.groups[ObjectIdentifier(group)] = nil
            return state.becameIdle()
        }.act()
    }

    /// Runs the members. They run in a child of the caller's task, so that they can be ended without that.
    nonisolated(nonsending) func carry(
        _ body: GroupBody, _ group: GroupRun, refusal: RequestError?
    ) async -> Result<Made, RequestError> {
        let refusal = refusal ?? group.refusal() ?? (Task.isCancelled ? RequestError(.cancelled) : nil)
        if let refusal {
            group.answered(isFromCache: nil)
            return .failure(refusal)
        }
        var result = await withTaskGroup(of: Result<Made, RequestError>?.self) { tasks in
            tasks.addImmediateTask { await self.work(body, group) }
            if let deadline = group.deadline, body.kind == .chain {
                tasks.addTask {
                    // The transport ends a transfer itself, in time; this is for code that is asked between them.
                    try? await Task.sleep(until: deadline + .milliseconds(50), clock: .continuous)
                    if !Task.isCancelled { group.end(.deadline) }
                    return nil
                }
            }
            while let ended = await tasks.next() {
                guard let result = ended else { continue }
                tasks.cancelAll()
                return result
            }
            preconditionFailure("a group has no result")
        }
        if case .failure(let error) = result {
            if let ending = group.ending {
                result = .failure(error.ended(by: ending))
            } else if Task.isCancelled {
                result = .failure(error.ended(by: .cancelled))
            }
        }
        group.answered(isFromCache: (try? result.get())?.isFromCache)
        return result
    }

    private nonisolated(nonsending) func work(
        _ body: GroupBody, _ group: GroupRun
    ) async -> Result<Made, RequestError> {
        guard group.begin() else { return .failure(group.refusal() ?? RequestError(.cancelled)) }
        defer { group.done() }
        do throws(RequestError) {
            return .success(try await body.work(self, group))
        } catch {
            return .failure(error)
        }
    }

    /// Changes the place of all in a group that wait, unless they, or a group in it around them, have one of their own;
    /// and of what it begins later.
    func setPriority(_ priority: RequestPriority, of group: GroupRun) {
        group.setPriority(priority)
        let (runs, journeys) = state.withLock { ($0.table.all, Array($0.journeys.values)) }
        for run in runs where run.inherited?.hasPriority(of: group) == true && run.id != 0 {
            transport.setRing(priority.ring, of: run.id)
        }
        for journey in journeys where journey.inherited?.hasPriority(of: group) == true {
            journey.setPriority(priority, in: self)
        }
    }
}

extension RunState {
    /// How a run with this result has ended.
    init<Value>(_ result: Result<Value, RequestError>) {
        switch result {
        case .success: self = .finished
        case .failure(.cancelled): self = .cancelled
        case .failure: self = .failed
        }
    }
}

extension RunOutcome {
    fileprivate init(_ result: Result<Made, RequestError>) {
        switch result {
        case .success(let made): self = .finished(status: nil, isFromCache: made.isFromCache ?? false)
        case .failure(let error): self.init(error)
        }
    }
}
