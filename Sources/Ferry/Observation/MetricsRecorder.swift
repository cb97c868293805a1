import FerrySynchronization

/// An observer that counts runs by outcome, failures by code, retries, redirects, bytes and latencies.
///
///     let recorder = MetricsRecorder()
///     configuration.observers.append(recorder)
///     try await agent.send(UserInfo(id: 7))
///     print(recorder.snapshot.latency.percentile(99), recorder.prometheusText())
///
/// Recording takes no lock and allocates nothing, except for failures and the figures of hosts. A recorder may observe
/// several agents. Its texts contain codes and, if enabled, hosts; never a URL, a header field or a body.
public final class MetricsRecorder: RequestObserver {
    private let counters = AtomicArray(count: Counter.allCases.count)
    private let latency: LatencyRecorder
    private let bounds: [UInt64]
    private let failures = Mutex<[String: UInt64]>([:])
    private let hosts = Mutex<[String: HostRecorder]>([:])
    private let maxHosts: Int

    /// Creates a recorder. `maxHosts` is the number of hosts with figures of their own; further hosts are summed up as
    /// `other`. The default is 0: no figures by host.
    ///
    /// `durationBounds` are the upper bounds of the duration buckets in ``prometheusText()``, in whole microseconds.
    /// The default is 20 powers of two from 128 µs to 67 s.
    public init(maxHosts: Int = 0, durationBounds: [Duration] = []) {
        self.maxHosts = maxHosts
        bounds = Set(durationBounds.map { UInt64(clamping: $0.microseconds) }).sorted()
        latency = LatencyRecorder(bounds: bounds)
    }

    /// The counts so far. Each figure is exact, but they may be read at slightly different times.
    public var snapshot: MetricsSnapshot {
        var made = MetricsSnapshot(latency: latency.histogram)
        for kind in RunInfo.Kind.allCases {
            var runs = MetricsSnapshot.Runs()
            runs.finished = value(.init(kind, .finished))
            runs.failed = value(.init(kind, .failed))
            runs.cancelled = value(.init(kind, .cancelled))
            // Read last, so that no run has ended that had not started.
            runs.started = value(.init(kind, .started))
            switch kind {
            case .request: made.requests = runs
            case .batch: made.batches = runs
            case .chain: made.chains = runs
            }
        }
        made.failures = failures.withLock { $0 }
        made.fromCache = value(.fromCache)
        made.retries = value(.retries)
        made.redirects = value(.redirects)
        made.reusedConnections = value(.reusedConnections)
        made.bytesSent = value(.bytesSent)
        made.bytesReceived = value(.bytesReceived)
        made.hosts = hosts.withLock { $0 }.mapValues(\.snapshot)
        return made
    }

    /// The snapshot in the text format of Prometheus.
    public func prometheusText() -> String { snapshot.prometheusText() }

    /// The snapshot in the text format of Prometheus, followed by the connections of each origin of an agent.
    public func prometheusText(with statistics: AgentStatistics) -> String {
        snapshot.prometheusText(with: statistics)
    }

    // MARK: RequestObserver

    /// Counts the start of a run.
    public func willStart(_ run: RunInfo) { add(1, to: .init(run.kind, .started)) }

    /// Counts the end of a run, before its callbacks, so that these see it counted.
    public func willStop(_ run: RunInfo, _ outcome: RunOutcome) {
        switch outcome {
        case .finished(_, let isFromCache):
            add(1, to: .init(run.kind, .finished))
            if isFromCache, run.kind == .request { add(1, to: .fromCache) }
        case .failed(let error):
            add(1, to: .init(run.kind, .failed))
            if run.kind == .request { failures.withLock { $0[error.code.label, default: 0] += 1 } }
        case .cancelled: add(1, to: .init(run.kind, .cancelled))
        }
        host(of: run)?.count(outcome)
    }

