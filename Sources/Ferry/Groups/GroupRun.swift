import Dispatch
import FerrySynchronization
import FerryTransport

/// The record of one run of a batch or a chain. The agent retains it until the run has ended.
final class GroupRun: Sendable {
    /// Why it was ended early.
    enum End: UInt8, Sendable {
        case cancelled = 1
        case shutdown
        case deadline
    }

    /// The queues of a started group, on which its runs end like started runs.
    struct Queues: Sendable {
        let processing: DispatchQueue
        let callback: DispatchQueue
    }

    private struct Life {
        var machine = RunMachine()
        /// Set while its members are active.
        var task: RunningTask?
        var progress: GroupProgress
        var isFromCache = false
        /// The duration from its start to its end.
        var total: Duration?
    }

    private let life: Mutex<Life>
    /// Outside the lock, because every member reads it.
    private let end = Atomic<UInt8>(0)
    private let ownPriority: Atomic<Int>
    let number: UInt64
    let tag: String?
    /// `nil` if there are no observers, and after the result: an observer may keep the task, which keeps this.
    private let watch: Mutex<RunWatch?>
    /// The earliest deadline of the group and of the groups around it.
    let deadline: ContinuousClock.Instant?
    let start: ContinuousClock.Instant
    /// The group that contains it.
    let outer: GroupRun?
    /// `nil` if a task awaits it: then its members end in that task.
    let queues: Queues?
    private let reporter: ProgressReporter?

    /// A group starts: its observers are notified.
    init(
        _ body: GroupBody, in outer: GroupRun?, calling queue: DispatchQueue? = nil,
        reporter: ProgressReporter? = nil, by core: AgentCore
    ) {
        let settings = body.settings
        number = core.nextNumber
        self.outer = outer
        queues = queue.map { Queues(processing: core.processingQueue, callback: $0) } ?? outer?.queues
        if core.observers.isEmpty && settings.observers.isEmpty && core.log == nil {
            watch = Mutex(nil)
        } else {
            let number = number
            watch = Mutex(
                RunWatch(core.observers + settings.observers, core.log) {
                    RunInfo(
                        id: number, kind: body.kind, tag: settings.tag, userInfo: settings.userInfo,
                        group: outer?.number)
                })
        }
        self.reporter = reporter
        tag = settings.tag
        let start = ContinuousClock.now
        self.start = start
        let own = settings.deadline.map { start.advanced(byAtMost: $0) }
        deadline = [own, outer?.deadline].compactMap { $0 }.min()
        ownPriority = Atomic(settings.priority?.rawValue ?? Self.noPriority)
        life = Mutex(Life(progress: GroupProgress(finished: 0, total: body.total)))
        watch.withLock { $0 }?.willStart()
    }

    /// For the one who delivers the result.
    func takeWatch() -> RunWatch? { watch.withLock { $0.take() } }

    // MARK: State

    var state: RunState { life.withLock { $0.machine.state } }
    var progress: GroupProgress { life.withLock { $0.progress } }
    var isFromCache: Bool { life.withLock { $0.isFromCache } }

    /// Why it, or a group around it, was ended.
    var ending: End? { End(rawValue: end.load(ordering: .acquiring)) ?? outer?.ending }

    /// Its own priority, or that of the nearest group around it that has one.
    var priority: RequestPriority? {
        RequestPriority(rawValue: ownPriority.load(ordering: .relaxed)) ?? outer?.priority
    }

    /// Whether its priority is that of the given group.
    func hasPriority(of group: GroupRun) -> Bool {
        if self === group { return true }
        return ownPriority.load(ordering: .relaxed) == Self.noPriority && outer?.hasPriority(of: group) == true
    }

    private static let noPriority = Int.max

    /// For a group only the duration is measured; bytes are counted for its members.
    var metrics: RequestMetrics {
        var metrics = RequestMetrics()
        metrics.total = life.withLock { $0.total } ?? start.duration(to: .now)
        return metrics
    }

    // MARK: Events

    /// This many members have ended. Any thread.
    func advance(to progress: GroupProgress) {
        life.withLock { life in
            // Members that end at the same time may get here in another order.
            if progress.finished >= life.progress.finished { life.progress = progress }
        }
        reporter?.report { self.progress }
    }

