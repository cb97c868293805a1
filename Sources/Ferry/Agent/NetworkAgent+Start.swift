public import Dispatch
package import FerryTransport

extension NetworkAgent {
    /// Starts a request. `completion` is called once with the result, on `queue`, or on the configuration's callback
    /// queue if `queue` is `nil`. If you pass a queue of your own, make it serial so that callbacks do not overlap.
    ///
    /// Validation and decoding run on the agent's processing queue.
    @discardableResult
    public func start<R: Request>(
        _ request: R, on queue: DispatchQueue? = nil,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        RequestTask(run: RequestRun<R>.start(request, on: queue, .closure(completion), by: core))
    }

    /// Starts a request. The result goes to `delegate` once, on `queue`, or on the configuration's callback queue if
    /// `queue` is `nil`. The delegate is held weakly: if it no longer exists, the result is discarded.
    @discardableResult
    public func start<R: Request>(
        _ request: R, delegate: any RequestDelegate, on queue: DispatchQueue? = nil
    ) -> RequestTask<R.Value> {
        RequestTask(run: RequestRun<R>.start(request, on: queue, .delegate(WeakDelegate(delegate)), by: core))
    }
}

extension NetworkAgent {
    /// Starts a request and reports the upload progress: at the start, then at most every 50 milliseconds, and when the
    /// whole body has been handed to the network. Progress restarts when the body is sent again, and stays unchanged
    /// after a redirect that drops the body. A response from the cache reports no progress. The run does not share its
    /// transfer, even if the request ``Request/coalesces``. All callbacks run on `queue`, the result last.
    @discardableResult
    public func start<R: Request>(
        _ request: R, on queue: DispatchQueue? = nil,
        uploadProgress: @escaping @Sendable (UploadProgress) -> Void,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        RequestTask(
            run: RequestRun<R>.start(request, on: queue, .closure(completion), progress: uploadProgress, by: core))
    }

    /// Sends a request, reports the upload progress, and returns the reply. Progress is reported at the start, then at
    /// most every 50 milliseconds, and when the whole body has been handed to the network, on a serial queue of the
    /// run. All reports are made before the call returns. A run that is cancelled, shut down or timed out does not wait
    /// for a report that blocks.
    ///
    /// The run neither looks into the cache nor stores its response, and does not share its transfer. With
    /// ``CacheMode/cacheOnly`` it fails with `notCached(notConfigured)`.
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(
        _ request: R, uploadProgress: @escaping @Sendable (UploadProgress) -> Void
    ) async throws(RequestError) -> Reply<R.Value> {
        let reports = ReportQueue()
        let run = AwaitedRun.start(request, progress: (reports.queue, reports.gated(uploadProgress)), by: core)
        var answer = await run.answer(by: core)
        if !run.isEnd(answer, by: core) { answer = await run.goOn(request, after: answer, by: core) }
        await reports.drain(endsInTime: answer.isEarlyEnd)
        return try await run.concludeOffActor(request, answer, by: core)
    }
}

extension RequestTask {
    /// How much of the body has been handed to the network. `nil` if there is no body, an empty one, or if the run may
    /// share its transfer.
    public var uploadProgress: UploadProgress? { run.meter?.progress }
}

/// The handle of a run: observes and cancels it. Copies refer to the same run.
///
/// Releasing the handle does not end the run.
public struct RequestTask<Value: Sendable>: Sendable, Identifiable, Hashable {
    let run: any RunHandle

    /// The number of the run, unique within its agent.
    public var id: UInt64 { run.number }

    /// The current state.
    public var state: RunState { run.state }

    /// The request's tag.
    public var tag: String? { run.tag }

    /// Durations and bytes. They are complete once the run has ended; before that, only the time in the queue and the
    /// time since the start are known. A batch or chain has only `total`.
    public var metrics: RequestMetrics { run.metrics }

    /// The progress of a batch or chain; `nil` for a single request.
    public var progress: GroupProgress? { run.progress }

    /// Whether the whole result came from a cache. It is `false` until that is known.
    public var isFromCache: Bool { run.isFromCache }

    /// Cancels the run: its callback gets `cancelled`, on the same queue as any other result. Call it from any thread.
    /// It has no effect on a run that has ended.
    public func cancel() { run.cancel() }

    /// Changes the priority of the run in the queue. A transfer that has already started is not affected, but redirects
    /// and retries that follow use the new priority. Call it from any thread.
    public func setPriority(_ priority: RequestPriority) { run.setPriority(priority) }

    /// Whether both are handles of the same run.
    public static func == (left: RequestTask, right: RequestTask) -> Bool { left.run === right.run }

    /// Hashes the identity of the run.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(run)) }
}

