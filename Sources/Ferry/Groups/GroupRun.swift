import Dispatch
import FerryTransport
import Synchronization

/// The record of one run of a batch or a chain. The agent keeps it until the run has ended.
final class GroupRun: Sendable {
    /// Why it was ended before its time.
    enum End: UInt8, Sendable {
        case cancelled = 1
        case shutdown
        case deadline
    }

    /// Where the runs in a group end that was started, and not sent: as a started run does.
    struct Queues: Sendable {
        let processing: DispatchQueue
        let callback: DispatchQueue
    }

    private struct Life {
        var machine = RunMachine()
        /// While its members run.
        var task: RunningTask?
        var progress: GroupProgress
        var isFromCache = false
        /// From its start until its end.
        var total: Duration?
    }

    private let life: Mutex<Life>
    /// Outside of the lock, as every member looks at them.
    private let end = Atomic<UInt8>(0)
    private let ownPriority: Atomic<Int>
    let number: UInt64
    let tag: String?
    /// `nil` when nobody observes it.
    let watch: RunWatch?
    /// The nearest of its own and of those of the groups around it.
    let deadline: ContinuousClock.Instant?
    let start: ContinuousClock.Instant
    /// The group it is a member of.
    let outer: GroupRun?
    /// `nil` where a task awaits it: then its members end in that task.
    let queues: Queues?
    private let reporter: ProgressReporter?

    /// A group begins: who observes it is told.
    init(
        _ body: GroupBody, in outer: GroupRun?, calling queue: DispatchQueue? = nil,
        reporter: ProgressReporter? = nil, by core: AgentCore
    ) {
        let settings = body.settings
        number = core.nextNumber
        self.outer = outer
        queues = queue.map { Queues(processing: core.processingQueue, callback: $0) } ?? outer?.queues
        if core.observers.isEmpty && settings.observers.isEmpty && core.log == nil {
            watch = nil
        } else {
            let info = RunInfo(
                id: number, kind: body.kind, tag: settings.tag, userInfo: settings.userInfo, group: outer?.number)
            watch = RunWatch(core.observers + settings.observers, core.log, info)
        }
        self.reporter = reporter
        tag = settings.tag
        let start = ContinuousClock.now
        self.start = start
        let own = settings.deadline.map { start.advanced(byAtMost: $0) }
        deadline = [own, outer?.deadline].compactMap { $0 }.min()
        ownPriority = Atomic(settings.priority?.rawValue ?? Self.noPriority)
        life = Mutex(Life(progress: GroupProgress(finished: 0, total: body.total)))
        watch?.willStart()
    }

    // MARK: How it stands

    var state: RunState { life.withLock { $0.machine.state } }
    var progress: GroupProgress { life.withLock { $0.progress } }
    var isFromCache: Bool { life.withLock { $0.isFromCache } }

    /// Why it, or a group around it, was ended.
    var ending: End? { End(rawValue: end.load(ordering: .acquiring)) ?? outer?.ending }

    /// Its own priority or that of the nearest group around it that has one.
    var priority: RequestPriority? {
        RequestPriority(rawValue: ownPriority.load(ordering: .relaxed)) ?? outer?.priority
    }

    /// Whether that is the priority of this group, which has one.
    func hasPriority(of group: GroupRun) -> Bool {
        if self === group { return true }
        return ownPriority.load(ordering: .relaxed) == Self.noPriority && outer?.hasPriority(of: group) == true
    }

    private static let noPriority = Int.max

    /// Of a group only the time is measured; what was sent and received is its members'.
    var metrics: RequestMetrics {
        var metrics = RequestMetrics()
        metrics.total = life.withLock { $0.total } ?? start.duration(to: .now)
        return metrics
    }

    // MARK: What happens to it

    /// So many members have ended. Any thread.
    func advance(to progress: GroupProgress) {
        life.withLock { life in
            // Members that end at once may come here in another order.
            if progress.finished >= life.progress.finished { life.progress = progress }
        }
        reporter?.report { self.progress }
    }

    /// Runs that are looked at after this, or handed over, see it.
    func setPriority(_ priority: RequestPriority) {
        ownPriority.store(priority.rawValue, ordering: .relaxed)
        atomicMemoryFence(ordering: .sequentiallyConsistent)
    }

    /// [the task that carries its members] False when it was ended before.
    func begin() -> Bool {
        let task = RunningTask()
        return life.withLock { life in
            life.machine.started()
            let isWanted = end.load(ordering: .acquiring) == 0
            if isWanted { life.task = task }
            return isWanted
        }
    }

    /// [the task that carries its members] They have ended.
    func done() { life.withLock { $0.task = nil } }

