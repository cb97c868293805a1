import Dispatch
package import FerryTransport

/// Sends requests: owns the connections, the queue of what waits, and the table of what runs.
///
/// Several agents live side by side, each with threads and connections of its own. Libraries take one; small programs
/// use ``shared``. Shut it down with ``shutdown(grace:)`` or let ``withNetworkAgent(configuration:grace:isolation:_:)``
/// do it; one that is let go ends by itself when its last run is answered.
///
/// Every run gets exactly one result, whatever happens.
public final class NetworkAgent: Sendable {
    let core: AgentCore

    /// The configuration it was made with. Base, CDN and filters may have been exchanged since.
    public var configuration: NetworkConfiguration { core.configuration }

    /// An agent with a network of its own.
    ///
    /// What cannot be set up (a thread, a file of authorities) fails the runs, each with its own error.
    public convenience init(configuration: NetworkConfiguration = NetworkConfiguration()) {
        self.init(configuration: configuration, transport: makeNetworkTransport(configuration.transport))
    }

    package convenience init(configuration: NetworkConfiguration, transport: any Transporting) {
        self.init(AgentCore(configuration, transport))
    }

    init(_ core: AgentCore) { self.core = core }

    /// One with the defaults, for small programs; it is never shut down.
    public static let shared = NetworkAgent()

    /// Sends a request and waits for its reply. Cancelling the task cancels the run, which then throws `cancelled`.
    ///
    /// The status is checked and the value made in the caller's task, not on the caller's actor.
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(_ request: R) async throws(RequestError) -> Reply<R.Value> {
        if core.asksCache(request) { return try await core.send(request, by: request.cacheMode) }
        let run = core.startAwaited(request)
        var answer = await core.answer(to: run)
        if !core.isEnd(answer, of: run, request) {
            answer = await core.goOn(request, run, after: answer)
        }
        // A caller on no actor stays where it is: every hop asks the runtime for an executor.
        if isOnNoActor() { return try core.conclude(request, answer, of: run) }
        return try await core.concludeOffActor(request, answer, of: run)
    }

    /// Cancels every run in flight. Each gets its one result, `cancelled`.
    public func cancelAll() { core.cancelAll() }

    /// Cancels the runs in flight whose request has this tag.
    public func cancelAll(tagged tag: String) { core.cancelAll(tagged: tag) }

    /// Gauges and counters.
    public var statistics: AgentStatistics { AgentStatistics(core.transport.statistics) }

    /// One of the agent's own threads, for tasks that should not change threads between a result and their next
    /// request: `Task(executorPreference: agent.taskExecutor) { … }`.
    ///
    /// For short code that does not block: nothing of the network moves while it runs. Every read names the next of the
    /// agent's loops in turn. After shutdown the jobs run on the global executor.
    public var taskExecutor: any TaskExecutor { core.transport.nextExecutor() ?? globalConcurrentExecutor }

    /// Ends the agent: refuses new runs with `shutdown`, waits up to `grace` for those in flight and their callbacks,
    /// then ends the rest with `shutdown`, and returns when every run has been answered. Within the grace a run goes on
    /// to its last response, redirects, retries and challenges included; the members of groups in flight and the runs
    /// of a token's refresh may begin. A callback that is still blocked, or stands in
    /// its queue, when the grace is over comes afterwards.
    ///
    /// Any number of times, also at once. Cancelling the task that waits ends its patience at once.
    public func shutdown(grace: Duration = .seconds(5)) async { await core.shutdown(grace: grace) }
}