/// Receives the results of runs. It is held weakly, and called once for each run, on the callback queue.
public protocol RequestDelegate: AnyObject, Sendable {
    /// A run has succeeded. The default implementation does nothing.
    func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>)

    /// A run has failed or was cancelled. The default implementation does nothing.
    func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError)

    /// A batch or chain has succeeded. The default implementation does nothing.
    func groupFinished<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, value: G.Value)

    /// A batch or chain has failed or was cancelled. The default implementation does nothing.
    func groupFailed<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, error: RequestError)
}

extension RequestDelegate {
    /// Does nothing.
    public func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>) {}

    /// Does nothing.
    public func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError) {}

    /// Does nothing.
    public func groupFinished<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, value: G.Value) {}

    /// Does nothing.
    public func groupFailed<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, error: RequestError) {}
}

/// Receives the results of a ``LoopSender``, on the thread of its event loop.
package protocol LoopSenderReceiver: AnyObject, Sendable {
    /// Called once with the result of the request at this index.
    func ended(_ place: Int, _ result: Result<Response, RequestError>)
}

/// Sends a request again and again on the thread of one event loop, without a task, a continuation or a wake-up between
/// a response and the next request. For load generators.
///
/// A run that needs more than one response (a redirect, a retry, a challenge) continues in a task on the same thread.
/// The cache is not used. The request is read once, and its URL and header fields are made once, as in other load
/// generators; only a request that adapters change, or whose body is read as it is sent, is made again each time.
///
/// Sendable because only the event loop's thread touches mutable state, which each method checks.
package final class LoopSender<R: Request>: AnswerReading, @unchecked Sendable {
    private let core: AgentCore
    private let clock: LoopClock
    private let request: R
    private let snapshot: RequestSnapshot?
    /// The active runs, by their index.
    private var runs: [AwaitedRun?] = []
    /// The index of the run that is being started, and its result if that arrives during the start.
    private var starting = -1
    private var early: Answer?
    private weak var receiver: (any LoopSenderReceiver)?

    package init(_ request: R, by agent: NetworkAgent, on clock: LoopClock) {
        core = agent.core
        self.clock = clock
        self.request = request
        snapshot = core.builder.fixed(request, by: core)
    }

    /// Sets the receiver. Call it once, before the first request. The receiver is held weakly.
    package func attach(_ receiver: any LoopSenderReceiver) { self.receiver = receiver }

    /// Sends the request for an index that has no active run. Returns `nil` if the receiver gets the result later, or
    /// the result if the request was refused at once.
    package func send(_ place: Int) -> Result<Response, RequestError>? {
        precondition(clock.isCurrent, "a loop's sender is used on the loop's thread")
        starting = place
        let run = AwaitedRun.start(request, snapshot, answering: AnswerReader(object: self, place: place), by: core)
        starting = -1
        if let answer = early.take() { return result(of: run, place, answer) }
        while place >= runs.count { runs.append(nil) }
        runs[place] = run
        return nil
    }

    func answered(_ place: Int, _ answer: Answer) {
        precondition(clock.isCurrent, "a run was answered on another thread than its loop's")
        if place == starting {
            early = answer
            return
        }
        guard let run = runs[place].take() else { preconditionFailure("an answer came that nobody waits for") }
        if let result = result(of: run, place, answer) { receiver?.ended(place, result) }
    }

    /// `nil` if the run continues in a task.
    private func result(of run: AwaitedRun, _ place: Int, _ answer: Answer) -> Result<Response, RequestError>? {
        if run.isEnd(answer, by: core) { return conclude(run, answer) }
        Task(executorPreference: clock.executor) {
            let last = await run.goOn(self.request, after: answer, by: self.core)
            self.receiver?.ended(place, self.conclude(run, last))
        }
        return nil
    }

    private func conclude(_ run: AwaitedRun, _ answer: Answer) -> Result<Response, RequestError> {
        Result { () throws(RequestError) in try run.conclude(request, answer, by: core).response }
    }
}

extension RequestBuilder {
    /// The request for all its runs; `nil` if they may differ, or if it is invalid.
    fileprivate func fixed<R: Request>(_ request: R, by core: AgentCore) -> RequestSnapshot? {
        let isMadeAnew =
            Exchange.isNeeded(for: request, by: core) || request.idempotencyKey != nil || TraceContext.current != nil
        if isMadeAnew { return nil }
        let built = try? RequestSnapshot(networkRequest(request, at: servers, opensBody: false))
        return built?.isPulled == false ? built : nil
    }
}

extension NetworkAgent {
    /// The clocks of the event loops; empty if there are none, as with a stub.
    package var clocks: [LoopClock] { core.transport.clocks }
}
