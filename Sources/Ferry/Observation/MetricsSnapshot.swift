/// The counts of a ``MetricsRecorder`` at one moment.
public struct MetricsSnapshot: Sendable, Hashable {
    /// The runs of one kind.
    public struct Runs: Sendable, Hashable {
        /// Runs that were started.
        public var started: UInt64 = 0
        /// Runs that succeeded.
        public var finished: UInt64 = 0
        /// Runs that failed.
        public var failed: UInt64 = 0
        /// Runs that were cancelled.
        public var cancelled: UInt64 = 0

        /// Runs that are active.
        public var inFlight: UInt64 {
            let ended = finished + failed + cancelled
            return started > ended ? started - ended : 0
        }
    }

    /// The requests to one host.
    public struct Host: Sendable, Hashable {
        /// Requests that succeeded.
        public let finished: UInt64
        /// Requests that failed.
        public let failed: UInt64
        /// Requests that were cancelled.
        public let cancelled: UInt64
        /// The distribution of their durations.
        public let latency: LatencyHistogram
    }

    /// Requests, including members of batches and steps of chains.
    public internal(set) var requests = Runs()
    /// Batches.
    public internal(set) var batches = Runs()
    /// Chains.
    public internal(set) var chains = Runs()

    /// Failed requests by the code of their error, like `timeout(connect)`.
    public internal(set) var failures: [String: UInt64] = [:]
    /// Requests whose response came from the cache.
    public internal(set) var fromCache: UInt64 = 0
    /// Attempts beyond the first of each request.
    public internal(set) var retries: UInt64 = 0
    /// Redirects that were followed.
    public internal(set) var redirects: UInt64 = 0
    /// Requests that reused a connection.
    public internal(set) var reusedConnections: UInt64 = 0
    /// Bytes sent, including heads.
    public internal(set) var bytesSent: UInt64 = 0
    /// Bytes received, including heads, before decoding.
    public internal(set) var bytesReceived: UInt64 = 0
    /// The distribution of the durations of requests, including their wait in the queue.
    public internal(set) var latency: LatencyHistogram
    /// The figures by host (`h`, `h:8080`), if enabled.
    public internal(set) var hosts: [String: Host] = [:]

    init(latency: LatencyHistogram) { self.latency = latency }
}

extension MetricsSnapshot {
    /// The snapshot in the text format of Prometheus (version 0.0.4), with names that begin with `ferry_`.
    ///
    /// Labels are kinds, outcomes, codes and hosts. Durations are in seconds.
    public func prometheusText() -> String {
        var text = PrometheusText()
        text.family("ferry_requests_started_total", .counter, "Requests that were started.")
        text.sample(requests.started)
        text.family("ferry_requests_total", .counter, "Requests that have ended, by outcome.")
        text.outcomes(requests)
        text.family("ferry_requests_in_flight", .gauge, "Requests that have not ended.")
        text.sample(requests.inFlight)
        text.family("ferry_request_failures_total", .counter, "Failed requests, by the code of their error.")
        for (code, count) in failures.sorted(by: { $0.key < $1.key }) { text.sample(count, ("code", code)) }

        text.family("ferry_groups_started_total", .counter, "Batches and chains that were started.")
        text.sample(batches.started, ("kind", "batch"))
        text.sample(chains.started, ("kind", "chain"))
        text.family("ferry_groups_total", .counter, "Batches and chains that have ended, by outcome.")
        text.outcomes(batches, ("kind", "batch"))
        text.outcomes(chains, ("kind", "chain"))

        for (name, help, count) in [
            ("ferry_request_retries_total", "Attempts beyond the first of each request.", retries),
            ("ferry_request_redirects_total", "Redirects that were followed.", redirects),
            ("ferry_request_cache_hits_total", "Requests whose response came from the cache.", fromCache),
            ("ferry_request_reused_connections_total", "Requests over a reused connection.", reusedConnections),
        ] {
            text.family(name, .counter, help)
            text.sample(count)
        }
        text.family("ferry_request_bytes_total", .counter, "Bytes of requests and responses, including heads.")
        text.sample(bytesSent, ("direction", "sent"))
        text.sample(bytesReceived, ("direction", "received"))
        text.family("ferry_request_duration_seconds", .histogram, "Duration of requests.")
        text.histogram(latency)
        appendHosts(to: &text)
        return text.text
    }

