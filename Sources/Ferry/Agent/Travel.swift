import FerryTransport

/// Goes the way of one journey: prepares, sends, looks at the answer, and sends again until there is one to deliver.
///
/// Redirects, retries, refreshed tokens and answered challenges all come down to that. What to do next is decided by
/// the machines in it; this drives them.
struct Travel {
    let core: AgentCore
    let itinerary: Itinerary
    let journey: Journey
    /// `nil` when the body is collected.
    let carrier: (any BodyCarrier)?
    private let start: ContinuousClock.Instant
    let deadline: ContinuousClock.Instant?
    var redirects: RedirectMachine
    var retries: RetryMachine
    /// What was sent last, or follows a redirect; `nil` when adapters have to be asked anew.
    var leg: OutgoingRequest?
    /// What challenges of the server and of the proxy are met with.
    var credential: Granted?
    var proxyCredential: Granted?
    /// Of the token that the leg carries; `nil` without one.
    var token: UInt64?
    /// What followed when its token was refused; `nil` when it was not, or was accepted since.
    var refusal: TokenRefusal?
    /// The fields that adapters and the authenticator have put on it, which are meant for the first server only.
    var added: [Headers.Field] = []
    /// Some of what was sent carried credentials that are not the request's own: a token, a provider's credential,
    /// a cookie, a secret field of an adapter, or whatever an adapter put elsewhere. It stays set until the end of the
    /// run: a redirect drops the credentials, but its target can still be the answer to the user who sent them.
    var hasUnknownCredentials = false
    /// They have set the body, which then is meant for the first server only, too.
    var hasAlteredBody = false
    var earlier = EarlierAttempts()
    /// Of the last of them.
    var left: RequestMetrics?
    /// It has paid for its retries, with the first that was sent.
    private var hasPaid: Bool
    /// Nothing more is wanted of the answer at hand.
    var hasLeft = false
    /// The answer at hand came from an interceptor.
    var isIntercepted = false
    var url: String

    enum Next {
        case deliver(Answer)
        /// Ask adapters and the authenticator anew.
        case again
        /// Send what `leg` holds.
        case goOn
    }

    init(
        _ core: AgentCore, _ itinerary: Itinerary, _ journey: Journey, _ carrier: (any BodyCarrier)?,
        after first: Answer
    ) {
        self.core = core
        self.itinerary = itinerary
        self.journey = journey
        self.carrier = carrier
        redirects = RedirectMachine(itinerary.redirectPolicy)
        retries = RetryMachine(itinerary.retryPolicy)
        url = itinerary.url
        credential = itinerary.digest.map { Granted(credential: $0, schemes: .digest) }
        let elapsed: Duration =
            if case .result(let result) = first { .microseconds(result.metrics.total) } else { .zero }
        if case .unsent = first { hasPaid = false } else { hasPaid = true }
        start = itinerary.start ?? .now - elapsed
        deadline = itinerary.end(from: start)
    }

    mutating func run(after first: Answer) async -> Answer {
        var answer = first
        while true {
            switch await next(after: answer) {
            case .deliver(.refused(let error)):
                let error = error.after(earlier, redirects.history)
                return .refused(error.measured(start.duration(to: .now), left, earlier))
            case .deliver(let answer): return answer
            // What follows a redirect is sent as it is: the adapters meant the first server.
            case .again: if redirects.history.isEmpty { leg = nil }
            case .goOn: break
            }
            isIntercepted = false
            do throws(RequestError) {
                answer = try await send()
            } catch {
                answer = .refused(error)
            }
        }
    }

    // MARK: There

    private mutating func send() async throws(RequestError) -> Answer {
        if leg == nil { leg = try await prepared() }
        guard let leg = leg.map(authorized) else { preconditionFailure("nothing was prepared") }
        // Without user and password: from here on it is shown, and is the response's.
        url = try core.builder.checked(leg.url)
        for interceptor in core.configuration.interceptors {
            let info = itinerary.info
            let answer = try await ask { try await interceptor.intercept(leg, of: info) }
            if let answer { return try intercepted(answer) }
        }
        var built = try itinerary.build(leg, by: core.builder)
        built.meter = itinerary.meter
        authorize(&built.transfer)
        // The jar can be filled by one response of this run, and emptied by the next.
        if core.hasCookies { hasUnknownCredentials = true }
        itinerary.watch?.sends(built)
        if let remaining {
            // Whatever held it up until now: too late it is not sent at all.
            if remaining <= .zero { throw .deadlinePassed(url: url) }
            built.transfer.timeouts.deadline = milliseconds(remaining)
        }
        if !hasPaid && !retries.isOff { core.payForRetries(url) }
        hasPaid = true
        if let carrier { return await journey.carry(built, streamedBy: carrier, by: core) }
        return await journey.carry(built, by: core)
    }

    func ask<Value: Sendable>(
        _ question: @escaping @Sendable () async throws -> Value
    ) async throws(RequestError) -> Value {
        try await journey.ask(url, until: deadline, question)
    }

    /// The request as the adapters leave it.
    private mutating func prepared() async throws(RequestError) -> OutgoingRequest {
        let bare = try itinerary.outgoing()
        var outgoing = bare
        let info = itinerary.info
        for adapter in core.configuration.adapters {
            outgoing = try await ask { [outgoing] in
                var adapted = outgoing
                try await adapter.adapt(&adapted, of: info)
                return adapted
            }
        }
        // By where it goes now: an adapter may have sent it to another server.
        if itinerary.usesAuthenticator, itinerary.takesToken(to: try core.builder.checked(outgoing.url)) {
            outgoing = try await withToken(outgoing)
        }
        added = outgoing.headers.filter { !bare.headers.contains($0) }
        hasAlteredBody = outgoing.changes != bare.changes
        if outgoing.url != bare.url || outgoing.method != bare.method || hasAlteredBody || hasSecrets(added) {
            hasUnknownCredentials = true
        }
        return outgoing
    }

    /// With the token of the moment, if the agent has an authenticator.
    mutating func withToken(_ outgoing: OutgoingRequest) async throws(RequestError) -> OutgoingRequest {
        guard let session = core.tokens, !journey.isRefresh else { return outgoing }
        let prepared = try await session.prepared(outgoing, for: journey, until: deadline)
        token = prepared.generation
        hasUnknownCredentials = true
        return prepared.request
    }

    private mutating func intercepted(_ answer: InterceptedResponse) throws(RequestError) -> Answer {
        isIntercepted = true
        do throws(TransferFailure) {
            let result = try TransferResult(id: 1, head: answer.head(), body: Array(answer.body))
            return .arrived(result, trail(isFromCache: answer.isFromCache))
        } catch {
            throw RequestError(error, url: url).ofApplication
        }
    }

    /// Until the deadline; `nil` when there is none.
    var remaining: Duration? { deadline.map { ContinuousClock.now.duration(to: $0) } }

    func trail(isFromCache: Bool = false) -> Trail {
        Trail(
            url: url, redirects: redirects.history, earlier: earlier, isIntercepted: isIntercepted,
            isFromCache: isFromCache, hasUnknownCredentials: hasUnknownCredentials, added: added.map(\.name),
            start: start)
    }

    private func hasSecrets(_ fields: [Headers.Field]) -> Bool {
        // With those of the configuration.
        let declared = itinerary.redirectPolicy.sensitiveHeaders
        return fields.contains { SecretHeaders.contains($0.name, declared: declared) }
    }
}
