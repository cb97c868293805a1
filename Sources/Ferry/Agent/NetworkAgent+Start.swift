public import Dispatch
package import FerryTransport

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

/// Receives the results of a ``LoopSender``, on its loop's thread.
package protocol LoopSenderReceiver: AnyObject, Sendable {
    /// The result of the request of this place, once.
    func ended(_ place: Int, _ result: Result<Response, RequestError>)
}

/// Sends a request again and again on the thread of one loop: no task, no continuation and no wake-up stands between a
/// response and the next request. For generators of load.
///
/// A run that a response does not end (a redirect, a retry, a challenge) goes on in a task on the same thread. The
/// cache is not asked.
///
/// Sendable because only the loop's thread touches what changes, which each method checks.
package final class LoopSender<R: Request>: AnswerReading, @unchecked Sendable {
    private let core: AgentCore
    private let clock: LoopClock
    private let request: R
    /// Those that are on their way, by their place.
    private var runs: [AwaitedRun?] = []
    /// The place of the run that is being started, and its answer if it comes before that is done.
    private var starting = -1
    private var early: Answer?
    private weak var receiver: (any LoopSenderReceiver)?

    package init(_ request: R, by agent: NetworkAgent, on clock: LoopClock) {
        core = agent.core
        self.clock = clock
        self.request = request
    }

    /// Sets who receives; called once, before the first request. The receiver is held weakly.
    package func attach(_ receiver: any LoopSenderReceiver) { self.receiver = receiver }

    /// Sends the request for a place that has none on its way. `nil` where the receiver gets the result later; the
    /// result itself where the request was refused at once.
    package func send(_ place: Int) -> Result<Response, RequestError>? {
        precondition(clock.isCurrent, "a loop's sender is used on the loop's thread")
        starting = place
        let run = AwaitedRun.start(request, answering: AnswerReader(object: self, place: place), by: core)
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

    /// `nil` where the run goes on in a task.
    private func result(of run: AwaitedRun, _ place: Int, _ answer: Answer) -> Result<Response, RequestError>? {
        if run.isEnd(answer, of: request, by: core) { return conclude(run, answer) }
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

extension NetworkAgent {
    /// The clocks of its loops; empty where it has none, as with a stand-in for tests.
    package var clocks: [LoopClock] { core.transport.clocks }
}
