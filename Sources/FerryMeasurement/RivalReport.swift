/// The results of another client for a ``RivalOrder``: a part of the report of `ferry bench --json`.
public struct RivalReport: Codable, Sendable, Equatable {
    /// The name of the client.
    public var name: String
    /// The number of requests, including those that failed.
    public var requests: UInt64
    /// Requests with a status from 200 to 299.
    public var ok: UInt64
    /// All other requests.
    public var failed: UInt64
    /// Seconds from the first request to the last response.
    public var seconds: Double
    /// Requests per second.
    public var rps: Double
    /// Latencies in microseconds.
    public var latency: [String: Double]
    /// CPU time for a request in microseconds: `user` and `sys`.
    public var cpu: [String: Double]
    /// The peak memory in kilobytes.
    public var memory: Int

    private enum CodingKeys: String, CodingKey {
        case name, requests, ok, failed, seconds, rps
        case latency = "latency_us"
        case cpu = "cpu_us_per_request"
        case memory = "max_rss_kb"
    }

    /// Makes a report from measured values.
    public init(name: String, latencies: Histogram, failed: UInt64, seconds: Double, usage: ProcessUsage, memory: Int) {
        let count = latencies.count + failed
        let share = Double(max(1, count))
        self.name = name
        requests = count
        ok = latencies.count
        self.failed = failed
        self.seconds = seconds
        rps = seconds > 0 ? (Double(count) / seconds * 10).rounded() / 10 : 0
        latency = ["mean": (latencies.mean / 100).rounded() / 10, "max": Double(latencies.maximum / 100) / 10]
        for (name, percent) in [("p50", 50.0), ("p75", 75), ("p90", 90), ("p95", 95), ("p99", 99), ("p99.9", 99.9)] {
            latency[name] = Double(latencies.percentile(percent) / 100) / 10
        }
        cpu = ["user": (usage.user / share * 100).rounded() / 100, "sys": (usage.system / share * 100).rounded() / 100]
        self.memory = memory
    }
}

/// The load that another client has to send for a comparison: closed-loop, without bodies.
///
/// `ferry bench --compare` passes it to `FerryBenchmarks` as JSON.
public struct RivalOrder: Codable, Sendable, Equatable {
    /// The method, such as `GET`.
    public var method: String
    /// The absolute URL.
    public var url: String
    /// The header fields: names and values, alternating.
    public var headers: [String]
    /// The number of concurrent requests.
    public var concurrency: Int
    /// The maximum number of connections to the server.
    public var connections: Int
    /// The number of requests; `nil` if the time limits the run.
    public var requests: Int?
    /// The duration in seconds; `nil` if the number of requests limits the run.
    public var seconds: Double?
    /// Seconds of load before the measurement.
    public var warmUp: Double

    /// Makes an order for a number of requests or a time in seconds.
    public init(
        method: String, url: String, headers: [String], concurrency: Int, connections: Int, requests: Int?,
        seconds: Double?, warmUp: Double
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.concurrency = concurrency
        self.connections = connections
        self.requests = requests
        self.seconds = seconds
        self.warmUp = warmUp
    }
}
