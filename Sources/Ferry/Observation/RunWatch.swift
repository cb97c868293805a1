import FerrySynchronization
package import FerryTransport
import Glibc

/// The observers and the log of one run. A run without observers has none.
///
/// It is an object, so that for most runs it is just a `nil` word in the record.
final class RunWatch: Sendable {
    private let observers: [any RequestObserver]
    private let log: RunLog?
    let info: RunInfo
    private let tracer: (any RunTracer)?
    /// The trace span of the run.
    let span: RunSpan?
    /// Whether the trace context is sent to servers.
    let sendsTrace: Bool
    private let onInformational: InformationalHandler?
    /// Whether at most a tracer follows the run. It reads no metrics but the totals, and no informational responses.
    let isOnlyTraced: Bool
    /// Whether responses are logged or recorded.
    private let hearsResponses: Bool
    /// The latest request, for the log: after a redirect its URL is not that of the run.
    private let latest = Mutex<SentRequest?>(nil)

    /// [event loop] The closure that one call has passed for informational responses.
    typealias InformationalHandler = @Sendable (InformationalResponse) -> Void

    /// `info` is made in its place: it is large, and a copy costs four reference counts.
    @inline(__always)
    init(
        _ observers: [any RequestObserver], _ log: RunLog?, tracer: (any RunTracer)? = nil,
        span: consuming RunSpan? = nil, sendsTrace: Bool = false, onInformational: InformationalHandler? = nil,
        _ info: () -> RunInfo
    ) {
        isOnlyTraced = observers.isEmpty && log == nil && onInformational == nil
        self.onInformational = onInformational
        self.observers = observers
        self.log = log
        self.info = info()
        self.tracer = tracer
        self.sendsTrace = sendsTrace
        self.span = span
        hearsResponses = log != nil || span?.isRecorded == true
    }

    /// [caller's thread] A run of a request starts: notifies its observers. `nil` if there are none. What is
    /// known of the request is not read again.
    static func begin<R: Request>(
        _ request: R, _ observers: [any RequestObserver]? = nil, method: String? = nil, url: String,
        number: UInt64? = nil, in group: GroupRun? = nil,
        onInformational: InformationalHandler? = nil, by core: AgentCore
    ) -> RunWatch? {
        let own = observers ?? request.observers
        if !core.isWatched(own) && onInformational == nil { return nil }
        let secrets = { core.builder.sensitiveHeaders(with: request.redirectPolicy) }
        let log = core.log.map { RunLog(sink: $0.sink, sensitiveHeaders: secrets()) }
        let (tag, method) = (request.tag, RunInfo.method(of: request, method))
        let tracer = core.tracer
        let watch = RunWatch(
            own.isEmpty ? core.observers : core.observers + own, log, tracer: tracer,
            span: tracer?.begin({ tag ?? method.rawValue }, below: .current),
            sendsTrace: tracer != nil && request.propagatesTrace, onInformational: onInformational
        ) {
            RunInfo(
                id: number ?? core.nextNumber, method: method, url: url, tag: tag, userInfo: request.userInfo,
                group: group?.number)
        }
        watch.willStart()
        return watch
    }

    /// [caller's thread] Notifies the observers of the start.
    func willStart() {
        log?.started(info)
        for observer in observers { observer.willStart(info) }
    }

    /// [caller's thread] The request is sent in this form.
    func sends(_ built: borrowing BuiltRequest) {
        guard let log else { return }
        let (method, url) = (HTTPMethod(built.transfer.method), built.transfer.url)
        let headers = built.transfer.allHeaders
        latest.withLock { $0 = SentRequest(method: method, url: url) }
        log.sends(info, method, to: url, Headers(headers))
    }

    /// A response has arrived, perhaps not the last.
    func received(_ result: TransferResult) {
        if !hearsResponses { return }
        span?.received(result)
        if result.status != 0 { log?.received(info, to: latestRequest, status: result.status, Headers(result)) }
    }

    /// [event loop] An informational response has arrived.
    func received(_ response: InformationalResponse) {
        log?.received(info, to: latestRequest, status: response.status, response.headers)
        for observer in observers { observer.informational(info, response) }
        onInformational?(response)
    }

    private var latestRequest: SentRequest? { latest.withLock { $0 } }

    /// The result of the only transfer of a run. A run with several transfers reports each when it arrives.
    func received(_ answer: Answer) { if case .result(let result) = answer { received(result) } }

    /// [callback queue, or the caller's task] Called right before ``Request/willDeliver(_:)``. The metrics are made if
    /// somebody reads them, or if the totals are not known.
    @inline(__always)
    func willStop(
        _ outcome: RunOutcome, _ totals: @autoclosure () -> RunTotals?, _ metrics: @autoclosure () -> RequestMetrics
    ) {
        if isOnlyTraced, let totals = totals() { return endTrace(outcome, totals) }
        willStop(outcome, metrics())
    }

