#if Tracing
public import Ferry
internal import Synchronization
public import Tracing

/// An observer that makes spans with swift-distributed-tracing: one for each run, and below it one for each attempt.
///
///     configuration.observers.append(TracingObserver())
///
/// A run's span is a child of the `ServiceContext.current` where the run is started. If there is none, it is a child of
/// `TraceContext.current`, if the tracer can extract it from a `traceparent` field. Each attempt sends the fields that
/// the tracer injects for the attempt's span (usually `traceparent`), by the rules for `TraceContext`. They are not
/// sent if the request sets `propagatesTrace = false`, or to another origin than the run's, unless the redirect policy
/// allows it. They never replace a field that the request, the configuration or an adapter has set.
///
/// Spans and attributes follow the semantic conventions for HTTP clients; URLs are redacted. A run's span is of the
/// kind `internal`, an attempt's of the kind `client`. A span whose run or attempt has failed has the status `error`.
/// An attempt whose body is streamed ends with its head, its run with the body. A run has spans for its first 128
/// attempts; the later ones send the context of the run's span. A transfer that several runs share, and the further
/// segments of a download, have no spans and send none of the tracer's fields. If a configuration has several tracing
/// observers, including an `OTLPExporter`, only the first one gets the runs.
public final class TracingObserver: RequestObserver, RunTracer {
    private let tracer: any Tracer

    /// Creates an observer whose spans come from `tracer`. The default is that of the process, which must have been
    /// bootstrapped before.
    public init(tracer: any Tracer = InstrumentationSystem.tracer) { self.tracer = tracer }

    // MARK: RunTracer

    package func begin(_ name: () -> String, below parent: TraceContext?) -> RunSpan {
        let spans = RunSpans(tracer.startSpan(name(), context: context(below: parent), ofKind: .internal), tracer)
        // Servers receive what the tracer injects: Ferry's own context is only a place for the attempts.
        return RunSpan(TraceContext.begin(sampling: 1), below: 0, isRecorded: true, numbering: spans)
    }

    package func end(_ span: RunSpan, of run: RunInfo, _ outcome: RunOutcome, _ totals: RunTotals) {
        (span.numbering as? RunSpans)?.end(span, of: run, outcome)
    }

    private func context(below parent: TraceContext?) -> ServiceContext {
        if let current = ServiceContext.current { return current }
        var context = ServiceContext.topLevel
        if let parent {
            var fields = ["traceparent": parent.traceparent]
            if !parent.state.isEmpty { fields["tracestate"] = parent.state }
            tracer.extract(fields, into: &context, using: Fields())
        }
        return context
    }
}

/// The fields that a tracer reads and writes.
private struct Fields: Extractor, Injector {
    func extract(key: String, from carrier: [String: String]) -> String? { carrier[key.lowercased()] }

    func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) { carrier[key] = value }
}

/// The spans of one run.
private final class RunSpans: SpanNumbering {
    private let run: any Span
    private let tracer: any Tracer
    private let attempts = Mutex<[any Span]>([])

    init(_ run: any Span, _ tracer: any Tracer) {
        self.run = run
        self.tracer = tracer
    }

    /// Starts the span of an attempt, and returns the fields to send. Attempts beyond those that Ferry records have no
    /// span of their own, and send the run's.
    func begin(_ method: String) -> [(String, String)] {
        var context = run.context
        if attempts.withLock({ $0.count }) < RunSpan.mostAttempts {
            let span: any Span = tracer.startSpan(method, context: context, ofKind: .client)
            attempts.withLock { $0.append(span) }
            context = span.context
        }
        var fields: [String: String] = [:]
        tracer.inject(context, into: &fields, using: Fields())
        return fields.sorted { $0.key < $1.key }
    }

    func end(_ recorded: RunSpan, of info: RunInfo, _ outcome: RunOutcome) {
        let error: String? =
            switch outcome {
            case .finished: nil
            case .failed(let error): error.code.label
            case .cancelled: "cancelled"
            }
        let known = recorded.attempts
        for (number, span) in attempts.withLock({ $0 }).enumerated() {
            // If a run is sent again without end, Ferry keeps the first attempts.
            guard number < known.count else {
                span.end()
                continue
            }
            Self.end(span, as: known[number], number: number, runError: error)
        }
        run.updateAttributes { attributes in
            attributes["ferry.run.id"] = Int64(truncatingIfNeeded: info.id)
            if let method = info.method { attributes["http.request.method"] = method.rawValue }
            attributes["url.full"] = info.url
            if let tag = info.tag { attributes["ferry.run.tag"] = tag }
            if case .finished(_, isFromCache: true) = outcome { attributes["ferry.run.from_cache"] = true }
            if let status = outcome.status { attributes["http.response.status_code"] = status }
            if let error { attributes["error.type"] = error }
        }
        if error != nil { run.setStatus(SpanStatus(code: .error, message: outcome.error?.message)) }
        run.end()
    }

    private static func end(_ span: any Span, as attempt: RunSpan.Attempt, number: Int, runError: String?) {
        // An attempt without a response was in progress when its run ended.
        let failure =
            attempt.failureLabel ?? (attempt.end == 0 ? runError ?? "unknown" : nil)
            ?? (attempt.status >= 400 ? String(attempt.status) : nil)
        let server = attempt.server
        span.updateAttributes { attributes in
            attributes["http.request.method"] = attempt.method
            attributes["url.full"] = attempt.shownURL
            attributes["server.address"] = server.host
            attributes["server.port"] = server.port
            if number > 0 { attributes["http.request.resend_count"] = number }
            if attempt.status != 0 { attributes["http.response.status_code"] = attempt.status }
            if !attempt.peer.isEmpty {
                attributes["network.peer.address"] = attempt.peer
                attributes["network.peer.port"] = attempt.peerPort
            }
            if let failure { attributes["error.type"] = failure }
        }
        if failure != nil { span.setStatus(SpanStatus(code: .error)) }
        if attempt.end == 0 { return span.end() }
        span.end(at: DefaultTracerClock.Timestamp(nanosecondsSinceEpoch: attempt.end))
    }
}
#endif