    /// Adds the metrics of a run.
    public func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        guard run.kind == .request else { return }
        // A run that was never sent has no meaningful duration, and says nothing about any server.
        let hasLatency = metrics.attempts > 0 || metrics.total > .zero || metrics.cache != nil
        if hasLatency { latency.record(metrics.total) }
        add(metrics.bytesSent, to: .bytesSent)
        add(metrics.bytesReceived, to: .bytesReceived)
        if metrics.attempts > 1 { add(UInt64(metrics.attempts - 1), to: .retries) }
        if metrics.redirects > 0 { add(UInt64(metrics.redirects), to: .redirects) }
        if metrics.isReusedConnection { add(1, to: .reusedConnections) }
        if hasLatency { host(of: run)?.latency.record(metrics.total) }
    }

    // MARK: Counting

    private enum Counter: Int, CaseIterable {
        case requestsStarted, requestsFinished, requestsFailed, requestsCancelled
        case batchesStarted, batchesFinished, batchesFailed, batchesCancelled
        case chainsStarted, chainsFinished, chainsFailed, chainsCancelled
        case fromCache, retries, redirects, reusedConnections, bytesSent, bytesReceived

        enum Event: Int { case started, finished, failed, cancelled }

        init(_ kind: RunInfo.Kind, _ event: Event) {
            self =
                switch (kind, event) {
                case (.request, .started): .requestsStarted
                case (.request, .finished): .requestsFinished
                case (.request, .failed): .requestsFailed
                case (.request, .cancelled): .requestsCancelled
                case (.batch, .started): .batchesStarted
                case (.batch, .finished): .batchesFinished
                case (.batch, .failed): .batchesFailed
                case (.batch, .cancelled): .batchesCancelled
                case (.chain, .started): .chainsStarted
                case (.chain, .finished): .chainsFinished
                case (.chain, .failed): .chainsFailed
                case (.chain, .cancelled): .chainsCancelled
                }
        }
    }

    private func add(_ value: UInt64, to counter: Counter) { counters[counter.rawValue].add(value, ordering: .relaxed) }

    private func value(_ counter: Counter) -> UInt64 { counters[counter.rawValue].load(ordering: .relaxed) }

    private func host(of run: RunInfo) -> HostRecorder? {
        if maxHosts <= 0 || run.kind != .request { return nil }
        let name = run.host
        return hosts.withLock { hosts in
            if let known = hosts[name] { return known }
            // `other` has a slot in addition to those of the hosts.
            let key = hosts.count < maxHosts || name == "other" ? name : "other"
            if let known = hosts[key] { return known }
            let made = HostRecorder(bounds: bounds)
            hosts[key] = made
            return made
        }
    }
}

/// The figures of one host.
final class HostRecorder: Sendable {
    let latency: LatencyRecorder
    private let counters = AtomicArray(count: 3)

    init(bounds: [UInt64]) { latency = LatencyRecorder(bounds: bounds) }

    func count(_ outcome: RunOutcome) {
        let index =
            switch outcome {
            case .finished: 0
            case .failed: 1
            case .cancelled: 2
            }
        counters[index].add(1, ordering: .relaxed)
    }

    var snapshot: MetricsSnapshot.Host {
        MetricsSnapshot.Host(
            finished: counters[0].load(ordering: .relaxed), failed: counters[1].load(ordering: .relaxed),
            cancelled: counters[2].load(ordering: .relaxed), latency: latency.histogram)
    }
}

extension RequestError.Code {
    /// The code with its detail, if there are only a few details.
    package var label: String {
        switch name {
        case "incompleteBody", "invalidStatusCode": name
        default: description
        }
    }
}

/// A histogram that many threads update at once without a lock.
final class LatencyRecorder: Sendable {
    // After the buckets.
    private static let sum = LatencyHistogram.bucketCount
    private static let maximum = LatencyHistogram.bucketCount + 1

    private let words = AtomicArray(count: LatencyHistogram.bucketCount + 2)
    /// Configured bounds of further buckets.
    private let bounds: [UInt64]
    private let bounded: AtomicArray

    init(bounds: [UInt64] = []) {
        self.bounds = bounds
        bounded = AtomicArray(count: bounds.count + 1)
    }

