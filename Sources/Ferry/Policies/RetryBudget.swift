/// How many retries an agent makes for one host, whatever its requests' policies would like: when a server is down,
/// retries must not be the load that keeps it there.
///
/// Each request that may be retried pays ``ratio`` of a retry into its host's account when it is sent for the first
/// time, each second adds ``minimumPerSecond``, each retry takes one. An empty account means no retry: the failure is
/// delivered. What the cache or an interceptor answers, or what shares the transfer of another run, was not sent, and
/// pays nothing.
public struct RetryBudget: Sendable, Hashable {
    /// Retries for each request. The default is 0.2.
    public var ratio: Double

    /// Retries a second, so that few requests may be retried too. The default is 10.
    public var minimumPerSecond: Double

    /// What an account holds at most, and begins with. The default is 100 retries.
    public var burst: Double

    /// A budget; what is left out has its default.
    public init(ratio: Double = 0.2, minimumPerSecond: Double = 10, burst: Double = 100) {
        self.ratio = ratio
        self.minimumPerSecond = minimumPerSecond
        self.burst = burst
    }
}
