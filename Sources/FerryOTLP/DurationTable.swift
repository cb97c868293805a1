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

    private let bounds: [Double]
    private let limits: [Duration]
    private let maxSeries: Int
    private let series = Mutex<[Series: Counts]>([:])
    private let start: UInt64

    init(_ configuration: OTLPConfiguration, since start: UInt64) {
        bounds = configuration.durationBounds.filter(\.isFinite).sorted()
        // A bound beyond the range of a duration is above all of them.
        limits = bounds.map { .seconds(min(max($0, -1e15), 1e15)) }
        maxSeries = max(configuration.maxSeries, 1)
        self.start = start
    }

    func record(_ duration: Duration, of key: Series) {
        let bucket = limits.firstIndex { duration <= $0 } ?? limits.count
        series.withLock { series in
            // One look for nearly all: a key has two texts to hash.
            if let index = series.index(forKey: key) { return series.values[index].add(duration, to: bucket) }
            let place = series.count < maxSeries ? key : .overflow
            series[place, default: Counts(buckets: Array(repeating: 0, count: limits.count + 1))]
                .add(duration, to: bucket)
        }
    }

    /// The histogram since the start; empty if nothing was recorded.
    func metrics(at now: UInt64) -> [OTLPMetrics.Metric] {
        let points = series.withLock { $0 }
            .map { key, counts in
                OTLPMetrics.Point(
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
