import Dispatch
import FerryTransport

/// Where the result of a started run goes.
enum Receiver<Success: Sendable>: Sendable {
    case closure(@Sendable (Result<Success, RequestError>) -> Void)
    case delegate(WeakDelegate)
}

struct WeakDelegate: Sendable {
    weak let object: (any RequestDelegate)?

    init(_ object: any RequestDelegate) { self.object = object }
}

/// The run of one request type: creates its value and calls the closure or the delegate.
///
/// `outcome` and `delivery` are written on the processing queue and read later on the callback queue. The same is true
/// for `caching`, which is also used by the task between two visits to the processing queue. Both queues read `held`,
/// and the callback queue releases it at the end; `snapshot` and `begun` belong to the processing queue.
///
/// Apart from the request, no property has a generic type: each access to one would look it up in the runtime's tables,
/// which took a sixth of the time of a run, and a place for a reply would take memory while the run waits.
final class RequestRun<R: Request>: CallbackRun, @unchecked Sendable {
    /// `nil` once the result is being delivered, because the request may hold the handle of the run.
    private var held: R?
    private let servers: Servers
    /// The request as read at the start; `nil` if the run ends without it, and after its last response.
    private var snapshot: Result<RequestSnapshot, RequestError>?
    /// The record of a run that does not begin with a plain transfer or a hit. It is made in the caller's thread, where
    /// all settings are read. A run that uses the cache may need it again.
    private var begun: Begun?
    /// `nil` if the run uses neither the cache nor a shared transfer. Set before the run starts.
    private var caching: Caching?
    /// The receiver is one of these two, until the result is delivered.
    private var completion: (@Sendable (Result<Reply<R.Value>, RequestError>) -> Void)?
    private var delegate: WeakDelegate?
    /// The result without its value.
    private var outcome: Result<Response, RequestError>?
    /// Delivers the result.
    private var delivery: ((RequestRun) -> Void)?

    private init(
        _ request: R, method: String?, url: String, number: UInt64, queue: DispatchQueue, core: AgentCore,
        control: RunControl? = nil, servers: Servers, snapshot: Result<RequestSnapshot, RequestError>? = nil,
        receiver: Receiver<Reply<R.Value>>
    ) {
        held = request
        self.servers = servers
        self.snapshot = snapshot
        switch receiver {
        case .closure(let closure): completion = closure
        case .delegate(let weak): delegate = weak
        }
        super.init(
            url: url, tag: request.tag,
            watch: RunWatch.begin(request, method: method, url: url, number: number, by: core),
            number: number, queue: queue, core: core, control: control)
    }

    private var request: R {
        guard let held else { preconditionFailure("a run goes on after its result was delivered") }
        return held
    }

    // MARK: Start

    /// Starts a run. `mode` replaces the request's own mode. `cached` receives the stored response before the network
    /// is used.
    @discardableResult
    static func start(
        _ request: R, on queue: DispatchQueue?, _ receiver: Receiver<Reply<R.Value>>,
        progress: UploadMeter.Report? = nil, mode: CacheMode? = nil,
        cached: (@Sendable (Reply<R.Value>) -> Void)? = nil,
        by core: AgentCore
    ) -> RequestRun {
        let queue = queue ?? core.callbackQueue
        let number = core.nextNumber
        let servers = core.builder.servers
        func made(
            _ url: String, method: String? = nil, _ control: RunControl? = nil,
            _ snapshot: Result<RequestSnapshot, RequestError>? = nil
        ) -> RequestRun {
            RequestRun(
                request, method: method, url: url, number: number, queue: queue, core: core, control: control,
                servers: servers,
                snapshot: snapshot, receiver: receiver)
        }
        do throws(RequestError) {
            if mode != nil || core.usesCache(request) {
                let stage = try CacheStage.of(request, mode ?? request.cacheMode, at: servers, by: core)
                let method = stage.reading?.method.rawValue
                if cached == nil, !core.isClosed, let hit = stage.recall(for: request) {
                    let run = made(stage.url, method: method)
                    run.caching = Caching(stage, nil, in: .current)
                    core.answer(run, hit)
                    return run
                }
                // Here, because the request may read values that only the caller's thread or task has.
                let snapshot = stage.snapshot(of: request, at: servers)
                let control = RunControl(tag: request.tag, of: core)
                let run = made(stage.url, method: method, control, snapshot)
                run.caching = Caching(stage, cached)
                run.meter = meter(of: request, snapshot, on: queue, progress)
                run.begun = Begun(call: run.call(of: request, by: core))
                core.handOver(run, to: control)
                return run
            }
            // An exchange builds the request again: what can be read only once is left for it.
            let needsExchange = Exchange.isNeeded(for: request, by: core)
            var built = try core.builder.build(request, at: servers, opensBody: !needsExchange)
            built.transfer.reportsStart = true
            built.meter = UploadMeter(of: built.transfer, on: queue, progress)
            let control = needsExchange ? RunControl(tag: request.tag, of: core) : nil
            let run = made(
                built.transfer.url, method: built.transfer.method, control, .success(RequestSnapshot(built)))
            if let control {
                run.meter = built.meter
                run.begun = Begun(call: run.call(of: request, by: core))
                core.handOver(run, to: control)
            } else {
                built.beginSpan(of: run.watch)
                built.inform(run.watch)
                built.transfer.passesLimits = core.tokens != nil && core.isRefreshing
                core.start(run, built, mayBeRetried: core.builder.mayRetry(built.settings))
            }
            return run
        } catch {
            // Delivered like any other result.
            let run = made(error.url)
            core.refuse(run, error)
            return run
        }
    }

