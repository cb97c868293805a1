import FerryTransport

/// The observers of one run and its log, and what they are told. There is none for a run that nobody observes.
///
/// An object, as nearly every run has none: `nil` is then one word of its record.
final class RunWatch: Sendable {
    private let observers: [any RequestObserver]
    private let log: RunLog?
    let info: RunInfo
    private let tracer: (any RunTracer)?
    /// Where the run is traced.
    let span: RunSpan?
    /// Whether the servers are told of the trace.
    let sendsTrace: Bool

    init(
        _ observers: [any RequestObserver], _ log: RunLog?, _ info: RunInfo, tracer: (any RunTracer)? = nil,
        sendsTrace: Bool = false
    ) {
        self.observers = observers
        self.log = log
        self.info = info
        self.tracer = tracer
        self.sendsTrace = sendsTrace
        span = tracer?.begin(info, below: TraceContext.current)
    }

    /// [caller's thread] A run of a request begins: who observes it is told. `nil` when nobody does.
    static func begin<R: Request>(
        _ request: R, url: String, number: UInt64? = nil, in group: GroupRun? = nil, by core: AgentCore
    ) -> RunWatch? {
        let own = request.observers
        if own.isEmpty && core.observers.isEmpty && core.log == nil { return nil }
        var log = core.log
        log?.sensitiveHeaders = core.builder.sensitiveHeaders(of: request)
        let info = RunInfo(request, url: url, number: number ?? core.nextNumber, in: group)
        let tracer = core.tracer
        let watch = RunWatch(
            core.observers + own, log, info, tracer: tracer, sendsTrace: tracer != nil && request.propagatesTrace)
        watch.willStart()
        return watch
    }

    /// [caller's thread]
    func willStart() {
        log?.started(info)
        for observer in observers { observer.willStart(info) }
    }

    /// [caller's thread] It leaves as it stands here.
    func sends(_ built: borrowing BuiltRequest) {
        guard let log else { return }
        let (method, url) = (HTTPMethod(built.transfer.method), built.transfer.url)
        let headers = built.transfer.headers
        log.sends(info, method, to: url, Headers(headers))
    }

    /// An answer came, perhaps not the last.
    func received(_ result: TransferResult) {
        span?.received(result)
        if result.status != 0 { log?.received(info, status: result.status, Headers(result)) }
    }

    /// The result of the one transfer of a run. A run of several transfers is told of each when it comes.
    func received(_ answer: Answer) { if case .result(let result) = answer { received(result) } }

    /// [callback queue, or the caller's task] Right before ``Request/willDeliver(_:)``.
    func willStop(_ outcome: RunOutcome, _ metrics: RequestMetrics) {
        log?.ended(info, outcome, metrics)
        if let span, let tracer { tracer.end(span, of: info, outcome, metrics) }
        for observer in observers { observer.metrics(info, metrics) }
        for observer in observers { observer.willStop(info, outcome) }
    }

    /// [callback queue, or the caller's task] Last of all.
    func didStop(_ outcome: RunOutcome) {
        for observer in observers { observer.didStop(info, outcome) }
    }
}

/// What Ferry says of its runs to a sink, and at which level. An agent without a sink has no `RunLog`: then all of it
/// costs the look whether there is one.
struct RunLog: Sendable {
    let sink: any LogSink
    /// Header fields whose values are not shown, besides those known to be secret.
    var sensitiveHeaders: [String] = []

    func started(_ run: RunInfo) {
        sink.log(.debug, LogEntry(.debug, "started", run: run))
    }

    func ended(_ run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics) {
        sink.log(.debug, entry(of: run, outcome, metrics))
    }

    /// The files of TLS have changed.
    func trustChanged(fault: String?) {
        let message = fault.map { "changed TLS files cannot be used: \($0)" } ?? "changed TLS files are in use"
        sink.log(.debug, LogEntry(.debug, message))
    }

    /// It will be sent again, after `delay`, because of this.
    func retrying(_ run: RunInfo, attempt: Int, after code: RequestError.Code, delay: Duration) {
        sink.log(.debug, entry(of: run, attempt: attempt, code: code, delay: delay))
    }

    /// The server sent it elsewhere. `url` is redacted here.
    func redirected(_ run: RunInfo, to url: String, status: Int) {
        sink.log(.debug, entry(of: run, redirectedTo: url, status: status))
    }

    /// After a redirect it is neither the URL nor, perhaps, the method that the run began with. `url` is redacted here.
    func sends(_ run: RunInfo, _ method: HTTPMethod, to url: String, _ headers: @autoclosure () -> Headers) {
        sink.log(.trace, entry(of: run, method, to: url, headers()))
    }

    func received(_ run: RunInfo, status: Int, _ headers: @autoclosure () -> Headers) {
        sink.log(.trace, entry(of: run, received: headers(), status: status))
    }

    private func entry(of run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics) -> LogEntry {
        let message =
            switch outcome {
            case .finished(_, isFromCache: true): "finished from the cache"
            case .finished: "finished"
            case .failed: "failed"
            case .cancelled: "cancelled"
            }
        var entry = LogEntry(.debug, message, run: run)
        entry.status = outcome.status
        entry.error = outcome.error?.code
        entry.duration = metrics.total
        if metrics.attempts > 1 { entry.attempt = metrics.attempts }
        return entry
    }

    private func entry(of run: RunInfo, attempt: Int, code: RequestError.Code, delay: Duration) -> LogEntry {
        var entry = LogEntry(.debug, "retrying", run: run)
        entry.attempt = attempt
        entry.error = code
        entry.duration = delay
        return entry
    }

    private func entry(of run: RunInfo, redirectedTo url: String, status: Int) -> LogEntry {
        var entry = LogEntry(.debug, "redirected", run: run.id, url: url)
        entry.method = run.method
        entry.status = status
        return entry
    }

    private func entry(of run: RunInfo, _ method: HTTPMethod, to url: String, _ headers: Headers) -> LogEntry {
        var entry = LogEntry(.trace, "sends", run: run.id, url: url)
        entry.method = method
        entry.setHeaders(headers, sensitive: sensitiveHeaders)
        return entry
    }

    private func entry(of run: RunInfo, received headers: Headers, status: Int) -> LogEntry {
        var entry = LogEntry(.trace, "received", run: run)
        entry.status = status
        entry.setHeaders(headers, sensitive: sensitiveHeaders)
        return entry
    }
}
