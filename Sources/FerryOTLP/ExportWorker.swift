import Dispatch
import Ferry
import FerryJSON
import FerrySynchronization

/// The export queue, and the task that exports: one request at a time, in order.
final class ExportWorker: Sendable {
    private enum Job: Sendable {
        case spans
        case metrics
        /// Exports both for the tasks that wait for it.
        case everything
    }

    private struct State {
        var runs: RecordedRuns
        var statistics = OTLPStatistics()
        /// When the last exports must have ended; `nil` while it is open.
        var end: ContinuousClock.Instant?
        /// Whether an export of spans was requested and has not started. The next one is the same for metrics.
        var isPending = false
        var areMetricsPending = false
        /// The tasks that wait for the next export of everything.
        var waiters: [CheckedContinuation<Void, Never>] = []
        /// The last exports are done.
        var isOver = false
    }

    let durations: DurationTable
    private let configuration: OTLPConfiguration
    private let resource: OTLPResource
    /// The resource as JSON.
    private let resourceText: [UInt8]
    private let agent: NetworkAgent
    private let state: Mutex<State>
    private let (stream, jobs) = AsyncStream.makeStream(of: Job.self)

    init(_ configuration: OTLPConfiguration) {
        self.configuration = configuration
        resource = OTLPResource(configuration)
        // A resource has only strings, so encoding it cannot fail.
        resourceText = (try? FerryJSONEncoder().encode(resource)).map { Array($0) } ?? Array("{}".utf8)
        durations = DurationTable(configuration, since: wallClock())
        var network = configuration.network
        network.baseURL = configuration.endpoint
        network.observers = []
        network.cache = nil
        agent = NetworkAgent(configuration: network)
        state = Mutex(State(runs: RecordedRuns(most: configuration.maxQueuedRuns)))
    }

    // MARK: From outside, on any thread

    func record(_ run: RecordedRun) {
        let isTime = state.withLock { $0.end == nil && $0.runs.append(run) }
        if isTime { exportSpansSoon() }
    }