    private func endTrace(_ outcome: RunOutcome, _ totals: RunTotals) {
        if let span, let tracer { tracer.end(span, of: info, outcome, totals) }
    }

    private func willStop(_ outcome: RunOutcome, _ metrics: RequestMetrics) {
        log?.ended(info, outcome, metrics)
        endTrace(outcome, RunTotals(total: metrics.total, attempts: metrics.attempts))
        for observer in observers { observer.ended(info, outcome, metrics) }
        for observer in observers { observer.willStop(info, outcome) }
    }

    /// [callback queue, or the caller's task] Called last.
    func didStop(_ outcome: RunOutcome) {
        for observer in observers { observer.didStop(info, outcome) }
    }
}

/// A request as it was sent, which after a redirect is not as the run began.
struct SentRequest: Sendable {
    var method: HTTPMethod
    /// With its secrets.
    var url: String
}

/// Writes Ferry's log entries about runs. An agent without a sink has no `RunLog`, so that logging costs only the check
/// for `nil`.
///
/// It is an object, so that the runs of other agents carry no more than a `nil` word.
final class RunLog: Sendable {
    let sink: any LogSink
    /// The names of secret header fields, in addition to the well-known ones.
    private let sensitiveHeaders: [String]

    init(sink: any LogSink, sensitiveHeaders: [String] = []) {
        self.sink = sink
        self.sensitiveHeaders = sensitiveHeaders
    }

    func started(_ run: RunInfo) {
        sink.log(.debug, LogEntry(.debug, "started", run: run))
    }

    func ended(_ run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics) {
        sink.log(.debug, entry(of: run, outcome, metrics))
    }

    /// The TLS files have changed.
    func trustChanged(fault: String?) {
        let message = fault.map { "changed TLS files cannot be used: \($0)" } ?? "changed TLS files are in use"
        sink.log(fault == nil ? .debug : .warning, LogEntry(.debug, message))
    }

    /// The run is retried after `delay`, because of this error.
    func retrying(_ run: RunInfo, attempt: Int, after code: RequestError.Code, delay: Duration) {
        sink.log(.debug, entry(of: run, attempt: attempt, code: code, delay: delay))
    }

    /// The server redirected the run. `url` is redacted here.
    func redirected(_ run: RunInfo, to url: String, status: Int) {
        sink.log(.debug, entry(of: run, redirectedTo: url, status: status))
    }

    /// After a redirect neither the URL nor, perhaps, the method is that of the request. `url` is redacted here.
    func sends(_ run: RunInfo, _ method: HTTPMethod, to url: String, _ headers: @autoclosure () -> Headers) {
        sink.log(.trace, entry(of: run, method, to: url, headers()))
    }

    /// `request` is the one that was sent, if it is known. Its URL is redacted here.
    func received(
        _ run: RunInfo, to request: SentRequest? = nil, status: Int, _ headers: @autoclosure () -> Headers
    ) {
        sink.log(.trace, entry(of: run, request, received: headers(), status: status))
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

    private func entry(
        of run: RunInfo, _ request: SentRequest?, received headers: Headers, status: Int
    ) -> LogEntry {
        var entry = LogEntry(.trace, "received", run: run)
        if let request {
            entry = LogEntry(.trace, "received", run: run.id, url: request.url)
            entry.method = request.method
        }
        entry.status = status
        entry.setHeaders(headers, sensitive: sensitiveHeaders)
        return entry
    }
}

/// An observer that follows every run in a distributed trace: the agent asks it for a span when a run starts. The first
/// such observer of the configuration gets all runs. An object, because every run refers to it.
package protocol RunTracer: AnyObject, RequestObserver {
    /// [caller's thread] Returns the span of a run that starts. `parent` is the current trace context.
    func begin(_ name: () -> String, below parent: TraceContext?) -> RunSpan

    /// [callback queue, or the caller's task with `await`] The run has ended, before its callbacks.
    func end(_ span: RunSpan, of run: RunInfo, _ outcome: RunOutcome, _ totals: RunTotals)
}

/// What a tracer needs to know of the metrics of a run.
package struct RunTotals: Sendable {
    /// The same as in ``RequestMetrics``.
    package let total: Duration
    package let attempts: Int

    /// Those of a run that was never sent.
    package init() { self.init(total: .zero, attempts: 0) }

    init(total: Duration, attempts: Int) { (self.total, self.attempts) = (total, attempts) }
}

/// Creates the spans of one run's attempts instead of Ferry.
package protocol SpanNumbering: AnyObject, Sendable {
    /// [before an attempt is sent] The header fields that carry its span, as names and values.
    func begin(_ method: String) -> [(String, String)]
}

/// The span of a run, and the spans of its attempts below it.
package struct RunSpan: Sendable {
    /// One transfer of a run. A redirect, a retry and the response to a challenge each start another.
    package struct Attempt: Sendable {
        /// The id of its span.
        package let id: UInt64
        /// Nanoseconds since 1970.
        package let start: UInt64
        package let method: String
        /// The URL as sent, with its secrets.
        package let url: String
        /// When its response arrived, or the head of a streamed one; 0 before that.
        package var end: UInt64 = 0
        /// The status; 0 without a response.
        package var status = 0
        /// Why there was no response.
        package var failure: TransferFailure?
        package var peer = ""
        package var peerPort = 0
        /// 10, 11 or 20; 0 without a response.
        package var httpVersion = 0

        /// The redacted URL.
        package var shownURL: String { Redaction.url(url) }
        /// `h`, `h:8443`; empty if the URL has no host.
        package var authority: String { HostKey.authority(of: url) }
        /// The host, without the brackets of an address, and the port.
        package var server: (host: String, port: Int) {
            Self.server(authority, isSecure: HostKey.isSecure(url))
        }

        /// `https://h:8443`
        package var origin: String { (HostKey.isSecure(url) ? "https://" : "http://") + authority }
        /// Whether scheme, host and port of the URL are spelled like this: `https://h:8443`.
        package func begins(with origin: String) -> Bool { HostKey.begins(url, with: origin) }

        /// Host and port of an authority like `h`, `h:8443`, `[::1]:8080`.
        package static func server(_ authority: String, isSecure: Bool) -> (host: String, port: Int) {
            var host = authority[...]
            var port = isSecure ? 443 : 80
            // The colons within the brackets belong to the address.
            if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]"),
                let number = Int(authority[authority.index(after: colon)...])
            {
                (host, port) = (authority[..<colon], number)
            }
            if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
            return (String(host), port)
        }
        /// The code of the failure, as a metric label.
        package var failureLabel: String? { failure.map { RequestError($0, url: url).code.label } }
    }

