import FerryTransport

/// The end of every run, however it was started.
///
///     response ──▶ process: validation ▸ value ▸ preprocessors ▸ host health
///              ──▶ deliver: willStop ▸ willDeliver ▸ delivery ▸ didStop
///
/// `process` runs on the processing queue and `deliver` on the callback queue. If a task awaits the run, both run in
/// that task.
enum RunEnd {
    /// Creates the reply. It is thrown and returned without a wrapper, because every generic type on the way costs a
    /// look into the runtime's tables, and every copy of a reply four reference counts.
    @inline(__always)
    static func process<R: Request>(
        _ request: R, _ answer: Answer, url: String, _ watch: RunWatch?, by core: AgentCore,
        _ times: inout ProcessingTimes
    ) throws(RequestError) -> Reply<R.Value> {
        times.begin()
        do throws(RequestError) {
            let reply = try core.builder.validated(request, answer, url: url, &times)
            succeeded(request, reply, answer, watch, by: core, &times)
            return reply
        } catch {
            failed(request, error, answer, url: url, watch, by: core, &times)
            throw error
        }
    }

    /// What follows a successful reply.
    @inline(__always)
    static func succeeded<R: Request>(
        _ request: R, _ reply: Reply<R.Value>, _ answer: Answer, _ watch: RunWatch?, by core: AgentCore,
        _ times: inout ProcessingTimes
    ) {
        request.completionPreprocessor(reply)
        times.end()
        core.health.succeeded(reply.response)
        if let watch { watch.received(answer) }
    }

    /// What follows a failure. Streams and downloads pass their own error.
    static func failed(
        _ request: some Request, _ error: RequestError, _ answer: Answer, url: String, _ watch: RunWatch?,
        by core: AgentCore, _ times: inout ProcessingTimes
    ) {
        request.failurePreprocessor(error)
        times.end()
        core.health.failed(error, answer, url: url)
        watch?.received(answer)
    }

    /// What follows a reply that was created earlier, or could not be created.
    static func process<R: Request>(
        _ request: R, _ result: Result<Reply<R.Value>, RequestError>, _ answer: Answer, url: String, _ watch: RunWatch?,
        by core: AgentCore, _ times: inout ProcessingTimes
    ) {
        switch result {
        case .success(let reply): succeeded(request, reply, answer, watch, by: core, &times)
        case .failure(let error): failed(request, error, answer, url: url, watch, by: core, &times)
        }
    }

    /// The same for a download.
    static func process<R: Request>(
        _ request: R, _ file: Result<DownloadedFile, RequestError>, _ answer: Answer, url: String, _ watch: RunWatch?,
        by core: AgentCore
    ) {
        switch file {
        case .success(let file): core.health.succeeded(file.response)
        case .failure(let error):
            var times = ProcessingTimes(isMeasured: false)
            failed(request, error, answer, url: url, watch, by: core, &times)
        }
    }

    /// Delivers the result, between the notifications of the observers.
    @inline(__always)
    static func deliver(
        _ watch: RunWatch?, _ outcome: @autoclosure () -> RunOutcome, totals: @autoclosure () -> RunTotals? = nil,
        _ metrics: @autoclosure () -> RequestMetrics, _ delivery: () -> Void
    ) {
        guard let watch else { return delivery() }
        let outcome = outcome()
        watch.willStop(outcome, totals(), metrics())
        delivery()
        watch.didStop(outcome)
    }

    /// The same for a download, whose request sees only failures.
    static func deliver<R: Request>(
        _ request: R, _ file: Result<DownloadedFile, RequestError>, _ watch: RunWatch?, _ metrics: RequestMetrics,
        _ delivery: () -> Void = {}
    ) {
        deliver(watch, RunOutcome(file), metrics) {
            if case .failure(let error) = file { request.willDeliver(error) }
            delivery()
        }
    }

    /// The same for a request that a task awaits: the only callbacks are those of the request.
    @inline(__always)
    static func conclude<R: Request>(
        _ request: R, _ answer: Answer, url: String, _ watch: RunWatch?, by core: AgentCore
    ) throws(RequestError) -> Reply<R.Value> {
        var times = ProcessingTimes(isMeasured: watch.map { !$0.isOnlyTraced } ?? false)
        do throws(RequestError) {
            guard watch != nil else {
                return request.delivered(try process(request, answer, url: url, nil, by: core, &times))
            }
            let reply = try process(request, answer, url: url, watch, by: core, &times)
            deliver(watch, RunOutcome(reply.response), totals: RunTotals(answer), RequestMetrics(answer, times)) {
                request.willDeliver(.success(reply))
            }
            return reply
        } catch {
            deliver(watch, RunOutcome(error), totals: RunTotals(answer), RequestMetrics(answer, times)) {
                request.willDeliver(error)
            }
            throw error
        }
    }
}

