/// What another client made of a ``RivalOrder``: a part of what `ferry bench --json` writes of its own.
public struct RivalReport: Codable, Sendable, Equatable {
    /// Of the client.
    public var name: String
    /// Those that were answered, and those that failed.
    public var requests: UInt64
    /// Answered with 200 to 299.
    public var ok: UInt64
    /// All others.
    public var failed: UInt64
    /// From the first request to the last answer.
    public var seconds: Double
    /// Requests a second.
    public var rps: Double
    /// Microseconds.
    public var latency: [String: Double]
    /// Microseconds of CPU a request: `user` and `sys`.
    public var cpu: [String: Double]
    /// Kilobytes at the peak.
    public var memory: Int

    private enum CodingKeys: String, CodingKey {
        case name, requests, ok, failed, seconds, rps
        case latency = "latency_us"
        case cpu = "cpu_us_per_request"
        case memory = "max_rss_kb"
    }

    /// From what was counted.
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

/// What another client is asked to send, so that it can be compared: the closed model, without bodies.
///
/// `ferry bench --compare` gives it to `FerryBenchmarks` as JSON.
public struct RivalOrder: Codable, Sendable, Equatable {
    /// Like `GET`.
    public var method: String
    /// An absolute one.
    public var url: String
    /// Names and values, in turn.
    public var headers: [String]
    /// Requests at once.
    public var concurrency: Int
    /// To the server, at most.
    public var connections: Int
    /// `nil` when the time ends it.
    public var requests: Int?
    /// `nil` when the number of requests ends it.
    public var seconds: Double?
    /// Seconds of load that do not count.
    public var warmUp: Double

    /// An order for so many requests or so many seconds.
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
