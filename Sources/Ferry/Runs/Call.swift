import FerryTransport

/// The type-erased record of an active request: what the stages of the pipeline need.
///
/// A run creates it once. An awaited run that its first transfer settles needs none.
struct Call: Sendable {
    let request: any Request
    let info: RunInfo
    /// The request as it was read at the start of the run, or why it cannot be sent. `nil` for a run that is not
    /// sent.
    let snapshot: Result<RequestSnapshot, RequestError>?
    let servers: Servers
    /// `nil` if there are no observers.
    var watch: RunWatch?
    let url: String
    var tag: String?
    /// What the request itself says about its run; `nil` if it says nothing.
    let settings: OwnSettings?
    /// Whether it may share its transfer.
    let coalesces: Bool
    /// The deadline of the whole run, including retries and pauses.
    var deadline: Duration?
    /// The start of the run, if it was noted; otherwise it is computed from its first response.
    var start: ContinuousClock.Instant?
    /// The deadline of its groups, or of the run that it is a part of.
    var groupDeadline: ContinuousClock.Instant?
    let redirectPolicy: RedirectPolicy
    let retryPolicy: RetryPolicy
    let proxy: ProxyConfiguration
    let usesAuthenticator: Bool
    /// The servers that the request names, if adapters or the authenticator take part.
    let named: Servers.Named
    /// The origins that may receive a token. Empty if any may.
    let tokenOrigins: [HostKey]
    let isIdempotent: Bool
    /// Counts the sent bytes of the body, if upload progress may be requested.
    var meter: UploadMeter?
    /// How the run uses the HTTP cache (RFC 9111); `nil` if it does not.
    var http: HTTPCachePlan?
    /// Whether its control must know when a transfer has left the queue.
    var reportsStart = false
    /// The span that a part of a run belongs to.
    private(set) var parent: TraceContext?

    /// A run that has begun with a plain transfer (`isPlain`) uses neither the authenticator nor the cache. `run` has
    /// read the tag.
    init<R: Request>(
        _ request: R, _ snapshot: Result<RequestSnapshot, RequestError>?, at servers: Servers, url: String,
        watch: RunWatch?, of run: Run? = nil, isPlain: Bool = false, number: UInt64? = nil,
        meter: UploadMeter? = nil, in group: GroupRun? = nil,
        since start: ContinuousClock.Instant? = nil, by core: AgentCore
    ) {
        let (builder, configuration) = (core.builder, core.configuration)
        let read = try? snapshot?.get()
        self.request = request
        tag = if let run { run.tag } else { request.tag }
        let (tag, method) = (tag, read?.transfer.method)
        info =
            watch?.info
            ?? RunInfo(request, tag: tag, method: method, url: url, number: number ?? core.nextNumber, in: group)
        self.snapshot = snapshot
        self.servers = servers
        self.watch = watch
        self.url = url
        settings = if let read { read.settings } else { OwnSettings.of(request) }
        coalesces = isPlain ? false : request.coalesces
        deadline = settings?.deadline ?? configuration.deadline
        self.start = start
        groupDeadline = group?.deadline
        redirectPolicy = builder.redirectPolicy(settings)
        retryPolicy = settings?.retryPolicy ?? builder.retryPolicy
        proxy = settings?.proxy ?? configuration.proxy
        usesAuthenticator = !isPlain && core.tokens != nil && request.usesAuthenticator
        named =
            usesAuthenticator || !configuration.adapters.isEmpty
            ? Servers.Named(base: request.baseURL, cdn: request.cdnURL) : Servers.Named()
        tokenOrigins = usesAuthenticator ? servers.ownOrigins(named, usesCDN: request.usesCDN) : []
        // Nothing is sent of a request that was not read.
        isIdempotent = read?.isIdempotent ?? false
        self.meter = meter
        if !isPlain, let read, InvalidationRules.isUnsafe(read.transfer.method),
            let terms = core.httpTerms(of: request)
        {
            http = HTTPCachePlan(terms, request.cacheMode, HTTPCacheTarget(url: url))
        }
    }

