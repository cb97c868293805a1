import FerryTransport

/// What a journey needs to know of its request, whatever the request's type.
struct Itinerary: Sendable {
    let info: RunInfo
    /// The request as it was read when the run began, or why it cannot be sent. `nil` until it is asked for by a run
    /// that looks into the cache first.
    var snapshot: Result<RequestSnapshot, RequestError>?
    /// `nil` when nobody observes it.
    var watch: RunWatch?
    let url: String
    var tag: String?
    /// Over everything, retries and pauses included.
    var deadline: Duration?
    /// When the run began, where that was noted; else it is reckoned from its first answer.
    var start: ContinuousClock.Instant?
    /// That of the groups it is in, or of the run it is a part of.
    var groupDeadline: ContinuousClock.Instant?
    let redirectPolicy: RedirectPolicy
    let retryPolicy: RetryPolicy
    let proxy: ProxyConfiguration
    let usesAuthenticator: Bool
    /// Where a token may go; none where it may go anywhere.
    let tokenOrigins: [HostKey]
    let isIdempotent: Bool
    /// Counts what leaves of its body, where somebody may ask.
    var meter: UploadMeter?

    /// Answers a challenge of the server's.
    var digest: Credential? {
        guard let credentials = try? snapshot?.get().transfer.credentials else { return nil }
        return Credential(user: credentials.user, password: credentials.password)
    }

    /// The request as it would leave without adapters.
    func outgoing() throws(RequestError) -> OutgoingRequest { try read().outgoing }

    /// What is to leave, in the form the transport takes.
    func build(_ outgoing: OutgoingRequest, by builder: RequestBuilder) throws(RequestError) -> BuiltRequest {
        var built = try builder.build(outgoing, of: try read(), by: proxy)
        // What is left of the deadline is set right before it is sent. A shared transfer has none: it does not end at
        // that of the run that began it.
        if deadline == nil && groupDeadline == nil { built.transfer.timeouts.deadline = 0 }
        return built
    }

    func read() throws(RequestError) -> RequestSnapshot {
        guard let snapshot else { preconditionFailure("a request is to be sent that was not read") }
        return try snapshot.get()
    }
}

extension AgentCore {
    private var asksBack: Bool { configuration.authenticator != nil || configuration.credentialProvider != nil }

    /// Whether this is the end of a run, as nearly every first answer is.
    func isSettled<R: Request>(_ answer: Answer, of request: R) -> Bool {
        switch answer {
        case .refused, .arrived: return true
        case .unsent: return false
        case .result(let result):
            if result.succeeded && result.status < 300 { return true }
            if result.succeeded && result.status < 400 { return builder.redirectPolicy(of: request).limit == nil }
            // A proxy's challenge may be a failure: that of a tunnel always is.
            if asksBack && Travel.asker(of: result) != nil { return false }
            return !builder.mayRetry(request)
        }
    }

    /// Whether code of the application's has a say before anything is sent.
    func travelsFirst<R: Request>(_ request: R) -> Bool {
        alwaysTravels || (tokens != nil && request.usesAuthenticator)
    }

    /// When a run that began at `start` has to be over, by its own deadline and by those of the groups it is in.
    func end<R: Request>(
        of request: R, since start: ContinuousClock.Instant, in group: GroupRun?
    ) -> ContinuousClock.Instant? {
        let own = (request.deadline ?? configuration.deadline).map { start + $0 }
        return [own, group?.deadline].compactMap { $0 }.min()
    }

    func itinerary<R: Request>(
        of request: R, _ snapshot: Result<RequestSnapshot, RequestError>?, at servers: Servers, url: String,
        watch: RunWatch?, number: UInt64? = nil, meter: UploadMeter? = nil, in group: GroupRun? = nil,
        since start: ContinuousClock.Instant? = nil
    ) -> Itinerary {
        let takesToken = tokens != nil && request.usesAuthenticator
        return Itinerary(
            info: watch?.info ?? info(of: request, url: url, number: number, in: group), snapshot: snapshot,
            watch: watch, url: url, tag: request.tag,
            deadline: request.deadline ?? configuration.deadline, start: start, groupDeadline: group?.deadline,
            redirectPolicy: builder.redirectPolicy(of: request),
            retryPolicy: builder.retryPolicy(of: request), proxy: request.proxy ?? configuration.proxy,
            usesAuthenticator: takesToken, tokenOrigins: takesToken ? servers.ownOrigins(of: request) : [],
            isIdempotent: request.isIdempotent, meter: meter)
    }
}

extension RequestBuilder {
    func retryPolicy<R: Request>(of request: R) -> RetryPolicy { request.retryPolicy ?? retryPolicy }

    /// Whether there is a policy that retries; without looking at all of it.
    func mayRetry<R: Request>(_ request: R) -> Bool { request.retryPolicy.map { $0.attempts > 1 } ?? retries }

    /// The request as it is now. Its body is not opened.
    func snapshot<R: Request>(of request: R, at servers: Servers) throws(RequestError) -> RequestSnapshot {
        RequestSnapshot(try build(request, at: servers, opensBody: false))
    }
}

extension Itinerary {
    /// When the run has to be over, by its own deadline and by those it is a part of. Where its begin was not noted, it
    /// begins now.
    var end: ContinuousClock.Instant? { end(from: start ?? .now) }

    func end(from start: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        [deadline.map { start + $0 }, groupDeadline].compactMap { $0 }.min()
    }

    /// Whether the agent's token is meant for this URL, which is the request's own, or an adapter's.
    func takesToken(to url: String) -> Bool {
        guard usesAuthenticator else { return false }
        return tokenOrigins.isEmpty || HostKey(url: url).map(tokenOrigins.contains) ?? false
    }
}