    /// Ends it: what runs in it is cancelled, nothing more is begun. The first reason counts. Any thread.
    func end(_ reason: End) {
        // Not cancelled with the lock held: handlers of the application's code run meanwhile.
        life.withLock { life in
            _ = end.compareExchange(expected: 0, desired: reason.rawValue, ordering: .acquiringAndReleasing)
            return life.task.take()
        }?.cancel()
    }

    /// Somebody does not want it any more.
    func cancel() {
        switch life.withLock({ $0.machine.cancel() }) {
        case .stopTransfer: end(.cancelled)
        case .replaceResult, .none: break
        }
    }

    /// Its result is known, but not handed over.
    func answered(isFromCache: Bool?) {
        life.withLock { life in
            life.machine.answered()
            life.isFromCache = isFromCache ?? false
            life.total = start.duration(to: .now)
        }
    }

    /// The result is about to be handed over.
    func deliver(_ end: RunState) -> RunMachine.DeliverAction { life.withLock { $0.machine.deliver(end) } }
}

extension Run {
    /// The group whose priority it has.
    var inherited: GroupRun? { inheritsPriority ? group : nil }
}

extension GroupRun {
    /// Why nothing more may be begun in it; `nil` when it may.
    func refusal(url: String = "") -> RequestError? {
        if let ending { return RequestError(ending, url: url) }
        if let deadline, deadline <= .now { return RequestError(.deadline, url: url) }
        return nil
    }

    /// Lets a member in: what holds for the group holds for its transfer too. The reason when it may not begin.
    @inline(never)
    func admit<R: Request>(_ run: Run, _ transfer: inout TransferRequest, of request: R) -> RequestError? {
        run.group = self
        run.inheritsPriority = request.inheritsPriority
        if let priority, request.inheritsPriority { transfer.ring = priority.ring }
        if let deadline {
            let remaining = milliseconds(ContinuousClock.now.duration(to: deadline))
            let own = transfer.timeouts.deadline
            transfer.timeouts.deadline = own == 0 ? remaining : min(own, remaining)
        }
        return refusal(url: run.url)
    }
}

// MARK: Its members

extension GroupRun {
    /// Runs it in the caller's task.
    nonisolated(nonsending) func send(_ body: GroupBody, by core: AgentCore) async throws(RequestError) -> Made {
        let refusal = core.enter(self)
        let result = await carry(body, refusal: refusal, by: core)
        await onQueue(queues?.callback) { [self] in
            // A cancel that came after the result is nothing to one who awaits it.
            _ = deliver(RunState(result))
            RunEnd.deliver(watch, RunOutcome(result), metrics) {}
        }
        core.leave(self)
        return try result.get()
    }

    /// Likewise, not on the caller's actor.
    @concurrent
    func sendOffActor(_ body: GroupBody, by core: AgentCore) async throws(RequestError) -> Made {
        try await send(body, by: core)
    }

    /// Runs the members. They run in a child of the caller's task, so that they can be ended without that.
    nonisolated(nonsending) func carry(
        _ body: GroupBody, refusal: RequestError?, by core: AgentCore
    ) async -> Result<Made, RequestError> {
        let refusal = refusal ?? self.refusal() ?? (Task.isCancelled ? RequestError(.cancelled) : nil)
        if let refusal {
            answered(isFromCache: nil)
            return .failure(refusal)
        }
        var result = await withTaskGroup(of: Result<Made, RequestError>?.self) { tasks in
            tasks.addImmediateTask { await self.work(body, by: core) }
            if let deadline, body.kind == .chain {
                tasks.addTask {
                    // The transport ends a transfer itself, in time; this is for code that is asked between them.
                    try? await Task.sleep(until: deadline + .milliseconds(50), clock: .continuous)
                    if !Task.isCancelled { self.end(.deadline) }
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
            if let ending {
                result = .failure(error.ended(by: ending))
            } else if Task.isCancelled {
                result = .failure(error.ended(by: .cancelled))
            }
        }
        answered(isFromCache: (try? result.get())?.isFromCache)
        return result
    }

    private nonisolated(nonsending) func work(
        _ body: GroupBody, by core: AgentCore
    ) async -> Result<Made, RequestError> {
        guard begin() else { return .failure(refusal() ?? RequestError(.cancelled)) }
        defer { done() }
        do throws(RequestError) {
            return .success(try await body.work(core, self))
        } catch {
            return .failure(error)
        }
    }
}

extension RunOutcome {
    init(_ result: Result<Made, RequestError>) {
        switch result {
        case .success(let made): self = .finished(status: nil, isFromCache: made.isFromCache ?? false)
        case .failure(let error): self.init(error)
        }
    }
}

extension Request {
    /// What says no more than the default takes its group's.
    var inheritsPriority: Bool { priority == .normal }
}
