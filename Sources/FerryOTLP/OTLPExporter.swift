internal import Dispatch
public import Ferry
internal import FerryTransport
internal import Synchronization

/// An observer that sends the runs of agents to an OpenTelemetry collector: a span for each run, a span for each of its
/// attempts below that, and the histogram `http.client.request.duration`, by OTLP over HTTP in JSON.
///
///     let exporter = OTLPExporter(OTLPConfiguration(serviceName: "shop"))
///     configuration.observers.append(exporter)
///
/// It belongs to the service: ``shutdown()`` exports what there is when that ends.
///
/// A run belongs to the trace of `TraceContext.current`, or begins one. Spans and attributes follow the semantic
/// conventions for HTTP clients; URLs are redacted. An attempt whose body is streamed ends with its head, its run with
/// the body. Of several exporters in one configuration the first gets the spans.
///
/// The exporter has an agent of its own. What waits is bounded (``OTLPConfiguration/maxQueuedRuns``), a collector that
/// cannot be reached costs what it did not take, and no run ever waits for it.
public final class OTLPExporter: RequestObserver, RunTracer {
    private let configuration: OTLPConfiguration
    private let worker: ExportWorker
    private let task: Task<Void, Never>

    /// An exporter that begins at once.
    public init(_ configuration: OTLPConfiguration = OTLPConfiguration()) {
        self.configuration = configuration
        let worker = ExportWorker(configuration)
        self.worker = worker
        task = Task.detached { await worker.work() }
    }

    deinit { worker.close() }

    /// What was exported and dropped so far.
    public var statistics: OTLPStatistics { worker.statistics }

    /// Exports what there is, and returns when the collector has answered, or could not be reached within the
    /// deadline.
    public func flush() async { await worker.flush() }

    /// Exports what there is, and ends the exporter: it records nothing any more. Any number of times.
    public func shutdown() async {
        worker.close()
        await task.value
    }

    // MARK: RunTracer

    package func begin(_ run: RunInfo, below parent: TraceContext?) -> RunSpan {
        let context = parent?.child() ?? TraceContext.begin(sampling: configuration.sampledFraction)
        return RunSpan(
            context, below: parent?.spanID ?? 0, isRecorded: configuration.exportsTraces && context.isSampled)
    }

    package func end(_ span: RunSpan, of run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics) {
        if span.isRecorded { worker.record(RecordedRun(span, run, outcome)) }
        // A run that was not sent says nothing of a server.
        if configuration.exportsMetrics, metrics.attempts > 0 {
            let error: String? =
                switch outcome {
                case .finished: nil
                case .failed(let error): error.code.label
                case .cancelled: "cancelled"
                }
            worker.durations.record(
                metrics.total,
                of: DurationTable.Series(
                    method: run.method?.rawValue ?? "", authority: run.host, isSecure: run.isSecure,
                    status: outcome.status ?? 0, error: error))
        }
    }
}

/// What an ``OTLPExporter`` has done so far.
public struct OTLPStatistics: Sendable, Hashable {
    /// Spans that the collector took.
    public internal(set) var exportedSpans: UInt64 = 0
    /// Spans that the collector did not take, by its own answer.
    public internal(set) var rejectedSpans: UInt64 = 0
    /// Runs that were not exported: there was no place for them, or their export failed.
    public internal(set) var droppedRuns: UInt64 = 0
    /// Exports that failed, retries included.
    public internal(set) var failedExports: UInt64 = 0
}
