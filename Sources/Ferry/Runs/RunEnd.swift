import FerryTransport

/// The end of every run, whatever started it.
///
///     answer ──▶ process: validation ▸ value ▸ preprocessors ▸ host health
///            ──▶ deliver: willStop ▸ willDeliver ▸ delivery ▸ didStop
///
/// `process` runs on the processing queue and `deliver` on the callback queue. Where a task awaits the run, both run in
/// that task.
enum RunEnd {
    /// Makes the reply. Thrown and returned, not wrapped up: every generic type that is named on the way costs a look
    /// into the runtime's tables, and every copy of a reply four counts of references.
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

    /// What follows a reply that was made.
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

    /// What follows a failure. A stream or a download comes here with its own error.
    static func failed(
        _ request: some Request, _ error: RequestError, _ answer: Answer, url: String, _ watch: RunWatch?,
        by core: AgentCore, _ times: inout ProcessingTimes
    ) {
        request.failurePreprocessor(error)
        times.end()
        core.health.failed(error, answer, url: url)
        watch?.received(answer)
    }

    /// What follows a reply that was made before, or could not be made.
    static func process<R: Request>(
        _ request: R, _ result: Result<Reply<R.Value>, RequestError>, _ answer: Answer, url: String, _ watch: RunWatch?,
        by core: AgentCore, _ times: inout ProcessingTimes
    ) {
        switch result {
        case .success(let reply): succeeded(request, reply, answer, watch, by: core, &times)
        case .failure(let error): failed(request, error, answer, url: url, watch, by: core, &times)
        }
    }

    /// Likewise of a download.
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

    /// Hands the result over, between what the observers are told.
    @inline(__always)
    static func deliver(
        _ watch: RunWatch?, _ outcome: @autoclosure () -> RunOutcome, _ metrics: @autoclosure () -> RequestMetrics,
        _ delivery: () -> Void
    ) {
        guard let watch else { return delivery() }
        let outcome = outcome()
        watch.willStop(outcome, metrics())
        delivery()
        watch.didStop(outcome)
    }

    /// The same for a download: the request sees only its failure.
    static func deliver<R: Request>(
        _ request: R, _ file: Result<DownloadedFile, RequestError>, _ watch: RunWatch?, _ metrics: RequestMetrics,
        _ delivery: () -> Void = {}
    ) {
        deliver(watch, RunOutcome(file), metrics) {
            if case .failure(let error) = file { request.willDeliver(error) }
            delivery()
        }
    }

    /// The same for the result of a request that a task awaits: there is no callback but the request's own.
    @inline(__always)
    static func conclude<R: Request>(
        _ request: R, _ answer: Answer, url: String, _ watch: RunWatch?, by core: AgentCore
    ) throws(RequestError) -> Reply<R.Value> {
        var times = ProcessingTimes(isMeasured: watch != nil)
        do throws(RequestError) {
            let reply = try process(request, answer, url: url, watch, by: core, &times)
            deliver(watch, RunOutcome(reply.response), RequestMetrics(answer, times)) {
                request.willDeliver(.success(reply))
            }
            return reply
        } catch {
            deliver(watch, RunOutcome(error), RequestMetrics(answer, times)) { request.willDeliver(error) }
            throw error
        }
    }
}

extension RunOutcome {
    init(_ response: Response) { self = .finished(status: response.status, isFromCache: response.isFromCache) }

    init<Value>(_ result: Result<Reply<Value>, RequestError>) {
        switch result {
        case .success(let reply): self.init(reply.response)
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
    /// The same for a run that has no value to deliver, whatever the type of the request.
    func willDeliver(_ error: RequestError) { willDeliver(.failure(error)) }
}

extension RunState {
    /// How a run with this result has ended.
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

    /// What a failure says of the host that was asked last; nothing where no host was asked.
    func failed(_ error: RequestError, _ answer: Answer, url: String) {
        if !answer.isIntercepted { failed(answer.url ?? url, error) }
    }
}

/// How long the processing of an answer took. Asks no clock for a run that nobody observes.
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
        guard let start else { return }
        let now = ContinuousClock.now
        processing = start.duration(to: now)
        decoding = decodingStart.map { $0.duration(to: now) }
    }
}

extension RequestMetrics {
    /// What was measured of a run that ended with this answer.
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

    /// Likewise, of a run that went by the cache, from its start to the processing of its answer: no transfer knows how
    /// long a hit took, nor the look-up before a miss. Without an end it went by no cache.
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

    /// The times of the last attempt, and the counts of all the way there.
    init(_ result: TransferResult, _ origin: ResponseOrigin?) {
        let result = origin?.validation ?? result
        self.init(result)
        guard let origin else { return }
        cache = origin.cache?.metric
        if origin.cache?.isHit == true {
            // What was measured of the run that brought it is not this run's.
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
