import FerryTransport

/// The record of a request under way, with the type of the request taken off: what the stages of the pipeline need.
///
/// A run makes it once. A run that a task awaits and that its first transfer settles needs none.
struct Call: Sendable {
    let request: any Request
    let info: RunInfo
    /// The request as it was read when the run began, or why it cannot be sent. `nil` until a run that looks into the
    /// cache first goes on to the network.
    var snapshot: Result<RequestSnapshot, RequestError>?
    let servers: Servers
    /// `nil` when nobody observes it.
    var watch: RunWatch?
    let url: String
    var tag: String?
    /// Over everything, retries and pauses included.
    var deadline: Duration?
    /// When the run began, where that was noted; otherwise it is computed from its first response.
    var start: ContinuousClock.Instant?
    /// The deadline of the groups it is in, or of the run it is a part of.
    var groupDeadline: ContinuousClock.Instant?
    let redirectPolicy: RedirectPolicy
    let retryPolicy: RetryPolicy
    let proxy: ProxyConfiguration
    let usesAuthenticator: Bool
    /// Where a token may go. Empty when it may go anywhere.
    let tokenOrigins: [HostKey]
    let isIdempotent: Bool
    /// Counts what is sent of its body, where somebody may ask.
    var meter: UploadMeter?
    /// How it uses the cache by RFC 9111; `nil` when it does not.
    var http: HTTPCachePlan?
    /// Whether its control is to know when a transfer has left the queue.
    var reportsStart = false

    init<R: Request>(
        _ request: R, _ snapshot: Result<RequestSnapshot, RequestError>?, at servers: Servers, url: String,
        watch: RunWatch?, number: UInt64? = nil, meter: UploadMeter? = nil, in group: GroupRun? = nil,
        since start: ContinuousClock.Instant? = nil, by core: AgentCore
    ) {
        let (builder, configuration) = (core.builder, core.configuration)
        self.request = request
        info = watch?.info ?? RunInfo(request, url: url, number: number ?? core.nextNumber, in: group)
        self.snapshot = snapshot
        self.servers = servers
        self.watch = watch
        self.url = url
        tag = request.tag
        deadline = request.deadline ?? configuration.deadline
        self.start = start
        groupDeadline = group?.deadline
        redirectPolicy = builder.redirectPolicy(of: request)
        retryPolicy = request.retryPolicy ?? builder.retryPolicy
        proxy = request.proxy ?? configuration.proxy
        usesAuthenticator = core.tokens != nil && request.usesAuthenticator
        tokenOrigins = usesAuthenticator ? servers.ownOrigins(of: request) : []
        isIdempotent = request.isIdempotent
        self.meter = meter
        if core.invalidates(request), let terms = core.cachePolicy(of: request).http {
            http = HTTPCachePlan(terms, request.cacheMode, HTTPCacheTarget(url: url))
        }
    }

    /// The record of a run that is more than one transfer from its start: reads the request in the caller's thread, and
    /// tells the observers of the start. `change` adds what Ferry says of its own.
    init<R: Request>(
        beginning request: R, carrying body: WriterBody? = nil,
        onInformational: RunWatch.InformationalHandler? = nil, by core: AgentCore,
        changing change: (inout TransferRequest) -> Void = { _ in }
    ) {
        let servers = core.builder.servers
        let snapshot = Result { () throws(RequestError) in
            var built = try core.builder.build(request, at: servers, opensBody: false)
            if let body { try built.carry(body) }
            change(&built.transfer)
            return RequestSnapshot(built)
        }
        let url =
            switch snapshot {
            case .success(let snapshot): snapshot.transfer.url
            case .failure(let error): error.url
            }
        let watch = RunWatch.begin(request, url: url, onInformational: onInformational, by: core)
        self.init(request, snapshot, at: servers, url: url, watch: watch, by: core)
    }

    /// What answers the server's Digest challenge.
    var digest: Credential? {
        guard let credentials = try? snapshot?.get().transfer.credentials else { return nil }
        return Credential(user: credentials.user, password: credentials.password)
    }

    /// Why it cannot be sent.
    var refusal: RequestError? { if case .failure(let error) = snapshot { error } else { nil } }

    func read() throws(RequestError) -> RequestSnapshot {
        guard let snapshot else { preconditionFailure("a request is to be sent that was not read") }
        return try snapshot.get()
    }

    /// What is to be sent, in the form the transport takes.
    func build(_ outgoing: OutgoingRequest, by builder: RequestBuilder) throws(RequestError) -> BuiltRequest {
        var built = try builder.build(outgoing, of: try read(), by: proxy)
        // What is left of the deadline is set right before it is sent. A shared transfer has none: it does not end at
        // that of the run that began it.
        if deadline == nil && groupDeadline == nil { built.transfer.timeouts.deadline = 0 }
        built.transfer.reportsStart = reportsStart
        return built
    }

    /// When the run has to be over, by its own deadline and by those it is a part of. Where its begin was not noted, it
    /// begins now.
    var end: ContinuousClock.Instant? { end(from: start ?? .now) }

    func end(from start: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        Self.end(from: start, deadline: deadline, group: groupDeadline)
    }

    /// The same of a request that has no record yet.
    static func end<R: Request>(
        of request: R, from start: ContinuousClock.Instant, in group: GroupRun?, by core: AgentCore
    ) -> ContinuousClock.Instant? {
        end(from: start, deadline: request.deadline ?? core.configuration.deadline, group: group?.deadline)
    }

    private static func end(
        from start: ContinuousClock.Instant, deadline: Duration?, group: ContinuousClock.Instant?
    ) -> ContinuousClock.Instant? {
        guard let deadline else { return group }
        let own = start.advanced(byAtMost: deadline)
        return group.map { min($0, own) } ?? own
    }

    /// Whether the agent's token is meant for this URL, which is the request's own, or an adapter's.
    func takesToken(to url: String) -> Bool {
        guard usesAuthenticator else { return false }
        return tokenOrigins.isEmpty || HostKey(url: url).map(tokenOrigins.contains) ?? false
    }

    /// The same for a transfer that does a part of the run's work: nobody is told of it.
    var ofPart: Call {
        var part = self
        (part.watch, part.meter) = (nil, nil)
        return part
    }
}

extension ContinuousClock.Instant {
    /// That much later, but not later than the clock can wait for: it traps when it cannot express the time.
    func advanced(byAtMost duration: Duration) -> Self { self + min(duration, .seconds(1_000_000_000)) }
}

extension RequestBuilder {
    /// Whether there is a policy that retries; without looking at all of it.
    func mayRetry<R: Request>(_ request: R) -> Bool { request.retryPolicy.map { $0.maxAttempts > 1 } ?? retries }

    /// The request as it is now. Its body is not opened.
    func snapshot<R: Request>(of request: R, at servers: Servers) throws(RequestError) -> RequestSnapshot {
        RequestSnapshot(try build(request, at: servers, opensBody: false))
    }
}

extension RunInfo {
    init<R: Request>(_ request: R, url: String, number: UInt64, in group: GroupRun?) {
        self.init(
            id: number, method: request.prebuiltRequest?.method ?? request.method, url: url, tag: request.tag,
            userInfo: request.userInfo, group: group?.number)
    }
}
