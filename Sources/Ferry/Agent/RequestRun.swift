import Dispatch
import FerryTransport

/// The run of one request type: makes its value and calls the closure or the delegate.
///
/// `reply` and `figures` are written on the processing queue and read on the callback queue, which comes after it. So
/// is what `caching` holds, and in the task that goes between two visits to the processing queue.
final class RequestRun<R: Request>: CallbackRun, @unchecked Sendable {
    enum Receiver {
        case closure(@Sendable (Result<Reply<R.Value>, RequestError>) -> Void)
        case delegate(WeakDelegate)
    }

    struct WeakDelegate {
        weak var object: (any RequestDelegate)?
    }

    let request: R
    let servers: Servers
    /// The request as it was at the start; `nil` of one that is answered without it.
    private let snapshot: Result<RequestSnapshot, RequestError>?
    /// `nil` when neither the cache nor other runs have a part in it. Set before the run begins.
    var caching: Caching?
    private var receiver: Receiver?
    private var figures: RequestMetrics?
    private var reply: Result<Reply<R.Value>, RequestError>?

    init(
        _ request: R, url: String, watch: RunWatch?, number: UInt64, queue: DispatchQueue, core: AgentCore,
        journey: Journey? = nil, servers: Servers, snapshot: Result<RequestSnapshot, RequestError>? = nil,
        receiver: Receiver
    ) {
        self.request = request
        self.servers = servers
        self.snapshot = snapshot
        self.receiver = receiver
        super.init(
            url: url, tag: request.tag, watch: watch, number: number, queue: queue, core: core, journey: journey)
    }

    override func itinerary(after answer: Answer, _ core: AgentCore) -> Itinerary? {
        if caching != nil {
            if case .unsent = answer {} else if !isRejected(answer, core) { return nil }
        } else if core.isSettled(answer, of: request) {
            return nil
        }
        return core.itinerary(
            of: request, snapshot, at: servers, url: url, watch: watch, number: number, meter: meter, since: start)
    }

    override func carry(
        _ itinerary: Itinerary, _ journey: Journey, after answer: Answer, by core: AgentCore
    ) async -> Answer {
        if caching != nil { return await carryByCache(itinerary, journey, core) }
        return await super.carry(itinerary, journey, after: answer, by: core)
    }

    override func finish(_ answer: Answer, _ core: AgentCore) {
        var times = ProcessingTimes(isMeasured: watch != nil)
        let answered = caching.map { _ in ContinuousClock.now }
        if caching == nil {
            reply = Result { () throws(RequestError) in try core.reply(to: request, answer, url: url, &times) }
        } else {
            (reply, times) = conclude(answer, core)
        }
        figures = RequestMetrics(answer, times, from: start, to: answered)
        if case .result(let result) = answer { watch?.received(result) }
    }

    override func fail(_ error: RequestError, _ answer: Answer) {
        // One that was cancelled after it was processed keeps what was measured.
        if figures == nil { figures = RequestMetrics(answer, ProcessingTimes(isMeasured: false)) }
        request.failurePreprocessor(error)
        reply = .failure(error)
    }

    override var end: RunState { reply.map { RunState($0) } ?? .failed }

    override var measured: RequestMetrics? { figures }
    override var cameFromCache: Bool { (try? reply?.get())?.isFromCache ?? false }

    override var cancellation: RequestError {
        switch reply {
        case .success(let reply): .cancelled(reply.response.result, url: url, trail: reply.response.trail)
        case .failure(let error): error.cancelled
        case nil: super.cancellation
        }
    }

    override func callBack() {
        guard let receiver = receiver.take(), let reply = reply.take() else { return }
        let outcome = watch.map { _ in RunOutcome(reply) }
        if let outcome { watch?.willStop(outcome, figures ?? RequestMetrics()) }
        request.filter(reply)
        switch receiver {
        case .closure(let closure): closure(reply)
        case .delegate(let delegate):
            if let object = delegate.object { tell(object, reply) }
        }
        if let outcome { watch?.didStop(outcome) }
    }

    private func tell(_ delegate: any RequestDelegate, _ reply: Result<Reply<R.Value>, RequestError>) {
        let task = RequestTask<R.Value>(run: self)
        switch reply {
        case .success(let reply): delegate.requestFinished(task, request, reply: reply)
        case .failure(let error): delegate.requestFailed(task, request, error: error)
        }
    }
}