    /// Releases the closure that receives the progress. Call it after the last report.
    func forgetProgress() { reporter?.forget() }

    /// Runs that read the priority later, or are submitted later, see it.
    func setPriority(_ priority: RequestPriority) {
        ownPriority.store(priority.rawValue, ordering: .relaxed)
        atomicMemoryFence(ordering: .sequentiallyConsistent)
    }

    /// [the task that carries its members] Returns `false` if it was already ended.
    func begin() -> Bool {
        let task = RunningTask()
        return life.withLock { life in
            life.machine.started()
            let isWanted = end.load(ordering: .acquiring) == 0
            if isWanted { life.task = task }
            return isWanted
        }
    }

    /// [the task that carries its members] The members have ended.
    func done() { life.withLock { $0.task = nil } }

    /// Ends it: active members are cancelled, and nothing new starts. The first reason counts. Any thread.
    func end(_ reason: End) {
        // Not cancelled with the lock held, because cancellation handlers run application code.
        life.withLock { life in
            _ = end.compareExchange(expected: 0, desired: reason.rawValue, ordering: .acquiringAndReleasing)
            return life.task.take()
        }?.cancel()
    }

    /// Cancels the group.
    func cancel() {
        switch life.withLock({ $0.machine.cancel() }) {
        case .stopTransfer: end(.cancelled)
        case .replaceResult, .none: break
        }
    }

    /// The result is known, but not delivered.
    func answered(isFromCache: Bool?) {
        life.withLock { life in
            life.machine.answered()
            life.isFromCache = isFromCache ?? false
            life.total = start.duration(to: .now)
        }
    }

    /// The result is about to be delivered.
    func deliver(_ end: RunState) -> RunMachine.DeliverAction { life.withLock { $0.machine.deliver(end) } }
}

extension GroupRun {
    /// Why nothing new may start in it; `nil` if it may.
    func refusal(url: String = "") -> RequestError? {
        if let ending { return RequestError(ending, url: url) }
        if let deadline, deadline <= .now { return RequestError(.deadline, url: url) }
        return nil
    }

    /// Admits a member: the settings of the group apply to its transfer. Returns the reason if it may not start.
    @inline(never)
    func admit(_ run: Run, _ transfer: inout TransferRequest) -> RequestError? {
        run.group = self
        run.inheritsPriority = transfer.ring == RequestPriority.normal.ring
        if let priority, run.inheritsPriority { transfer.ring = priority.ring }
        if let deadline {
            let remaining = milliseconds(ContinuousClock.now.duration(to: deadline))
            let own = transfer.timeouts.deadline
            transfer.timeouts.deadline = own == 0 ? remaining : min(own, remaining)
        }
        return refusal(url: run.url)
    }
}

// MARK: Members

extension GroupRun {
    /// Runs it in the caller's task.
    nonisolated(nonsending) func send(_ body: GroupBody, by core: AgentCore) async throws(RequestError) -> Made {
        let refusal = core.enter(self)
        let result = await carry(body, refusal: refusal, by: core)
        await onQueue(queues?.callback) { [self] in
            // A cancel after the result has no effect on an awaited run.
            _ = deliver(RunState(result))
            RunEnd.deliver(takeWatch(), RunOutcome(result), metrics) {}
        }
        core.leave(self)
        return try result.get()
    }

    /// The same, not on the caller's actor.
    @concurrent
    func sendOffActor(_ body: GroupBody, by core: AgentCore) async throws(RequestError) -> Made {
        try await send(body, by: core)
    }

    /// Runs the members in a child of the caller's task, so that they can be ended separately.
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
                    // The transport ends transfers at the deadline itself; this is for application code between them.
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
    /// A default priority means that of the group.
    var inheritsPriority: Bool { priority == .normal }
}

/// The settings of a batch or a chain as a whole, set by the methods of ``BatchRequest`` and ``ChainRequest``.
struct GroupSettings: Sendable {
    var tag: String?
    var userInfo: [String: any Sendable] = [:]
    /// `nil` means that of the group that contains it.
    var priority: RequestPriority?
    var deadline: Duration?
    var observers: [any RequestObserver] = []

    /// Whether nothing is set.
    var isPlain: Bool {
        tag == nil && priority == nil && deadline == nil && observers.isEmpty && userInfo.isEmpty
    }
}