    /// Creates the record of a run that takes more than one transfer from its start: reads the request in the caller's
    /// thread, and notifies the observers. `change` adds Ferry's own changes.
    init<R: Request>(
        beginning request: R, carrying body: WriterBody? = nil,
        onInformational: RunWatch.InformationalHandler? = nil, by core: AgentCore,
        changing change: (inout BuiltRequest) -> Void = { _ in }
    ) {
        let builder = core.builder
        let servers = builder.servers
        let snapshot = Result { () throws(RequestError) in
            var built = try builder.build(request, at: servers, opensBody: false)
            try builder.checkMayUseNetwork(request, url: built.transfer.url)
            if let body { try built.carry(body) }
            change(&built)
            return RequestSnapshot(built)
        }
        let (url, method): (String, String?) =
            switch snapshot {
            case .success(let snapshot): (snapshot.transfer.url, snapshot.transfer.method)
            case .failure(let error): (error.url, nil)
            }
        let watch = RunWatch.begin(request, method: method, url: url, onInformational: onInformational, by: core)
        self.init(request, snapshot, at: servers, url: url, watch: watch, by: core)
    }

    /// The credentials for a Digest challenge of the server.
    var digest: Credential? {
        guard let credentials = try? snapshot?.get().transfer.credentials else { return nil }
        return Credential(user: credentials.user, password: credentials.password)
    }

    /// Why the request cannot be sent.
    var refusal: RequestError? { if case .failure(let error) = snapshot { error } else { nil } }

    func read() throws(RequestError) -> RequestSnapshot {
        guard let snapshot else { preconditionFailure("a request was not read before sending") }
        return try snapshot.get()
    }

    /// Builds the request in the form that the transport needs. Its body may be read from files that are open already.
    func build(
        _ outgoing: OutgoingRequest, hasOwnBody: Bool, reading files: BodyFiles?, by builder: RequestBuilder
    ) throws(RequestError) -> BuiltRequest {
        let snapshot = try read()
        var built = try builder.build(outgoing, of: snapshot, by: proxy, reading: files)
        // Adapters may set another body, of another length.
        if hasOwnBody { try built.checkLength(announcedBy: snapshot) }
        // The remaining time until the deadline is set right before sending. A shared transfer has no deadline, because
        // it must not end at that of the run that started it.
        if deadline == nil && groupDeadline == nil { built.transfer.timeouts.deadline = 0 }
        built.transfer.reportsStart = reportsStart
        return built
    }

    /// When the run must be over, by its own deadline and those of its groups. If its start was not noted, it starts
    /// now.
    var end: ContinuousClock.Instant? { end(from: start ?? .now) }

    func end(from start: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        Self.end(from: start, deadline: deadline, group: groupDeadline)
    }

    /// The same for a request without a record.
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

    /// Whether the agent's token may be sent to this URL, which is that of the request or of an adapter.
    func takesToken(to url: String) -> Bool {
        guard usesAuthenticator else { return false }
        return tokenOrigins.isEmpty || HostKey(url: url).map(tokenOrigins.contains) ?? false
    }

    /// The record of a transfer that does a part of the run's work: observers do not see it.
    var ofPart: Call {
        var part = self
        if let watch, let span = watch.span, watch.sendsTrace, span.isPropagated, span.numbering == nil {
            part.parent = span.context
        }
        (part.watch, part.meter) = (nil, nil)
        return part
    }

    /// Starts a span for the next transfer. A part of a run has no spans of its own that anybody would know.
    func beginSpan(of built: inout BuiltRequest, isSent: Bool = true) {
        if let parent { return isSent ? built.append(parent, span: parent.spanID) : () }
        built.beginSpan(of: watch, isSent: isSent)
    }
}

extension ContinuousClock.Instant {
    /// Adds a duration, but no more than the clock can wait for: it traps if it cannot represent the time.
    func advanced(byAtMost duration: Duration) -> Self { self + min(duration, .seconds(1_000_000_000)) }
}

extension RunInfo {
    init<R: Request>(
        _ request: R, tag: String?, method: String?, url: String, number: UInt64, in group: GroupRun?
    ) {
        self.init(
            id: number, method: Self.method(of: request, method), url: url, tag: tag, userInfo: request.userInfo,
            group: group?.number)
    }

    /// A method that is known is not read again.
    static func method<R: Request>(of request: R, _ known: String?) -> HTTPMethod {
        known.map { HTTPMethod($0) } ?? request.prebuiltRequest?.method ?? request.method
    }
}