func isOnNoActor(_ isolation: isolated (any Actor)? = #isolation) -> Bool { isolation == nil }

extension AgentCore {
    // Never inlined, both: their variables would live in the frame of `send`, in each of the tasks that wait.

    @inline(never)
    func startAwaited<R: Request>(
        _ request: R, progress: (queue: DispatchQueue, report: UploadMeter.Report)? = nil,
        in group: GroupRun? = nil, answering reader: AnswerReader? = nil
    ) -> AwaitedRun {
        var built: BuiltRequest
        let servers = builder.servers
        let travels = travelsFirst(request)
        do throws(RequestError) {
            built = try builder.build(request, at: servers, opensBody: !travels)
        } catch {
            let run = AwaitedRun(
                url: error.url, tag: request.tag, watch: begin(request, url: error.url, in: group), reader: reader)
            refuse(run, error)
            return run
        }
        let url = built.transfer.url
        let journey =
            travels
            ? Journey(tag: request.tag, of: self, in: group, inherits: group != nil && request.inheritsPriority) : nil
        let run = AwaitedRun(
            url: url, tag: request.tag, watch: begin(request, url: url, in: group), journey: journey, servers: servers,
            snapshot: RequestSnapshot(built), reader: reader)
        if let progress { run.meter = UploadMeter(of: built.transfer, on: progress.queue, progress.report) }
        if let refusal = group.flatMap({ $0.admit(run, &built.transfer, of: request) }) {
            refuse(run, refusal)
        } else if withUnsafeCurrentTask(body: { $0?.isCancelled ?? false }) {
            refuse(run, .cancelled(nil, url: run.url))
        } else if let journey {
            handOver(run, to: journey)
        } else {
            start(run, built, mayBeRetried: builder.mayRetry(request))
        }
        return run
    }

    @inline(never)
    func conclude<R: Request>(
        _ request: R, _ answer: Answer, of run: AwaitedRun
    ) throws(RequestError) -> Reply<R.Value> {
        if let watch = run.watch { return try conclude(request, answer, url: run.url, watchedBy: watch) }
        var times = ProcessingTimes(isMeasured: false)
        do throws(RequestError) {
            let reply = try reply(to: request, answer, url: run.url, &times)
            request.completionFilter(reply)
            return reply
        } catch {
            request.failureFilter(error)
            throw error
        }
    }

    @inline(never)
    private func conclude<R: Request>(
        _ request: R, _ answer: Answer, url: String, watchedBy watch: RunWatch
    ) throws(RequestError) -> Reply<R.Value> {
        var times = ProcessingTimes(isMeasured: true)
        let reply = Result { () throws(RequestError) in try self.reply(to: request, answer, url: url, &times) }
        if case .result(let result) = answer { watch.received(result) }
        let outcome = RunOutcome(reply)
        watch.willStop(outcome, RequestMetrics(answer, times))
        request.filter(reply)
        watch.didStop(outcome)
        return try reply.get()
    }

    @concurrent
    func concludeOffActor<R: Request>(
        _ request: R, _ answer: Answer, of run: AwaitedRun
    ) async throws(RequestError) -> Reply<R.Value> {
        try conclude(request, answer, of: run)
    }

    /// Waits for the answer of a run that was started.
    nonisolated(nonsending) func answer(to run: AwaitedRun) async -> Answer {
        await withTaskCancellationHandler {
            await run.answer()
        } onCancel: {
            cancel(run)
        }
    }

    @concurrent
    func goOn<R: Request>(_ request: R, _ run: AwaitedRun, after answer: Answer) async -> Answer {
        let journey = journey(of: run)
        return await withTaskCancellationHandler {
            await goOn(request, run, journey, after: answer)
        } onCancel: {
            journey.end(.cancelled)
        }
    }

    /// What a run goes on as that is not settled. To be asked for in the task that started the run, or in one made
    /// there.
    func journey(of run: AwaitedRun) -> Journey {
        run.journey ?? Journey(tag: run.tag, of: self, in: run.group, inherits: run.inheritsPriority)
    }

    /// Goes on to the last answer. To end it early is the caller's to see to.
    func goOn<R: Request>(_ request: R, _ run: AwaitedRun, _ journey: Journey, after answer: Answer) async -> Answer {
        enter(journey, from: run)
        return await travel(
            itinerary(
                of: request, run.snapshot.map { .success($0) }, at: run.servers ?? builder.servers, url: run.url,
                watch: run.watch, meter: run.meter, in: run.group),
            journey, after: answer)
    }
}
