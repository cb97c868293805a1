/// What a ``MetricsRecorder`` had counted at one moment.
public struct MetricsSnapshot: Sendable, Hashable {
    /// Runs of one kind.
    public struct Runs: Sendable, Hashable {
        /// Those that were started.
        public var started: UInt64 = 0
        /// Of these, those that ended well.
        public var finished: UInt64 = 0
        /// Those that ended by a fault.
        public var failed: UInt64 = 0
        /// Those that were cancelled.
        public var cancelled: UInt64 = 0

        /// Those that have not ended.
        public var inFlight: UInt64 {
            let ended = finished + failed + cancelled
            return started > ended ? started - ended : 0
        }
    }

    /// The requests to one host.
    public struct Host: Sendable, Hashable {
        /// Those that ended well.
        public let finished: UInt64
        /// Those that ended by a fault.
        public let failed: UInt64
        /// Those that were cancelled.
        public let cancelled: UInt64
        /// How long they took.
        public let latency: LatencyHistogram
    }

    /// Requests, members of batches and steps of chains included.
    public internal(set) var requests = Runs()
    /// Batches.
    public internal(set) var batches = Runs()
    /// Chains.
    public internal(set) var chains = Runs()

    /// Failed requests by the code of their error, like `timeout(connect)`.
    public internal(set) var failures: [String: UInt64] = [:]
    /// Requests that were answered from the cache.
    public internal(set) var fromCache: UInt64 = 0
    /// Sendings beyond the first of each request.
    public internal(set) var retries: UInt64 = 0
    /// Redirects followed.
    public internal(set) var redirects: UInt64 = 0
    /// Requests that went over a kept connection.
    public internal(set) var reusedConnections: UInt64 = 0
    /// Bytes of all requests, heads included.
    public internal(set) var bytesSent: UInt64 = 0
    /// Bytes of all answers, heads included, before decoding.
    public internal(set) var bytesReceived: UInt64 = 0
    /// How long requests took, their wait in the queue included.
    public internal(set) var latency: LatencyHistogram
    /// Figures of hosts (`h`, `h:8080`), as far as they were asked for.
    public internal(set) var hosts: [String: Host] = [:]

    init(latency: LatencyHistogram) { self.latency = latency }
}
