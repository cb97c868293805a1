import FerryTransport

/// What a journey needs to know of its request, whatever the request's type.
struct Itinerary: Sendable {
    let info: RunInfo
    /// `nil` when nobody observes it.
    var watch: RunWatch?
    let url: String
    let tag: String?
    /// Over everything, retries and pauses included.
    let deadline: Duration?
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
    /// Answers a challenge of the server's.
    let digest: Credential?
    /// Counts what leaves of its body, where somebody may ask.
    var meter: UploadMeter?
    /// The request as it would leave without adapters. Asked anew for every attempt: a body can be a new one.
    let outgoing: @Sendable () throws(RequestError) -> OutgoingRequest
    /// What is to leave, in the form the transport takes.
    let build: @Sendable (OutgoingRequest) throws(RequestError) -> BuiltRequest
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
        of request: R, at servers: Servers, url: String, watch: RunWatch?, number: UInt64? = nil,
        meter: UploadMeter? = nil, in group: GroupRun? = nil, since start: ContinuousClock.Instant? = nil
    ) -> Itinerary {
        let builder = builder
        let takesToken = tokens != nil && request.usesAuthenticator
        return Itinerary(
            info: watch?.info ?? info(of: request, url: url, number: number, in: group), watch: watch, url: url,
            tag: request.tag,
            deadline: request.deadline ?? configuration.deadline, start: start, groupDeadline: group?.deadline,
            redirectPolicy: builder.redirectPolicy(of: request),
            retryPolicy: builder.retryPolicy(of: request), proxy: request.proxy ?? configuration.proxy,
            usesAuthenticator: takesToken, tokenOrigins: takesToken ? servers.ownOrigins(of: request) : [],
            isIdempotent: request.isIdempotent, digest: builder.digest(of: request),
            meter: meter,
            outgoing: { () throws(RequestError) in try builder.outgoing(request, at: servers) },
            build: { outgoing throws(RequestError) in try builder.build(outgoing, as: request) })
    }
}

extension RequestBuilder {
    func retryPolicy<R: Request>(of request: R) -> RetryPolicy { request.retryPolicy ?? retryPolicy }

    /// What challenges of the server are answered with, if the request says so and no header of its own does more.
    func digest<R: Request>(of request: R) -> Credential? {
        guard let digest = request.authorization?.digest, request.custom == nil,
            !request.headers.contains("Authorization")
        else { return nil }
        return digest
    }

    /// Whether there is a policy that retries; without looking at all of it.
    func mayRetry<R: Request>(_ request: R) -> Bool { request.retryPolicy.map { $0.attempts > 1 } ?? retries }

    /// The request in the form that adapters change: as it is sent when they leave it alone.
    func outgoing<R: Request>(_ request: R, at servers: Servers) throws(RequestError) -> OutgoingRequest {
        let built = try build(request, at: servers, opensBody: false)
        let transfer = built.transfer
        let body: RequestBody? =
            switch transfer.body {
            case .none: nil
            case .bytes(let bytes): .bytes(bytes)
            case .data(let data): .data(data)
            case .pull: built.pulled
            }
        var outgoing = OutgoingRequest(
            method: HTTPMethod(transfer.method), url: transfer.url, headers: Headers(transfer.headers), body: body)
        // A type among the headers of its own was meant for whatever body it has.
        if body != nil, !(request.custom?.headers ?? request.headers).contains("Content-Type") {
            outgoing.noteBodyType()
        }
        return outgoing
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
