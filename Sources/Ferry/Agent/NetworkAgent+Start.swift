public import Dispatch

extension NetworkAgent {
    /// Starts a request; its result comes by `completion`, once, on `queue`, or on the configuration's callback queue
    /// when there is none. A queue of one's own must be serial for callbacks not to overlap.
    ///
    /// The status is checked and the value made on the agent's processing queue.
    @discardableResult
    public func start<R: Request>(
        _ request: R, on queue: DispatchQueue? = nil,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        RequestTask(run: RequestRun<R>.start(request, on: queue, .closure(completion), by: core))
    }

    /// Starts a request; its result goes to `delegate`, once, on `queue`, or on the configuration's callback queue.
    /// The delegate is held weakly: when it is gone, the result goes nowhere.
    @discardableResult
    public func start<R: Request>(
        _ request: R, delegate: any RequestDelegate, on queue: DispatchQueue? = nil
    ) -> RequestTask<R.Value> {
        RequestTask(run: RequestRun<R>.start(request, on: queue, .delegate(WeakDelegate(delegate)), by: core))
    }
}

extension NetworkAgent {
    /// Starts a request and tells how its body leaves: when it begins, then at most every 50 milliseconds, and when all
    /// of it was handed to the network. It begins again where the body is sent again, and stays as it is behind a
    /// redirect that takes the body off. What the cache answers sends nothing, and tells nothing; nor is the transfer
    /// shared where the request ``Request/coalesces``. Everything comes on `queue`, the result last.
    @discardableResult
    public func start<R: Request>(
        _ request: R, on queue: DispatchQueue? = nil,
        uploadProgress: @escaping @Sendable (UploadProgress) -> Void,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        RequestTask(
            run: RequestRun<R>.start(request, on: queue, .closure(completion), progress: uploadProgress, by: core))
    }

    /// Sends a request and waits for its reply, and tells how its body leaves: when it begins, then at most every 50
    /// milliseconds, and when all of it was handed to the network. That comes on a serial queue of the run's own, all
    /// of it before this returns; but a run that is cancelled, shut down or timed out does not wait for a report that
    /// blocks.
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(
        _ request: R, uploadProgress: @escaping @Sendable (UploadProgress) -> Void
    ) async throws(RequestError) -> Reply<R.Value> {
        let reports = ReportQueue()
        let run = AwaitedRun.start(request, progress: (reports.queue, reports.gated(uploadProgress)), by: core)
        var answer = await run.answer(by: core)
        if !run.isEnd(answer, of: request, by: core) { answer = await run.goOn(request, after: answer, by: core) }
        await reports.drain(endsInTime: answer.isEarlyEnd)
        return try await run.concludeOffActor(request, answer, by: core)
    }
}

extension RequestTask {
    /// How much of its body has been handed to the network; `nil` when it has none, or an empty one, or may share the
    /// transfer with others.
    public var uploadProgress: UploadProgress? { run.meter?.progress }
}

/// A run that was started: the handle to look at it and to end it. Copies name the same run.
///
/// Letting go of it does not end the run.
public struct RequestTask<Value: Sendable>: Sendable, Identifiable, Hashable {
    let run: any RunHandle

    /// Unique in its agent.
    public var id: UInt64 { run.number }

    /// Where it stands.
    public var state: RunState { run.state }

    /// The request's tag.
    public var tag: String? { run.tag }

    /// Times and bytes: of a run that has ended all of them, before that the wait in the queue and the time since its
    /// start. Of a batch or chain only `total` is measured; `processing` and `decoding` only where somebody observes.
    public var metrics: RequestMetrics { run.metrics }

    /// How far a batch or chain has come; `nil` of a request.
    public var progress: GroupProgress? { run.progress }

    /// Whether all that it brought came from a cache. False until that is known.
    public var isFromCache: Bool { run.isFromCache }

    /// Ends it: the one callback comes, with `cancelled`, on the same queue as any result. Any thread; afterwards, and
    /// once the result is delivered, it is nothing.
    public func cancel() { run.cancel() }

    /// Changes its place among those that wait; what runs already is left alone, and what follows it, behind a redirect
    /// or as a retry, has the new place. Any thread.
    public func setPriority(_ priority: RequestPriority) { run.setPriority(priority) }

    /// The same run.
    public static func == (left: RequestTask, right: RequestTask) -> Bool { left.run === right.run }

    /// By its run.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(run)) }
}

/// Receives the results of runs; held weakly. Called on the callback queue, once for each run.
public protocol RequestDelegate: AnyObject, Sendable {
    /// The run ended well. The default does nothing.
    func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>)

    /// The run was cancelled or failed. The default does nothing.
    func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError)

    /// A batch or chain ended well. The default does nothing.
    func groupFinished<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, value: G.Value)

    /// A batch or chain was cancelled or failed. The default does nothing.
    func groupFailed<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, error: RequestError)
}

extension RequestDelegate {
    /// Nothing.
    public func requestFinished<R: Request>(_ task: RequestTask<R.Value>, _ request: R, reply: Reply<R.Value>) {}

    /// Nothing.
    public func requestFailed<R: Request>(_ task: RequestTask<R.Value>, _ request: R, error: RequestError) {}

    /// Nothing.
    public func groupFinished<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, value: G.Value) {}

    /// Nothing.
    public func groupFailed<G: RequestGroup>(_ task: RequestTask<G.Value>, _ group: G, error: RequestError) {}
}
