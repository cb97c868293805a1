public import Dispatch

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
        guard let progress else { return try await core.sendOffActor(body, core.begin(body, in: nil)).value.open() }
        let reports = ReportQueue()
        let reporter = ProgressReporter(on: reports.queue, reports.gated(progress))
        let run = core.begin(body, in: nil, reporter: reporter)
        let made: Made
        do throws(RequestError) {
            made = try await core.sendOffActor(body, run)
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
        start(group, on: queue, nil, .delegate(.init(object: delegate)))
    }

    private func start<G: RequestGroup>(
        _ group: G, on queue: DispatchQueue?, _ progress: (@Sendable (GroupProgress) -> Void)?,
        _ receiver: StartedGroup<G>.Receiver
    ) -> RequestTask<G.Value> {
        let body = group.groupMember.member.body
        let queue = queue ?? core.callbackQueue
        let run = core.begin(body, in: nil, reporter: progress.map { ProgressReporter(on: queue, $0) })
        let started = StartedGroup(group, run, on: queue, core: core, receiver: receiver)
        let refusal = core.enter(run)
        // The one task that is not a child of another: a result that goes to a queue has no task to run in.
        Task { [core] in started.deliver(await core.carry(body, run, refusal: refusal), core) }
        return RequestTask(run: started)
    }
}
