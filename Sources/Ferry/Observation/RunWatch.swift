package import FerryTransport
import Glibc
import Synchronization

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
        if own.isEmpty && core.observers.isEmpty && core.tracer == nil && core.log == nil { return nil }
        var log = core.log
        log?.sensitiveHeaders = core.builder.sensitiveHeaders(of: request)
        let info = RunInfo(request, url: url, number: number ?? core.nextNumber, in: group)
        let tracer = core.tracer
        let watch = RunWatch(
            own.isEmpty ? core.observers : core.observers + own, log, info, tracer: tracer,
            sendsTrace: tracer != nil && request.propagatesTrace)
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
        for observer in observers { observer.ended(info, outcome, metrics) }
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

/// Follows every run of an agent in a distributed trace: an observer that an agent asks for a span when a run begins.
/// The first of the configuration's observers that is one gets all runs.
package protocol RunTracer: RequestObserver {
    /// [caller's thread] The span of a run that begins. `parent` is the context of the work at hand.
    func begin(_ run: RunInfo, below parent: TraceContext?) -> RunSpan

    /// [callback queue, or the caller's task for `await`] The run is over, before its callbacks.
    func end(_ span: RunSpan, of run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics)
}

/// Makes the spans of one run's attempts in the place of Ferry.
package protocol SpanNumbering: AnyObject, Sendable {
    /// [before an attempt leaves] The header fields that carry its span, by their names.
    func begin(_ method: String) -> [(String, String)]
}

/// The span of a run, and below it those of its attempts.
package final class RunSpan: Sendable {
    /// One transfer of a run. A redirect, a retry and an answered challenge begin another.
    package struct Attempt: Sendable {
        /// The number of its span.
        package let id: UInt64
        /// Nanoseconds since 1970.
        package let start: UInt64
        package let method: String
        /// As it was sent, secrets included.
        package let url: String
        /// When its answer had come, up to the head of a streamed one; 0 while it has not.
        package var end: UInt64 = 0
        /// 0 without an answer.
        package var status = 0
        /// Why there was none.
        package var failure: TransferFailure?
        package var peer = ""
        package var peerPort = 0
        /// 10, 11, 20; 0 without an answer.
        package var httpVersion = 0

        /// Without secrets.
        package var shownURL: String { Redaction.url(url) }
        /// `h`, `h:8443`; empty where the URL has no host.
        package var authority: String { HostKey.authority(of: url) }
        /// The host, without the brackets of an address, and its port.
        package var server: (host: String, port: Int) {
            Self.server(authority, isSecure: url.hasPrefix("https:"))
        }

        /// Those of an authority like `h`, `h:8443`, `[::1]:8080`.
        package static func server(_ authority: String, isSecure: Bool) -> (host: String, port: Int) {
            var host = authority[...]
            var port = isSecure ? 443 : 80
            // The colons within the brackets are the address's own.
            if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]"),
                let number = Int(authority[authority.index(after: colon)...])
            {
                (host, port) = (authority[..<colon], number)
            }
            if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
            return (String(host), port)
        }
        /// The failure's code, of which there are few.
        package var failureLabel: String? { failure.map { RequestError($0, url: url).code.label } }
    }

    /// The run's own: attempts are children of it.
    package let context: TraceContext
    /// The span that the run belongs to; 0 when it begins a trace.
    package let parent: UInt64
    /// Nanoseconds since 1970; 0 when nothing is recorded.
    package let start: UInt64
    package let isRecorded: Bool
    /// Who numbers the spans, where Ferry does not.
    package let numbering: (any SpanNumbering)?
    private let recorded = Mutex<[Attempt]>([])
    /// A run that is sent again without end is not recorded without end.
    private static let most = 128

    /// A span that is recorded, or only tells the servers that it is not.
    package init(
        _ context: TraceContext, below parent: UInt64, isRecorded: Bool,
        numbering: (any SpanNumbering)? = nil
    ) {
        self.numbering = numbering
        self.context = context
        self.parent = parent
        start = isRecorded ? wallClock() : 0
        self.isRecorded = isRecorded
    }

    /// Those that were begun, in their order.
    package var attempts: [Attempt] { recorded.withLock { $0 } }

    /// The context of an attempt that is about to leave.
    func begin(_ transfer: borrowing TransferRequest) -> TraceContext {
        let child = context.child()
        if isRecorded {
            let attempt = Attempt(
                id: child.spanID, start: wallClock(), method: transfer.method, url: transfer.url)
            recorded.withLock { if $0.count < Self.most { $0.append(attempt) } }
        }
        return child
    }

    /// The answer of the attempt that was begun last.
    func received(_ result: TransferResult) {
        guard isRecorded else { return }
        let now = wallClock()
        recorded.withLock { attempts in
            guard let last = attempts.indices.last, attempts[last].end == 0 else { return }
            // It may have waited for this thread since: what the transfer took is known better.
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
