public import Dispatch
import FerrySynchronization

/// A group whose result goes to a closure or a delegate.
final class StartedGroup<G: RequestGroup>: RunHandle {
    private let run: GroupRun
    private let queue: DispatchQueue
    /// All three until the result is delivered, because their closures may hold the run.
    private let group: Mutex<G?>
    private let receiver: Mutex<Receiver<G.Value>?>
    private let core: Mutex<AgentCore?>

    init(_ group: G, _ run: GroupRun, on queue: DispatchQueue, core: AgentCore, receiver: Receiver<G.Value>) {
        self.group = Mutex(group)
        self.run = run
        self.queue = queue
        self.receiver = Mutex(receiver)
        self.core = Mutex(core)
    }

    var number: UInt64 { run.number }
    var state: RunState { run.state }
    var tag: String? { run.tag }
    var metrics: RequestMetrics { run.metrics }
    var progress: GroupProgress? { run.progress }
    var isFromCache: Bool { run.isFromCache }
    var meter: UploadMeter? { nil }
    func cancel() { run.cancel() }
    func setPriority(_ priority: RequestPriority) {
        guard let core = core.withLock({ $0 }) else { return }
        core.setPriority(priority, of: run)
    }

    /// Delivers the result on the queue, then releases the record.
    func deliver(_ result: Result<Made, RequestError>, _ core: AgentCore) {
        queue.async {
            dispatchPrecondition(condition: .onQueue(self.queue))
            self.callBack(result)
            self.core.withLock { $0 = nil }
            core.leave(self.run)
        }
    }

    private func callBack(_ made: Result<Made, RequestError>) {
        var result = made.map { $0.value.open(as: G.Value.self) }
        if run.deliver(RunState(result)) == .cancelled {
            let error =
                if case .failure(let error) = result { error.cancelled } else { RequestError(GroupRun.End.cancelled) }
            result = .failure(error)
            _ = run.deliver(.cancelled)
        }
        let outcome =
            switch result {
            case .success: RunOutcome.finished(status: nil, isFromCache: run.isFromCache)
            case .failure(let error): RunOutcome(error)
            }
        let group = group.withLock { $0.take() }
        RunEnd.deliver(run.takeWatch(), outcome, run.metrics) {
            switch receiver.withLock({ $0.take() }) {
            case .closure(let closure): closure(result)
            case .delegate(let delegate):
                if let object = delegate.object, let group { tell(object, group, result) }
            case nil: break
            }
        }
        run.forgetProgress()
    }

    private func tell(_ delegate: any RequestDelegate, _ group: G, _ result: Result<G.Value, RequestError>) {
        let task = RequestTask<G.Value>(run: self)
        switch result {
        case .success(let value): delegate.groupFinished(task, group, value: value)
        case .failure(let error): delegate.groupFailed(task, group, error: error)
        }
    }
}

extension NetworkAgent {
    /// Sends a batch or a chain and returns its value. Throws the error of the first member that fails; a batch with
    /// `.collectAll` throws only if it is ended as a whole. Cancelling the task cancels the active members.
    ///
    /// It runs in the caller's task and child tasks, not on the caller's actor. `progress` is called whenever members
    /// have ended, on a serial queue of the run, and all reports are made before this returns. A run that is cancelled,
    /// shut down or timed out does not wait for a report that blocks.
    @discardableResult
    public nonisolated(nonsending) func send<G: RequestGroup>(
        _ group: G, progress: (@Sendable (GroupProgress) -> Void)? = nil
    ) async throws(RequestError) -> G.Value {
        let body = group.groupMember.member.body
        guard let progress else {
            return try await GroupRun(body, in: nil, by: core).sendOffActor(body, by: core).value.open()
        }
        let reports = ReportQueue()
        let reporter = ProgressReporter(on: reports.queue, reports.gated(progress))
        let run = GroupRun(body, in: nil, reporter: reporter, by: core)
        let made: Made
        do throws(RequestError) {
            made = try await run.sendOffActor(body, by: core)
        } catch {
            await reports.drain(endsInTime: error.isEarlyEnd)
            throw error
        }
        await reports.drain(endsInTime: false)
        return made.value.open()
    }

    /// Starts a batch or a chain. `completion` is called once with the result, and `progress` whenever members have
    /// ended, on `queue`, or on the configuration's callback queue if `queue` is `nil`. If you pass a queue of your
    /// own, make it serial so that callbacks do not overlap.
    @discardableResult
    public func start<G: RequestGroup>(
        _ group: G, on queue: DispatchQueue? = nil, progress: (@Sendable (GroupProgress) -> Void)? = nil,
        completion: @escaping @Sendable (Result<G.Value, RequestError>) -> Void
    ) -> RequestTask<G.Value> {
        start(group, on: queue, progress, .closure(completion))
    }

    /// Starts a batch or a chain. The result goes to `delegate` once, on `queue`, or on the configuration's callback
    /// queue. The delegate is held weakly: if it no longer exists, the result is discarded.
    @discardableResult
    public func start<G: RequestGroup>(
        _ group: G, delegate: any RequestDelegate, on queue: DispatchQueue? = nil
    ) -> RequestTask<G.Value> {
        start(group, on: queue, nil, .delegate(WeakDelegate(delegate)))
    }

    private func start<G: RequestGroup>(
        _ group: G, on queue: DispatchQueue?, _ progress: (@Sendable (GroupProgress) -> Void)?,
        _ receiver: Receiver<G.Value>
    ) -> RequestTask<G.Value> {
        let body = group.groupMember.member.body
        let queue = queue ?? core.callbackQueue
        let run = GroupRun(
            body, in: nil, calling: queue, reporter: progress.map { ProgressReporter(on: queue, $0) }, by: core)
        let started = StartedGroup(group, run, on: queue, core: core, receiver: receiver)
        let refusal = core.enter(run)
        // The only task without a parent, because a result that goes to a queue has no task to run in.
        Task { [core] in started.deliver(await run.carry(body, refusal: refusal, by: core), core) }
        return RequestTask(run: started)
    }
}

/// The task that carries a group's members, so that the group can be ended without ending the task that sent it.
///
/// Sendable because the only operation on it is to cancel it, which any thread may do. The runtime counts it as a
/// reference to the task, so it may outlive the task; cancelling an ended task has no effect. This is not true for the
/// task of an `async let`, whose memory is a part of its parent's, so it is created only in children of task groups,
/// which have their own memory.
struct RunningTask: @unchecked Sendable {
    private let task: UnsafeCurrentTask

    /// The current task; `nil` outside of a task.
    init?() {
        guard let task = withUnsafeCurrentTask(body: { $0 }) else { return nil }
        self.task = task
    }

    func cancel() { task.cancel() }
}
