internal import Dispatch
public import Ferry
internal import FerrySynchronization
internal import FerryTransport

/// An observer that exports the runs of agents to an OpenTelemetry collector: a span for each run, a span for each of
/// its attempts below that, and the histogram `http.client.request.duration`, with OTLP over HTTP in JSON.
///
///     let exporter = OTLPExporter(OTLPConfiguration(serviceName: "shop"))
///     configuration.observers.append(exporter)
///
/// Call ``shutdown()`` at the end of the service to export the rest.
///
/// A run belongs to the trace of `TraceContext.current`, or starts a trace. Spans and attributes follow the semantic
/// conventions for HTTP clients; URLs are redacted. If the body is streamed, the attempt's span ends with the head, and
/// the run's span with the body. Of several exporters in one configuration, the first gets the spans.
///
/// The exporter has its own agent. Its queue is bounded (``OTLPConfiguration/maxQueuedRuns``), and data that the
/// collector does not accept is dropped. No run waits for an export.
public final class OTLPExporter: RequestObserver, RunTracer {
    private let configuration: OTLPConfiguration
    private let worker: ExportWorker
    private let task: Task<Void, Never>

    /// Creates and starts an exporter.
    public init(_ configuration: OTLPConfiguration = OTLPConfiguration()) {
        self.configuration = configuration
        let worker = ExportWorker(configuration)
        self.worker = worker
        task = Task.detached { await worker.work() }
    }

    deinit { worker.close() }

    /// What was exported and dropped so far.
    public var statistics: OTLPStatistics { worker.statistics }

    /// Exports what is queued, and returns when the collector has responded, or ``OTLPConfiguration/deadline`` has
    /// passed for each export.
    public func flush() async { await worker.flush() }

    /// Exports what is queued, and ends the exporter, which then records nothing more. All of it takes at most one
    /// ``OTLPConfiguration/deadline``; what the collector has not accepted by then is dropped. It may be called several
    /// times.
    public func shutdown() async {
        worker.close()
        await task.value
    }

    // MARK: RunTracer

    package func begin(_ name: () -> String, below parent: TraceContext?) -> RunSpan {
        let context = parent?.child() ?? TraceContext.begin(sampling: configuration.sampledFraction)
        return RunSpan(
            context, below: parent?.spanID ?? 0, isRecorded: configuration.exportsTraces && context.isSampled,
            isPropagated: configuration.exportsTraces)
    }

    package func end(_ span: RunSpan, of run: RunInfo, _ outcome: RunOutcome, _ totals: RunTotals) {
        if span.isRecorded { worker.record(RecordedRun(span, run, outcome)) }
        // A run that was not sent says nothing about a server.
        if configuration.exportsMetrics, totals.attempts > 0 {
            worker.durations.record(totals.total, of: run, outcome)
        }
    }
}

/// The counters of an ``OTLPExporter``.
public struct OTLPStatistics: Sendable, Hashable {
    /// Spans that the collector accepted.
    public internal(set) var exportedSpans: UInt64 = 0
    /// Spans that the collector rejected.
    public internal(set) var rejectedSpans: UInt64 = 0
    /// Runs that were not exported, because the queue was full or their export failed.
    public internal(set) var droppedRuns: UInt64 = 0
    /// Exports that failed after all retries.
    public internal(set) var failedExports: UInt64 = 0
}