    /// Counts a body that the run sends itself. A run that may share its transfer counts only if progress is reported.
    private static func meter(
        of request: R, _ snapshot: Result<RequestSnapshot, RequestError>, on queue: DispatchQueue,
        _ progress: UploadMeter.Report?
    ) -> UploadMeter? {
        guard let snapshot = try? snapshot.get(),
            progress != nil || !snapshot.transfer.body.isNone && (!request.coalesces || snapshot.isPulled)
        else { return nil }
        return UploadMeter(of: snapshot.transfer, on: queue, progress)
    }

    // MARK: Progress of the run

    override func call(after answer: Answer, _ core: AgentCore) -> Call? {
        if let caching {
            if case .unsent = answer {} else if !goesOn(caching, after: answer, core) { return nil }
            if let begun { return begun.call }
            // The response in memory was not good enough. The content was read for its key.
            snapshot = TraceContext.$current.withValue(caching.context) {
                caching.stage.snapshot(of: request, at: servers)
            }
            let call = call(of: request, by: core)
            begun = Begun(call: call)
            return call
        }
        if Exchange.isSettled(answer, (try? snapshot?.get())?.settings, by: core) { return nil }
        return begun.take()?.call ?? call(of: request, isPlain: true, by: core)
    }

    private func call(of request: R, isPlain: Bool = false, by core: AgentCore) -> Call {
        Call(
            request, snapshot, at: servers, url: url, watch: watch, of: self, isPlain: isPlain, number: number,
            meter: meter, since: start, by: core)
    }

    override func carry(
        _ call: Call, _ control: RunControl, after answer: Answer, by core: AgentCore
    ) async -> Answer {
        if let caching { return await carry(caching, call, control, after: answer, core) }
        return await super.carry(call, control, after: answer, by: core)
    }

    // MARK: End

    override func finish(_ answer: Answer, _ core: AgentCore) {
        if let caching {
            let answered = ContinuousClock.now
            var made = caching.made.take() ?? make(answer, core)
            RunEnd.process(request, made.reply, answer, url: url, watch, by: core, &made.times)
            switch made.reply {
            case .success(let reply): keep(reply)
            case .failure(let error): keep(error)
            }
            figures = FinalMetrics(RequestMetrics(answer, made.times, from: start, to: answered))
        } else {
            var times = ProcessingTimes(isMeasured: watch != nil)
            do throws(RequestError) {
                keep(try RunEnd.process(request, answer, url: url, watch, by: core, &times))
            } catch {
                keep(error)
            }
            figures = FinalMetrics(answer, times)
        }
    }

    private func keep(_ reply: Reply<R.Value>) {
        closeFiles()
        outcome = .success(reply.response)
        delivery = { $0.deliver(.success(reply)) }
    }

    private func keep(_ error: RequestError) {
        closeFiles()
        outcome = .failure(error)
        delivery = { $0.deliver(.failure(error)) }
    }

    /// The application may keep the handle of the run, which must not keep files open or a body in memory.
    private func closeFiles() {
        begun = nil
        let read = snapshot.take()
        (try? read?.get())?.files?.close()
    }

    override func fail(_ error: RequestError, _ answer: Answer) {
        // The run was cancelled before it looked at its answer.
        if outcome == nil, let caching, caching.made == nil { caching.stage.lease = nil }
        request.failurePreprocessor(error)
        keep(error)
    }

    override var end: RunState { outcome.map { RunState($0) } ?? .failed }
    override var cameFromCache: Bool { (try? outcome?.get())?.isFromCache ?? false }

    override var cancellation: RequestError {
        switch outcome {
        case .success(let response): .cancelled(response.result, url: url, origin: response.origin)
        case .failure(let error): error.cancelled
        case nil: super.cancellation
        }
    }

