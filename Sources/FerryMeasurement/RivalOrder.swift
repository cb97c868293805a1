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