    var statistics: OTLPStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.droppedRuns += state.runs.dropped
            return statistics
        }
    }

    /// All who wait for it meanwhile share the next export: if the collector does not respond, each export takes as
    /// long as the deadline. When the worker is closed, these are its last exports.
    func flush() async {
        await withCheckedContinuation { waiter in
            let (isFirst, isOver) = state.withLock { state in
                if !state.isOver { state.waiters.append(waiter) }
                return (state.waiters.count == 1, state.isOver)
            }
            if isOver { return waiter.resume() }
            if isFirst { jobs.yield(.everything) }
        }
    }

    private func takeWaiters() -> [CheckedContinuation<Void, Never>] {
        state.withLock { state in
            defer { state.waiters = [] }
            return state.waiters
        }
    }

    private func resume(_ waiters: [CheckedContinuation<Void, Never>]) { for waiter in waiters { waiter.resume() } }

    /// Accepts no more runs. The worker exports the rest within one deadline and ends.
    func close() {
        state.withLock { state in
            if state.end == nil { state.end = .now + min(configuration.deadline, .seconds(1 << 31)) }
        }
        jobs.finish()
    }

    private func exportSpansSoon() {
        let isNew = state.withLock { state in
            defer { state.isPending = true }
            return !state.isPending
        }
        if isNew { jobs.yield(.spans) }
    }

    /// Requests an export of metrics, unless one is pending: if the collector is slower than the interval, exports do
    /// not pile up.
    private func exportMetricsSoon() {
        let isNew = state.withLock { state in
            defer { state.areMetricsPending = true }
            return !state.areMetricsPending
        }
        if isNew { jobs.yield(.metrics) }
    }

    // MARK: In its task

    /// Runs until it is closed.
    func work() async {
        let timers = [
            timer(every: configuration.spanInterval) { $0.exportSpansSoon() },
            timer(every: configuration.metricsInterval) { $0.exportMetricsSoon() },
        ]
        for await job in stream {
            // The last exports below are the same for all jobs that wait when it is closed.
            if state.withLock({ $0.end != nil }) { continue }
            switch job {
            case .spans: await exportSpans()
            case .metrics: await exportMetrics()
            case .everything:
                let waiters = takeWaiters()
                if waiters.isEmpty { continue }
                await exportSpans()
                await exportMetrics()
                resume(waiters)
            }
        }
        for timer in timers { timer.cancel() }
        await exportSpans()
        await exportMetrics()
        state.withLock { state in
            state.isOver = true
            // What could not be exported now is lost.
            state.statistics.droppedRuns += UInt64(state.runs.drop())
        }
        resume(takeWaiters())
        await agent.shutdown(grace: .zero)
    }

    private func timer(
        every interval: Duration, _ work: @escaping @Sendable (ExportWorker) -> Void
    ) -> any DispatchSourceTimer {
        let timer = DispatchSource.makeTimerSource(queue: .global(qos: .utility))
        let milliseconds = Int(min(max(interval, .milliseconds(10)), .seconds(1 << 31)) / .milliseconds(1))
        timer.schedule(deadline: .now() + .milliseconds(milliseconds), repeating: .milliseconds(milliseconds))
        timer.setEventHandler { [weak self] in if let self { work(self) } }
        timer.activate()
        return timer
    }

    /// Exports all spans that are waiting now. If an export fails, the rest waits for the next one. So do runs that end
    /// during the export: under load there are always some, and the export would never end.
    private func exportSpans() async {
        var left = state.withLock { state in
            state.isPending = false
            return state.runs.count
        }
        while left > 0 {
            let most = min(left, max(configuration.maxBatch, 1))
            let runs = state.withLock { $0.runs.take(most) }
            left -= runs.count
            var writer = SpanWriter(resource: resourceText)
            for run in runs { writer.append(run) }
            let count = UInt64(writer.count)
            let answer = await send(.data(writer.finish(), contentType: "application/json"), to: "v1/traces")
            state.withLock { state in
                guard let answer else {
                    state.statistics.droppedRuns += UInt64(runs.count)
                    return
                }
                let rejected = min(answer.rejected("rejectedSpans"), count)
                state.statistics.rejectedSpans += rejected
                state.statistics.exportedSpans += count - rejected
            }
            if answer == nil { return }
        }
        if state.withLock({ $0.runs.isHalfFull }) { exportSpansSoon() }
    }

    private func exportMetrics() async {
        state.withLock { $0.areMetricsPending = false }
        let metrics = durations.metrics(at: wallClock())
        if !metrics.isEmpty { _ = await send(.json(OTLPMetrics(resource, metrics)), to: "v1/metrics") }
    }

    /// The collector's response; `nil` if it rejected the export.
    private func send(_ body: RequestBody, to path: String) async -> OTLPAnswer? {
        var request = HTTPRequest(.post, path, headers: configuration.headers, body: body)
        request.deadline = configuration.deadline
        if let end = state.withLock({ $0.end }) {
            let rest = ContinuousClock.now.duration(to: end)
            if rest <= .zero { return nil }
            request.deadline = min(rest, configuration.deadline)
        }
        // These are the statuses that OTLP allows to retry. Repeating an export does no harm.
        var policy = RetryPolicy.exponential(maxAttempts: 5)
        policy.statuses = [429, 502, 503, 504]
        policy.retriesNonIdempotent = true
        request.retryPolicy = policy
        request.propagatesTrace = false
        // An export stays one, and the key of the collector goes to no other server, whatever its field is called.
        // A 303 would make it a GET (RFC 9110, 15.4.4).
        request.redirectPolicy = .follow(
            sensitiveHeaders: configuration.headers.map(\.name), keepsMethodOn301And302: true
        ) { $0.status == 303 ? .refuse : .follow }
        do {
            return OTLPAnswer(try await agent.send(request).value)
        } catch {
            state.withLock { $0.statistics.failedExports += 1 }
            return nil
        }
    }
}

/// The collector's response to an accepted export. It may say that the collector rejected a part.
struct OTLPAnswer {
    private let partial: JSON?

    /// A body that is not JSON is ignored, because the status already says that the export was accepted.
    init(_ response: Response) { partial = (try? response.json)?["partialSuccess"] }

    /// The number of rejected items. It is a string in the JSON of OTLP, but some collectors send a number.
    func rejected(_ member: String) -> UInt64 {
        guard let count = partial?[member] else { return 0 }
        return count.string.flatMap { UInt64($0) } ?? count.uint.map { UInt64($0) } ?? 0
    }
}