    func record(_ duration: Duration) {
        let value = UInt64(clamping: duration.microsecondsRoundedUp)
        if !bounds.isEmpty {
            bounded[bounds.firstIndex { value <= $0 } ?? bounds.count].add(1, ordering: .relaxed)
        }
        words[LatencyHistogram.bucket(of: value)].add(1, ordering: .relaxed)
        words[Self.sum].add(value, ordering: .relaxed)
        // A new maximum is rare: a look first keeps the cache line shared.
        if words[Self.maximum].load(ordering: .relaxed) < value { words[Self.maximum].max(value, ordering: .relaxed) }
    }

    var histogram: LatencyHistogram {
        var histogram = LatencyHistogram(
            counts: (0..<LatencyHistogram.bucketCount).map { words[$0].load(ordering: .relaxed) },
            microseconds: words[Self.sum].load(ordering: .relaxed),
            maximum: words[Self.maximum].load(ordering: .relaxed))
        var count: UInt64 = 0
        histogram.cumulative = bounds.indices.map { index in
            count += bounded[index].load(ordering: .relaxed)
            return LatencyHistogram.Bound(microseconds: bounds[index], count: count)
        }
        return histogram
    }
}

extension Duration {
    fileprivate var microsecondsRoundedUp: Int64 {
        let whole = microseconds
        return whole < .max && self > .microseconds(whole) ? whole + 1 : whole
    }
}

/// The distribution of the durations of runs. Buckets grow with the value, and each is a sixteenth of a power of two
/// wide, so that a percentile is at most 6.25 % too high. It takes a fixed 4.3 KB.
public struct LatencyHistogram: Sendable, Hashable {
    /// The number of buckets per power of two, as a power of two.
    private static let precision = 4
    /// Longer durations, of more than 19 hours, count as this one.
    private static let limit: UInt64 = 1 << 36
    static let bucketCount = bucket(of: limit) + 1

    /// The number of values up to a configured bound.
    struct Bound: Sendable, Hashable {
        let microseconds: UInt64
        let count: UInt64
    }

    private let counts: [UInt64]
    /// In ascending order; empty without configured bounds.
    var cumulative: [Bound] = []

    /// The number of values.
    public let count: UInt64
    /// The sum of all values.
    public let sum: Duration
    /// The largest value.
    public let maximum: Duration

    init(counts: [UInt64], microseconds sum: UInt64, maximum: UInt64) {
        self.counts = counts
        count = counts.reduce(0, &+)
        self.sum = .microseconds(Int64(clamping: sum))
        self.maximum = .microseconds(Int64(clamping: maximum))
    }

    /// The arithmetic mean; zero without values.
    public var mean: Duration { count == 0 ? .zero : sum / Int(clamping: count) }

    /// The duration that `percent` of the values do not exceed; zero without values.
    public func percentile(_ percent: Double) -> Duration {
        if count == 0 { return .zero }
        let rank = max(1, (Double(count) * min(max(percent, 0), 100) / 100).rounded(.up))
        var seen: UInt64 = 0
        for bucket in counts.indices {
            seen += counts[bucket]
            if Double(seen) >= rank { return min(maximum, .microseconds(Int64(Self.upperEnd(of: bucket)))) }
        }
        return maximum
    }

    /// The numbers of values up to each of these powers of two, which ascend.
    func counts(atMost microseconds: [UInt64]) -> [UInt64] {
        var (next, sum) = (0, UInt64(0))
        return microseconds.map { end in
            let last = Self.bucket(of: end)
            sum &+= counts[next...last].reduce(0, &+)
            next = last + 1
            return sum
        }
    }

    /// Values up to 2^(precision + 1) have a bucket each. Above that, the upper end of a bucket belongs to it.
    static func bucket(of microseconds: UInt64) -> Int {
        let value = min(max(microseconds, 1), limit) - 1
        let exponent = max(0, UInt64.bitWidth - value.leadingZeroBitCount - precision - 1)
        return (exponent << precision) + Int(value >> UInt64(exponent))
    }

    static func upperEnd(of bucket: Int) -> UInt64 {
        let exponent = max(0, (bucket >> precision) - 1)
        let mantissa = UInt64(bucket - (exponent << precision))
        return (mantissa + 1) << UInt64(exponent)
    }
}
