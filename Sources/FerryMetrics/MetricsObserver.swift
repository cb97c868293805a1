#if Metrics
public import CoreMetrics
public import Ferry
internal import Synchronization

/// An observer that records the runs of agents in a backend of swift-metrics.
///
///     configuration.observers.append(MetricsObserver())
///
/// | metric | kind | meaning |
/// |---|---|---|
/// | `http.client.request.duration` | timer | from the start of a run to its outcome |
/// | `ferry.runs` | counter | runs that ended |
/// | `ferry.bytes_sent`, `ferry.bytes_received` | counter | bytes on the wire, in all attempts |
/// | `ferry.attempts` | counter | attempts: more than runs if requests are sent again |
/// | `http.client.active_requests` | meter | runs in progress; without dimensions |
///
/// The dimensions are those of the semantic conventions for HTTP clients: `http.request.method`, `server.address` (with
/// its port, unless that is the scheme's default), `http.response.status_code` and `error.type`, each if it is known. A
/// run that sent nothing, for example because the cache served it or the queue was full, is counted but not timed.
/// Batches and chains are not counted; their members are.
///
/// One observer may serve several agents. A backend keeps its metrics for each set of dimensions, so their number is
/// limited: beyond ``init(maxSeries:factory:)`` sets, runs are recorded with the dimension `otel.metric.overflow`.
public final class MetricsObserver: RequestObserver {
    /// The dimensions of a series.
    private struct Key: Hashable {
        var method: String
        var host: String
        var status: Int?
        var error: String?
    }

    private struct Series: Sendable {
        let duration: CoreMetrics.Timer
        let runs: Counter
        let attempts: Counter
        let bytesSent: Counter
        let bytesReceived: Counter

        init(_ dimensions: [(String, String)], _ factory: any MetricsFactory) {
            duration = CoreMetrics.Timer(
                label: "http.client.request.duration", dimensions: dimensions, factory: factory)
            runs = Counter(label: "ferry.runs", dimensions: dimensions, factory: factory)
            attempts = Counter(label: "ferry.attempts", dimensions: dimensions, factory: factory)
            bytesSent = Counter(label: "ferry.bytes_sent", dimensions: dimensions, factory: factory)
            bytesReceived = Counter(label: "ferry.bytes_received", dimensions: dimensions, factory: factory)
        }
    }

    private let factory: any MetricsFactory
    private let maxSeries: Int
    private let series = Mutex<[Key?: Series]>([:])
    private let active: Meter

    /// Creates an observer that records with `factory`. The default is that of the process, which must have been
    /// bootstrapped before. `maxSeries` limits the number of sets of dimensions; the default is 1,000.
    public init(maxSeries: Int = 1000, factory: any MetricsFactory = MetricsSystem.factory) {
        self.factory = factory
        self.maxSeries = max(maxSeries, 1)
        active = Meter(label: "http.client.active_requests", factory: factory)
    }

    /// Counts a run that starts.
    public func willStart(_ run: RunInfo) { if run.kind == .request { active.increment() } }

    /// Records a run that has ended.
    public func ended(_ run: RunInfo, _ outcome: RunOutcome, _ metrics: RequestMetrics) {
        guard run.kind == .request else { return }
        active.decrement()
        let series = series(of: run, outcome)
        series.runs.increment()
        // No request was sent, so the time says nothing about a server.
        guard metrics.attempts > 0 else { return }
        series.duration.record(duration: metrics.total)
        series.attempts.increment(by: metrics.attempts)
        series.bytesSent.increment(by: Int64(clamping: metrics.bytesSent))
        series.bytesReceived.increment(by: Int64(clamping: metrics.bytesReceived))
    }

    private func series(of run: RunInfo, _ outcome: RunOutcome) -> Series {
        let error: String? =
            switch outcome {
            case .finished: nil
            case .failed(let error): error.code.label
            case .cancelled: "cancelled"
            }
        let key = Key(method: run.method?.rawValue ?? "", host: run.host, status: outcome.status, error: error)
        return series.withLock { series in
            let place = series[key] != nil || series.count < maxSeries ? key : nil
            if let known = series[place] { return known }
            let made = Series(Self.dimensions(of: place), factory)
            series[place] = made
            return made
        }
    }

    private static func dimensions(of key: Key?) -> [(String, String)] {
        guard let key else { return [("otel.metric.overflow", "true")] }
        var dimensions = [("http.request.method", key.method)]
        if !key.host.isEmpty { dimensions.append(("server.address", key.host)) }
        if let status = key.status { dimensions.append(("http.response.status_code", "\(status)")) }
        if let error = key.error { dimensions.append(("error.type", error)) }
        return dimensions
    }
}

extension CoreMetrics.Timer {
    fileprivate func record(duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        recordNanoseconds(overflows ? Int64.max : whole &+ attoseconds / 1_000_000_000)
    }
}
#endif
