import FerryTransport

/// The time limits for the parts of a transfer; `nil` means no limit. The clocks start when the run leaves the queue.
public struct Timeouts: Sendable, Hashable {
    /// The limit for name lookup, connect and TLS handshake together. The default is `nil`.
    public var connect: Duration?
    /// The maximum time without a byte in either direction, and for a name lookup or a connect. The default is 60
    /// seconds. The clock stops while a body waits for its reader or its source. With HTTP/2 only bytes of the run's
    /// own stream count.
    public var idle: Duration?
    /// The limit for the whole exchange. The default is `nil`.
    public var total: Duration?
    /// The minimum rate. The default is `nil`.
    public var lowSpeed: LowSpeed?

    /// A minimum rate.
    public struct LowSpeed: Sendable, Hashable {
        /// A lower rate, measured over `time`, is an error.
        public var bytesPerSecond: Int
        /// The time for which the rate may be lower.
        public var time: Duration

        /// Creates a minimum rate: fewer than `bytesPerSecond` over `time` are an error.
        public init(bytesPerSecond: Int, time: Duration) {
            self.bytesPerSecond = bytesPerSecond
            self.time = time
        }
    }

    /// Creates timeouts. Parameters that are left out have their defaults.
    public init(
        connect: Duration? = nil, idle: Duration? = .seconds(60), total: Duration? = nil, lowSpeed: LowSpeed? = nil
    ) {
        self.connect = connect
        self.idle = idle
        self.total = total
        self.lowSpeed = lowSpeed
    }

    /// No limits.
    public static var none: Timeouts { Timeouts(idle: nil) }

    var packed: TransferRequest.Timeouts {
        var packed = TransferRequest.Timeouts()
        packed.connect = milliseconds(connect)
        packed.idle = milliseconds(idle)
        packed.total = milliseconds(total)
        if let lowSpeed {
            packed.lowSpeedBytes = UInt32(clamping: max(lowSpeed.bytesPerSecond, 0))
            packed.lowSpeedTime = milliseconds(lowSpeed.time)
        }
        return packed
    }
}

extension Duration {
    /// In whole microseconds, clamped to the range of the type.
    package var microseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carry) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        return carry ? (seconds < 0 ? .min : .max) : sum
    }
}

/// Rounded up, and at least 1, because 0 means no limit to the core.
func milliseconds(_ duration: Duration?) -> UInt32 {
    guard let duration else { return 0 }
    let (seconds, attoseconds) = duration.components
    if seconds < 0 { return 1 }
    if seconds >= 4_294_967 { return .max }
    let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    return UInt32(clamping: max(milliseconds, 1))
}

/// The settings of a request that its run needs again after its first transfer. They are read with the content, in the
/// task that starts the run: a proxy that belongs to a tenant must be the same in every attempt.
///
/// It is on the heap, because most requests set none of these.
final class OwnSettings: Sendable {
    let deadline: Duration?
    let proxy: ProxyConfiguration?
    let redirectPolicy: RedirectPolicy?
    let retryPolicy: RetryPolicy?

    private init(
        _ deadline: Duration?, _ proxy: ProxyConfiguration?, _ redirectPolicy: RedirectPolicy?,
        _ retryPolicy: RetryPolicy?
    ) {
        (self.deadline, self.proxy) = (deadline, proxy)
        (self.redirectPolicy, self.retryPolicy) = (redirectPolicy, retryPolicy)
    }

    /// `nil` if the request leaves all of them to the configuration.
    static func of<R: Request>(
        _ request: R, deadline: Duration?, proxy: ProxyConfiguration?, redirectPolicy: RedirectPolicy?
    ) -> OwnSettings? {
        let retryPolicy = request.retryPolicy
        if deadline == nil && proxy == nil && redirectPolicy == nil && retryPolicy == nil { return nil }
        return OwnSettings(deadline, proxy, redirectPolicy, retryPolicy)
    }

    /// The same for a request that is not built.
    static func of<R: Request>(_ request: R) -> OwnSettings? {
        of(request, deadline: request.deadline, proxy: request.proxy, redirectPolicy: request.redirectPolicy)
    }
}

extension RequestBuilder {
    /// The redirect policy, with the header fields that the configuration declares sensitive.
    func redirectPolicy(_ own: OwnSettings?) -> RedirectPolicy {
        var policy = own?.redirectPolicy ?? redirectPolicy
        policy.sensitiveHeaders += sensitiveHeaders
        return policy
    }

    /// Whether redirects are followed.
    func mayRedirect(_ own: OwnSettings?) -> Bool { (own?.redirectPolicy ?? redirectPolicy).limit != nil }

    /// Whether a policy allows retries, without a look at the whole policy.
    func mayRetry(_ own: OwnSettings?) -> Bool { own?.retryPolicy.map { $0.maxAttempts > 1 } ?? retries }

    /// Names of the header fields that the configuration or the request's own policy declares sensitive.
    func sensitiveHeaders(with own: RedirectPolicy?) -> [String] {
        guard let own = own?.sensitiveHeaders, !own.isEmpty else { return sensitiveHeaders }
        return sensitiveHeaders + own
    }
}

/// Whether a run is more than one plain transfer, which its settings and its first response say.
extension Exchange {
    /// Whether code of the application or the HTTP cache takes part before anything is sent, or after it.
    static func isNeeded<R: Request>(for request: R, by core: AgentCore) -> Bool {
        core.alwaysNeedsExchange || (core.tokens != nil && request.usesAuthenticator)
            || (core.cache != nil && core.httpTerms(of: request) != nil)
    }

    /// Whether this result ends the run, as nearly every first response does.
    static func isSettled(_ answer: Answer, _ settings: @autoclosure () -> OwnSettings?, by core: AgentCore) -> Bool {
        switch answer {
        case .refused, .arrived: return true
        case .unsent: return false
        case .result(let result):
            if result.succeeded && result.status < 300 { return true }
            if result.succeeded && result.status < 400 { return !core.builder.mayRedirect(settings()) }
            // A proxy's challenge may be a failure; that of a tunnel always is.
            if core.asksBack && challenger(of: result) != nil { return false }
            return !core.builder.mayRetry(settings())
        }
    }
}

extension RequestBuilder {
    /// Refuses a request of the mode `cacheOnly` to a run that uses no cache, like a stream or a download.
    func checkMayUseNetwork<R: Request>(_ request: R, url: String) throws(RequestError) {
        if request.cacheMode.way == .cacheOnly { throw .notCached(.notConfigured, url: url) }
    }

    /// Builds a request of a run that uses no cache.
    @inline(__always)
    func networkRequest<R: Request>(
        _ request: R, _ snapshot: RequestSnapshot? = nil, at servers: Servers, opensBody: Bool,
        defersFiles: Bool = false
    ) throws(RequestError) -> BuiltRequest {
        if let snapshot { return try snapshot.open() }
        let built = try build(request, at: servers, opensBody: opensBody, defersFiles: defersFiles)
        try checkMayUseNetwork(request, url: built.transfer.url)
        return built
    }

    /// Reads the request. Its body is not opened.
    func snapshot<R: Request>(
        of request: R, at servers: Servers, after reading: RequestReading? = nil
    ) throws(RequestError) -> RequestSnapshot {
        RequestSnapshot(try build(request, at: servers, opensBody: false, after: reading))
    }
}
