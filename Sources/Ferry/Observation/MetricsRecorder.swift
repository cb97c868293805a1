import Synchronization

/// An observer that counts: runs by outcome, failures by code, tries, redirects, bytes and latencies.
///
///     let recorder = MetricsRecorder()
///     configuration.observers.append(recorder)
///     try await agent.send(UserInfo(id: 7))
///     print(recorder.snapshot.latency.percentile(99), recorder.prometheusText())
///
/// Recording takes no lock and allocates nothing, failures and figures of each host apart. One may observe several
/// agents. Its texts carry codes and, if so wanted, hosts; never a URL, a header field or a body.
public final class MetricsRecorder: RequestObserver {
    private let counters = AtomicArray(count: Counter.allCases.count)
    private let latency = LatencyRecorder()
    private let failures = Mutex<[String: UInt64]>([:])
    private let hosts = Mutex<[String: HostRecorder]>([:])
    private let maxHosts: Int

    /// A recorder of nothing yet. `maxHosts` is how many hosts have figures of their own; the others together are
    /// called `other`. The default is 0, no figures of hosts.
    public init(maxHosts: Int = 0) { self.maxHosts = maxHosts }

    /// What was counted so far. Each figure is exact; together they may differ by a moment.
    public var snapshot: MetricsSnapshot {
        var made = MetricsSnapshot(latency: latency.histogram)
        for kind in RunInfo.Kind.allCases {
            var runs = MetricsSnapshot.Runs()
            runs.finished = value(.init(kind, .finished))
            runs.failed = value(.init(kind, .failed))
            runs.cancelled = value(.init(kind, .cancelled))
            // Read last, so that none has ended that had not started.
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

    // MARK: RequestObserver

    /// Counts a start.
    public func willStart(_ run: RunInfo) { add(1, to: .init(run.kind, .started)) }

    /// Counts an end, before the callbacks, so that they find themselves counted.
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

    /// Adds up what was measured.
    public func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        guard run.kind == .request else { return }
        // A run that never left took no time to speak of, and says nothing of any server.
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
            // `other` has a place besides those of the hosts.
            let key = hosts.count < maxHosts || name == "other" ? name : "other"
            if let known = hosts[key] { return known }
            let made = HostRecorder()
            hosts[key] = made
            return made
        }
    }
}

/// The figures of one host.
final class HostRecorder: Sendable {
    let latency = LatencyRecorder()
    private let counters = AtomicArray(count: 3)

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
    /// The code with its finer cause, where there are only so many causes.
    var label: String {
        switch name {
        case "incompleteBody", "invalidStatusCode": name
        default: description
        }
    }
}