extension RunTotals {
    /// Those of a run with one transfer; `nil` for any other.
    init?(_ answer: Answer) {
        guard case .result(let result) = answer else { return nil }
        (total, attempts) = (.microseconds(Int64(result.metrics.total)), result.attempts)
    }
}

extension RunOutcome {
    init(_ response: Response) { self = .finished(status: response.status, isFromCache: response.isFromCache) }

    init<Value>(_ result: Result<Reply<Value>, RequestError>) { self.init(result.map { $0.response }) }

    init(_ result: Result<Response, RequestError>) {
        switch result {
        case .success(let response): self.init(response)
        case .failure(let error): self.init(error)
        }
    }

    init(_ file: Result<DownloadedFile, RequestError>) {
        switch file {
        case .success(let file): self.init(file.response)
        case .failure(let error): self.init(error)
        }
    }
}

extension Request {
    /// Calls `willDeliver` with a reply and returns it. The reply is moved, because a copy of a type that is only known
    /// at run time costs as much as a lookup in the cache.
    @inline(__always)
    func delivered(_ reply: consuming Reply<Value>) -> Reply<Value> {
        let result = Result<Reply<Value>, RequestError>.success(reply)
        willDeliver(result)
        switch result {
        case .success(let reply): return reply
        case .failure: preconditionFailure("a reply became an error")
        }
    }

    /// The same for a run without a value to deliver, whatever the type of the request.
    func willDeliver(_ error: RequestError) { willDeliver(.failure(error)) }
}

extension RunState {
    /// The outcome of a run with this result.
    init<Value>(_ result: Result<Value, RequestError>) {
        switch result {
        case .success: self = .finished
        case .failure(.cancelled): self = .cancelled
        case .failure: self = .failed
        }
    }
}

extension HostHealthTable {
    /// A response was accepted.
    func succeeded(_ response: Response) { if response.isFromServer { succeeded(response.url) } }

    /// What a failure says about the host of the last attempt; nothing if no host was involved.
    func failed(_ error: RequestError, _ answer: Answer, url: String) {
        if !answer.isIntercepted { failed(answer.url ?? url, error) }
    }
}

/// The duration of processing. Reads no clock for a run without observers.
struct ProcessingTimes: Sendable {
    let isMeasured: Bool
    private(set) var start: ContinuousClock.Instant?
    private var decodingStart: ContinuousClock.Instant?
    private(set) var processing: Duration?
    private(set) var decoding: Duration?

    init(isMeasured: Bool) { self.isMeasured = isMeasured }

    mutating func begin() { if isMeasured { start = .now } }

    mutating func beginDecoding() { if isMeasured { decodingStart = .now } }

    mutating func end() {
        // Like most runs. To see that there is no start takes a hundred instructions.
        if !isMeasured { return }
        guard let start else { return }
        let now = ContinuousClock.now
        processing = start.duration(to: now)
        decoding = decodingStart.map { $0.duration(to: now) }
    }
}

extension RequestMetrics {
    /// The metrics of a run that ended with this result.
    init(_ answer: Answer, _ times: ProcessingTimes) {
        switch answer {
        case .result(let result): self.init(result)
        case .arrived(let result, let origin): self.init(result, origin)
        case .refused(let error): self = error.facts.measured ?? RequestMetrics()
        case .unsent: self.init()
        }
        processing = times.processing
        decoding = times.decoding
    }

    /// The metrics of a run that used the cache, from its start to the processing of its response, because no transfer
    /// knows the duration of a hit or of the lookup before a miss. Without an end it did not use the cache.
    init(
        _ answer: Answer, _ times: ProcessingTimes, from start: ContinuousClock.Instant?,
        to end: ContinuousClock.Instant?
    ) {
        self.init(answer, times)
        guard let start, let end else { return }
        switch answer {
        case .result, .arrived: total = start.duration(to: end)
        case .refused, .unsent: break
        }
    }

    /// The times of the last attempt, and the counts of all attempts.
    init(_ result: TransferResult, _ origin: ResponseOrigin?) {
        let result = origin?.validation ?? result
        self.init(result)
        guard let origin else { return }
        cache = origin.cache?.metric
        if origin.cache?.isHit == true {
            // The measurements of the run that stored the response do not belong to this run.
            self = RequestMetrics()
            cache = origin.cache?.metric
        }
        attempts = origin.earlier.withoutRedirects(origin.attempts(result))
        redirects = origin.redirects.count
        total = origin.elapsed ?? total
        if origin.isIntercepted { (bytesReceived, httpVersion) = (0, nil) }
        bytesSent += origin.earlier.bytesSent
        bytesReceived += origin.earlier.bytesReceived
    }
}
