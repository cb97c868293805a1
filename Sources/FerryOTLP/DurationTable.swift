import Ferry
import Synchronization

/// The histogram `http.client.request.duration`, with the attributes of the semantic conventions for HTTP clients.
final class DurationTable: Sendable {
    /// The attributes that identify a series.
    struct Series: Hashable, Sendable {
        var method: String
        /// `h`, `h:8443`
        var authority: String
        var isSecure: Bool
        /// 0 without a response.
        var status: Int
        var error: String?

        /// The series for everything beyond the maximum number of series.
        static var overflow: Series { Series(method: "", authority: "", isSecure: false, status: 0) }
    }

    /// A series that was found lately. Comparing is cheaper than making and hashing its key.
    private struct Recent {
        let method: HTTPMethod
        /// The beginning of the URL: `https://h:8443`.
        let origin: String
        let status: Int
        let place: Int
    }

    private struct Counts {
        var buckets: [UInt64]
        var sum = Duration.zero
        var longest = Duration.zero

        mutating func add(_ duration: Duration, to bucket: Int) {
            buckets[bucket] += 1
            sum += duration
            longest = max(longest, duration)
        }
    }

    private struct State {
        /// The places of the series in `counts`.
        var places: [Series: Int] = [:]
        var counts: [Counts] = []
        /// The latest first.
        var recent: [Recent] = []

        mutating func remember(_ found: Recent) {
            if recent.count == 8 { recent.removeLast() }
            recent.insert(found, at: 0)
        }
    }

    private let bounds: [Double]
    private let limits: [Duration]
    private let maxSeries: Int
    private let state = Mutex(State())
    private let start: UInt64

    init(_ configuration: OTLPConfiguration, since start: UInt64) {
        bounds = configuration.durationBounds.filter(\.isFinite).sorted()
        // A bound beyond the range of a duration is above all of them.
        limits = bounds.map { .seconds(min(max($0, -1e15), 1e15)) }
        maxSeries = max(configuration.maxSeries, 1)
        self.start = start
    }

    /// Records a run that has received a response or failed.
    func record(_ duration: Duration, of run: RunInfo, _ outcome: RunOutcome) {
        let bucket = bucket(of: duration)
        guard case .finished(let status?, _) = outcome, let method = run.method else {
            return record(duration, of: Series(run, outcome))
        }
        let isDone = state.withLock { state in
            // By index: a loop over the elements would copy each of them.
            let found = state.recent.indices.first {
                state.recent[$0].status == status && state.recent[$0].method == method
                    && run.begins(with: state.recent[$0].origin)
            }
            guard let found else { return false }
            state.counts[state.recent[found].place].add(duration, to: bucket)
            return true
        }
        if isDone { return }
        let series = Series(run, outcome)
        let origin = (run.isSecure ? "https://" : "http://") + series.authority
        state.withLock { state in
            let place = place(of: series, &state)
            state.counts[place].add(duration, to: bucket)
            // The URL may be spelled in another way, which is found only by its key.
            if run.begins(with: origin) {
                state.remember(Recent(method: method, origin: origin, status: status, place: place))
            }
        }
    }

    func record(_ duration: Duration, of series: Series) {
        let bucket = bucket(of: duration)
        state.withLock { state in
            let place = place(of: series, &state)
            state.counts[place].add(duration, to: bucket)
        }
    }

    private func bucket(of duration: Duration) -> Int { limits.firstIndex { duration <= $0 } ?? limits.count }

    private func place(of key: Series, _ state: inout State) -> Int {
        if let place = state.places[key] { return place }
        let key = state.places.count < maxSeries ? key : .overflow
        if let place = state.places[key] { return place }
        state.places[key] = state.counts.count
        state.counts.append(Counts(buckets: Array(repeating: 0, count: limits.count + 1)))
        return state.counts.count - 1
    }

    /// The histogram since the start; empty if nothing was recorded.
    func metrics(at now: UInt64) -> [OTLPMetrics.Metric] {
        let (places, all) = state.withLock { ($0.places, $0.counts) }
        let points =
            places.map { key, place in
                let counts = all[place]
                return OTLPMetrics.Point(
                    attributes: key.attributes, startTimeUnixNano: String(start), timeUnixNano: String(now),
                    count: String(counts.buckets.reduce(0, +)), sum: counts.sum / .seconds(1),
                    bucketCounts: counts.buckets.map(String.init), explicitBounds: bounds,
                    max: counts.longest / .seconds(1))
            }
        if points.isEmpty { return [] }
        return [
            OTLPMetrics.Metric(
                name: "http.client.request.duration", description: "Duration of HTTP client requests.", unit: "s",
                histogram: OTLPMetrics.Histogram(dataPoints: points))
        ]
    }
}

extension DurationTable.Series {
    init(_ run: RunInfo, _ outcome: RunOutcome) {
        let error: String? =
            switch outcome {
            case .finished: nil
            case .failed(let error): error.code.label
            case .cancelled: "cancelled"
            }
        self.init(
            method: OTLPMethod.known(run.method?.rawValue ?? ""), authority: run.host, isSecure: run.isSecure,
            status: outcome.status ?? 0, error: error)
    }

    var attributes: [OTLPAttribute] {
        if self == .overflow { return [OTLPAttribute("otel.metric.overflow", true)] }
        var made = [OTLPAttribute("http.request.method", method)]
        made += OTLPAttribute.server(authority, isSecure: isSecure)
        if status != 0 { made.append(OTLPAttribute("http.response.status_code", status)) }
        if let error { made.append(OTLPAttribute("error.type", error)) }
        return made
    }
}

extension OTLPAttribute {
    /// `server.address` and `server.port` of an authority.
    static func server(_ authority: String, isSecure: Bool) -> [OTLPAttribute] {
        let (host, port) = RunSpan.Attempt.server(authority, isSecure: isSecure)
        return [OTLPAttribute("server.address", host), OTLPAttribute("server.port", port)]
    }
}