    /// The snapshot in the text format of Prometheus, followed by the connections of each origin.
    public func prometheusText(with statistics: AgentStatistics) -> String {
        prometheusText() + statistics.prometheusText()
    }

    private func appendHosts(to text: inout PrometheusText) {
        if hosts.isEmpty { return }
        let byName = hosts.sorted { $0.key < $1.key }
        text.family("ferry_host_requests_total", .counter, "Requests that have ended, by host and outcome.")
        for (name, host) in byName {
            let runs = Runs(finished: host.finished, failed: host.failed, cancelled: host.cancelled)
            text.outcomes(runs, ("host", name))
        }
        text.family("ferry_host_request_duration_seconds", .histogram, "Duration of requests, by host.")
        for (name, host) in byName { text.histogram(host.latency, ("host", name)) }
    }
}

/// Lines in Prometheus' text format under construction.
struct PrometheusText {
    typealias Label = (name: String, value: String)

    enum Kind: String { case counter, gauge, histogram }

    private(set) var text = ""
    private var name = ""

    /// Starts a family, to which the following samples belong.
    mutating func family(_ name: String, _ kind: Kind, _ help: String) {
        self.name = name
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    mutating func sample(_ value: UInt64, _ labels: Label...) { line(name, labels, "\(value)") }

    mutating func outcomes(_ runs: MetricsSnapshot.Runs, _ labels: Label...) {
        line(name, labels + [("outcome", "finished")], "\(runs.finished)")
        line(name, labels + [("outcome", "failed")], "\(runs.failed)")
        line(name, labels + [("outcome", "cancelled")], "\(runs.cancelled)")
    }

    /// Without configured bounds, the buckets are powers of two from 128 µs to 67 s, which are ends of the histogram's
    /// own buckets.
    mutating func histogram(_ histogram: LatencyHistogram, _ labels: Label...) {
        for bound in histogram.cumulative {
            // A value that is being recorded is in its bucket before it is in the count.
            let count = min(bound.count, histogram.count)
            line(name + "_bucket", labels + [("le", Self.seconds(bound.microseconds))], "\(count)")
        }
        let powers = histogram.cumulative.isEmpty ? (7...26).map { UInt64(1) << $0 } : []
        for (end, count) in zip(powers, histogram.counts(atMost: powers)) {
            line(name + "_bucket", labels + [("le", Self.seconds(end))], "\(count)")
        }
        line(name + "_bucket", labels + [("le", "+Inf")], "\(histogram.count)")
        line(name + "_sum", labels, Self.seconds(UInt64(clamping: histogram.sum.microseconds)))
        line(name + "_count", labels, "\(histogram.count)")
    }

    private mutating func line(_ name: String, _ labels: [Label], _ value: String) {
        text += name
        if !labels.isEmpty {
            text += "{" + labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",") + "}"
        }
        text += " \(value)\n"
    }

    private static func escaped(_ value: String) -> String {
        var made = ""
        for character in value.unicodeScalars {
            switch character {
            case "\\": made += "\\\\"
            case "\"": made += "\\\""
            case "\n": made += "\\n"
            default: made.unicodeScalars.append(character)
            }
        }
        return made
    }

    mutating func seconds(_ microseconds: UInt64, _ labels: Label...) { line(name, labels, Self.seconds(microseconds)) }

    private static func seconds(_ microseconds: UInt64) -> String {
        let fraction = String(microseconds % 1_000_000)
        return "\(microseconds / 1_000_000)." + String(repeating: "0", count: 6 - fraction.count) + fraction
    }
}