    /// A run with endless attempts must not be recorded endlessly.
    package static let mostAttempts = 128

    /// The run's own context: attempts are children of it.
    package let context: TraceContext
    /// The parent span of the run; 0 if the run starts a trace.
    package let parent: UInt64
    /// Creates the span ids, if Ferry does not.
    package let numbering: (any SpanNumbering)?
    /// Whether servers receive it.
    package let isPropagated: Bool
    /// `nil` if the span only tells servers that nothing is recorded, like most.
    private let record: SpanRecord?

    /// Creates a span that is recorded, or that only tells servers that it is not.
    package init(
        _ context: TraceContext, below parent: UInt64, isRecorded: Bool, isPropagated: Bool = true,
        numbering: (any SpanNumbering)? = nil
    ) {
        (self.numbering, self.isPropagated) = (numbering, isPropagated)
        (self.context, self.parent) = (context, parent)
        record = isRecorded ? SpanRecord() : nil
    }

    package var isRecorded: Bool { record != nil }

    /// Nanoseconds since 1970; 0 if nothing is recorded.
    package var start: UInt64 { record?.start ?? 0 }

    /// The recorded attempts so far, in order.
    package var attempts: [Attempt] { record?.attempts ?? [] }

    /// The id of an attempt that is about to be sent.
    func begin(_ transfer: borrowing TransferRequest) -> UInt64 {
        let id = TraceContext.newSpan()
        if let record { record.begin(id, transfer) }
        return id
    }

    /// The response to the latest attempt has arrived.
    func received(_ result: TransferResult) { if let record { record.received(result) } }
}

/// What is recorded of a run for its trace.
private final class SpanRecord: Sendable {
    /// Nanoseconds since 1970.
    let start = wallClock()
    private let recorded = Mutex<[RunSpan.Attempt]>([])

    var attempts: [RunSpan.Attempt] { recorded.withLock { $0 } }

    func begin(_ id: UInt64, _ transfer: borrowing TransferRequest) {
        let attempt = RunSpan.Attempt(id: id, start: wallClock(), method: transfer.method, url: transfer.url)
        recorded.withLock { if $0.count < RunSpan.mostAttempts { $0.append(attempt) } }
    }

    func received(_ result: TransferResult) {
        let now = wallClock()
        recorded.withLock { attempts in
            guard let last = attempts.indices.last, attempts[last].end == 0 else { return }
            // The result may have waited for this thread; the duration of the transfer is more exact.
            attempts[last].end = min(max(now, attempts[last].start), attempts[last].start + result.metrics.total * 1000)
            attempts[last].status = result.status
            attempts[last].failure = result.failure
            attempts[last].peer = result.peer
            attempts[last].peerPort = result.peerPort
            attempts[last].httpVersion = result.httpVersion
        }
    }
}

/// Nanoseconds since 1970.
package func wallClock() -> UInt64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
}