    override func callBack() {
        // It holds the core, which the handle of an ended run must not retain.
        caching = nil
        let deliver = delivery
        delivery = nil
        deliver?(self)
        meter?.forget()
    }

    private func deliver(_ reply: Result<Reply<R.Value>, RequestError>) {
        guard let outcome = outcome.take() else { return }
        // Not `take`, which would look up the type of the function.
        let (completion, delegate) = (completion, delegate)
        let request = request
        self.completion = nil
        self.delegate = nil
        held = nil
        RunEnd.deliver(watch, RunOutcome(outcome), figures?.value ?? RequestMetrics()) {
            request.willDeliver(reply)
            if let completion { completion(reply) } else { tell(delegate?.object, request, reply) }
        }
    }

    private func tell(
        _ delegate: (any RequestDelegate)?, _ request: R, _ reply: Result<Reply<R.Value>, RequestError>
    ) {
        guard let delegate else { return }
        let task = RequestTask<R.Value>(run: self)
        switch reply {
        case .success(let reply): delegate.requestFinished(task, request, reply: reply)
        case .failure(let error): delegate.requestFailed(task, request, error: error)
        }
    }

    // MARK: Caching

    /// The state of a run that uses the cache. It is on the heap, because waiting runs usually have none.
    fileprivate final class Caching {
        var stage: CacheStage
        /// Receives the stored response before the network is used.
        var cached: (@Sendable (Reply<R.Value>) -> Void)?
        /// Created before the run ends.
        var made: Made?
        /// Must be on disk before the run ends.
        var kept: KeptResponse?
        /// That of the caller, for a request that is built when its hit was not good enough.
        let context: TraceContext?

        init(_ stage: CacheStage, _ cached: (@Sendable (Reply<R.Value>) -> Void)?, in context: TraceContext? = nil) {
            self.stage = stage
            self.cached = cached
            self.context = context
        }
    }

    fileprivate struct Made {
        var reply: Result<Reply<R.Value>, RequestError>
        var times: ProcessingTimes
    }

    private func make(_ answer: Answer, _ core: AgentCore) -> Made {
        var times = ProcessingTimes(isMeasured: watch != nil)
        times.begin()
        let reply = Result { () throws(RequestError) in try core.builder.validated(request, answer, url: url, &times) }
        return Made(reply: reply, times: times)
    }

    /// [processing queue] Whether the run continues after this response: to the network, or to the disk.
    private func goesOn(_ caching: Caching, after answer: Answer, _ core: AgentCore) -> Bool {
        // It has been written to the disk.
        if caching.made != nil { return false }
        let made = make(answer, core)
        switch caching.stage.next(after: answer, (try? made.reply.get())?.response, of: request) {
        case .end: caching.made = made
        case .again: return true
        case .write(let kept): (caching.made, caching.kept) = (made, kept)
        }
        return caching.kept != nil
    }

    /// [in a task] Uses the cache, the network, or both, or writes to the disk.
    private func carry(
        _ caching: Caching, _ call: Call, _ control: RunControl, after answer: Answer, _ core: AgentCore
    ) async -> Answer {
        defer { core.leave(control) }
        core.enter(control)
        if let kept = caching.kept.take() {
            await caching.stage.write(kept, control, until: call.end)
            return answer
        }
        if let cached = caching.cached.take(), let found = await caching.stage.first(call, control) {
            await onQueue(core.processingQueue, for: control, by: core) { [self] in
                guard case .success(let reply) = make(found, core).reply else { return }
                // The closure enters the callback queue before any result of the network. If the run is cancelled in
                // the meantime, the closure is not called, and the result is `cancelled`.
                queue.async { if self.state != .cancelled { cached(reply) } }
            }
        }
        var stage = caching.stage
        let found = await stage.answer(call, control)
        caching.stage = stage
        return found
    }
}

/// A record on the heap, because most waiting runs have none.
private final class Begun: Sendable {
    let call: Call

    init(call: Call) { self.call = call }
}

/// Runs code of the application for a run on a queue, or here if there is none. However long it takes, a shutdown waits
/// for it only within the grace.
nonisolated(nonsending) func onQueue<Value: Sendable>(
    _ queue: DispatchQueue?, for control: RunControl, by core: AgentCore, _ work: @escaping @Sendable () -> Value
) async -> Value {
    core.waitsForApplication(control)
    defer { core.enter(control) }
    return await onQueue(queue, work)
}

/// Runs `work` on a queue, or here if there is none.
nonisolated(nonsending) func onQueue<Value: Sendable>(
    _ queue: DispatchQueue?, _ work: @escaping @Sendable () -> Value
) async -> Value {
    guard let queue else { return work() }
    return await withCheckedContinuation { continuation in
        queue.async { continuation.resume(returning: work()) }
    }
}
