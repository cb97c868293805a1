public import Dispatch
import Synchronization

/// A group whose result goes to a closure or a delegate.
final class StartedGroup<G: RequestGroup>: RunHandle {
    private let run: GroupRun
    private let queue: DispatchQueue
    /// All three until the result is delivered: what their closures hold may hold the run.
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

    /// Hands the result over on the queue, then lets go of the record.
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
        RunEnd.deliver(run.watch, outcome, run.metrics) {
            switch receiver.withLock({ $0.take() }) {
            case .closure(let closure): closure(result)
            case .delegate(let delegate):
                if let object = delegate.object, let group { tell(object, group, result) }
            case nil: break
            }
        }
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
    /// Sends a batch or a chain and waits for its value. Cancelling the task cancels what runs in it.
    ///
    /// It runs in the caller's task and children of that, not on the caller's actor. `progress`, if there is one, is
    /// told on a serial queue of the run's own whenever members have ended, all of it before this returns; but a run
    /// that is cancelled, shut down or timed out does not wait for a report that blocks.
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

    /// Starts a batch or a chain; its result comes by `completion`, once, on `queue`, or on the configuration's
    /// callback queue when there is none. So does `progress`, whenever members have ended. A queue of one's own must be
    /// serial for callbacks not to overlap.
    @discardableResult
    public func start<G: RequestGroup>(
        _ group: G, on queue: DispatchQueue? = nil, progress: (@Sendable (GroupProgress) -> Void)? = nil,
        completion: @escaping @Sendable (Result<G.Value, RequestError>) -> Void
    ) -> RequestTask<G.Value> {
        start(group, on: queue, progress, .closure(completion))
    }

    /// Starts a batch or a chain; its result goes to `delegate`, once, on `queue`, or on the configuration's callback
    /// queue. The delegate is held weakly: when it is gone, the result goes nowhere.
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
        // The one task that is not a child of another: a result that goes to a queue has no task to run in.
        Task { [core] in started.deliver(await run.carry(body, refusal: refusal, by: core), core) }
        return RequestTask(run: started)
    }
}

/// The task that carries a group's members, so that the group can be ended without ending the task it was sent from.
///
/// Sendable because all that is done with it is to cancel it, which any thread may. The runtime counts it as a
/// reference to the task, so it may outlive that: one that has ended is not changed by a cancel. This does not hold for
/// the task of an `async let`, whose memory is a piece of its parent's; so it is made in children of task groups only,
/// which have memory of their own.
struct RunningTask: @unchecked Sendable {
    private let task: UnsafeCurrentTask

    /// The task that runs now; `nil` outside of any.
    init?() {
        guard let task = withUnsafeCurrentTask(body: { $0 }) else { return nil }
        self.task = task
    }

    func cancel() { task.cancel() }
}
