import FerryCache
import FerryTransport

/// The last stage of the pipeline before the transport: prepares a request with adapters and the authenticator, sends
/// it, looks at the response, and sends again until there is a response to deliver.
///
/// This covers redirects, retries, token refreshes and challenges. State machines decide what to do next, and the
/// exchange performs it. A run that its first plain transfer settles never gets here.
struct Exchange {
    let core: AgentCore
    let call: Call
    let control: RunControl
    /// `nil` if the body is collected.
    let carrier: (any BodyCarrier)?
    let start: ContinuousClock.Instant
    let deadline: ContinuousClock.Instant?
    var redirects: RedirectMachine
    var retries: RetryMachine
    /// The request that was sent last, or that follows a redirect; `nil` if adapters have to run again.
    var leg: OutgoingRequest?
    /// The credentials for challenges of servers, each for one origin: adapters may choose another for each attempt.
    var credentials: [Granted] = []
    var proxyCredential: Granted?
    /// Those of the servers before the first redirect, and the way since.
    var (firstCredentials, way) = ([Granted](), Way())
    /// What targets were granted before the run began again, and what other workers of the same download were granted.
    var granted: [Granted] = []
    /// The number of the latest answer in the carrier's `grants` that this exchange knows.
    var seenGrants: [SharedGrants.Target: UInt64] = [:]
    /// The generation of the token in the request, `nil` without one, and whether `Authorization` carries it.
    var (token, isTokenInField) = (UInt64?.none, false)
    /// Whether a missing or expired token is replaced before the request is sent. It is not if only the cache is asked.
    var refreshesToken: Bool
    /// What followed when the token was refused; `nil` if it was not, or was accepted since.
    var refusal: TokenRefusal?
    /// The fields that adapters and the authenticator have added. They are meant for the first server only.
    var added: [Headers.Field] = []
    /// Something that was sent carried credentials that are not part of the request: a token, a provider's credential,
    /// a cookie, a secret field of an adapter, or another change by an adapter. It stays set until the end of the run:
    /// a redirect drops the credentials, but its target may still respond to the user who sent them.
    var hasUnknownCredentials = false
    /// The files that the current body is read from.
    var files: BodyFiles?
    /// The files of the request's own body, open for all attempts.
    let ownFiles: BodyFiles?
    /// The files of the body that adapters have set, open until they run again.
    var adaptedFiles: BodyFiles?
    /// Adapters have set the body, which is then also meant for the first server only.
    var hasAlteredBody = false
    var earlier = EarlierAttempts()
    /// The metrics of the last attempt.
    var left: RequestMetrics?
    /// The run has added to the retry budget, with its first transfer.
    private var hasPaid: Bool
    /// Nothing further is needed from the current response.
    var hasLeft = false
    /// The current response came from an interceptor, or from the HTTP cache.
    var isIntercepted = false
    /// What the HTTP cache did for the current response.
    private(set) var trace: CacheTrace?
    /// The transfer that validated the stored response.
    private(set) var validation: TransferResult?
    /// The stored response to use if the server fails.
    private var standIn: (result: TransferResult, trace: CacheTrace)?
    /// A validation referred to a response that is not stored: the next transfer is unconditional.
    private var asksNoValidation = false
    /// What has identified the user, after how many redirects: a target responds to the user who was sent there.
    private var secrets: [(hop: Int, secret: HTTPCacheKey.Secret)] = []
    /// The names of other fields than `Authorization` that the authenticator has set, for the HTTP cache. They identify
    /// the user whatever they are called.
    var tokenFields: [String] = []
    /// The jar had cookies when a transfer of this run was sent. The target of a redirect may be meant for their owner,
    /// even if the jar was emptied in the meantime.
    var hadCookies = false
    /// An unsafe request was sent: it cannot be repeated to fetch the target of its redirect again.
    private(set) var hasSentUnsafe = false
    /// The target of the redirect has sent a part of the body, and is asked for the next one, too: another target may
    /// have another version, and the URL of the request may be valid once only.
    var isTargetServing = false
    /// The server's response to the last transfer was not good enough, so the same stored response is not either.
    var isRetry = false
    var url: String

    enum Next {
        case deliver(Answer)
        /// Run adapters and the authenticator again.
        case again
        /// Send the request in `leg`.
        case goOn
    }

    init(
        _ core: AgentCore, _ call: Call, _ control: RunControl, _ carrier: (any BodyCarrier)?,
        after first: Answer
    ) {
        (self.core, self.call, self.control, self.carrier) = (core, call, control, carrier)
        redirects = RedirectMachine(call.redirectPolicy)
        retries = RetryMachine(call.retryPolicy)
        url = call.url
        refreshesToken = call.http?.mode.asksNetwork ?? true
        ownFiles = (try? call.snapshot?.get())?.files
        files = ownFiles
        credentials = call.digest.map { [Granted(credential: $0, schemes: .digest)] } ?? []
        let elapsed: Duration =
            if case .result(let result) = first { .microseconds(result.metrics.total) } else { .zero }
        if case .unsent = first { hasPaid = false } else { hasPaid = true }
        start = call.start ?? .now - elapsed
        deadline = call.end(from: start)
        takeGrants()
    }

    mutating func run(after first: Answer) async -> Answer {
        var answer = first
        while true {
            switch await next(after: answer) {
            case .deliver(.refused(let error)):
                let error = error.after(earlier, redirects.history)
                return .refused(error.measured(start.duration(to: .now), left, earlier))
            case .deliver(let last):
                guard let standIn, last.isServersFault else { return last }
                if let failed = last.transferred { leave(failed) }
                core.cache?.counters.hit(fromMemory: true, isStale: true)
                (isIntercepted, trace, validation, self.standIn) = (true, standIn.trace, nil, nil)
                answer = .arrived(standIn.result, origin(isFromCache: true))
                // A redirect is followed, like that of any stored response.
                if (300..<400).contains(standIn.result.status) { continue }
                return answer
            case .again: prepareAgain()
            case .goOn: break
            }
            (isIntercepted, trace, validation, standIn) = (false, nil, nil, nil)
            do throws(RequestError) {
                answer = try await send()
            } catch {
                answer = .refused(error)
            }
        }
    }

    // MARK: Entry

    /// Continues after a plain transfer that has requested a validation. The caller unregisters the run.
    static func answer(
        _ call: Call, _ control: RunControl, after first: Answer, of validation: PlainValidation, by core: AgentCore
    ) async -> Answer {
        var exchange = Exchange(core, call, control, nil, after: first)
        let answer = await exchange.taken(first, of: validation)
        return await exchange.run(after: answer)
    }

    /// Performs one plain transfer, and more only if necessary. The caller unregisters the run.
    static func answer(_ call: Call, _ control: RunControl, by core: AgentCore) async -> Answer {
        if core.alwaysNeedsExchange || call.usesAuthenticator || control.group != nil || call.http != nil {
            return await carry(call, control, after: .unsent, nil, by: core)
        }
        var built: BuiltRequest
        let end = call.end
        do throws(RequestError) {
            let snapshot = try call.read()
            try await snapshot.files?.open(snapshot.bodyFiles, for: control, url: call.url, until: end)
            built = try snapshot.open()
        } catch {
            return .refused(error)
        }
        (built.meter, built.transfer.passesLimits) = (call.meter, control.isRefresh)
        call.beginSpan(of: &built)
        built.inform(call.watch)
        built.transfer.reportsStart = call.reportsStart
        // A shared transfer has no deadline. For any other, the time before the transfer counts.
        built.transfer.timeouts.deadline = 0
        if let end {
            let remaining = ContinuousClock.now.duration(to: end)
            if remaining <= .zero { return .refused(.deadlinePassed(url: call.url)) }
            built.transfer.timeouts.deadline = milliseconds(remaining)
        }
        call.watch?.sends(built)
        if core.builder.mayRetry(call.settings) { core.payForRetries(call.url) }
        let answer = await control.carry(built, by: core)
        if isSettled(answer, call.settings, by: core) { return answer }
        return await carry(call, control, after: answer, nil, by: core)
    }

    /// Continues a run that takes more than one plain transfer, until it has its response.
    static func run(
        _ call: Call, _ control: RunControl, after first: Answer, _ carrier: (any BodyCarrier)? = nil,
        by core: AgentCore
    ) async -> Answer {
        defer { core.leave(control) }
        return await carry(call, control, after: first, carrier, by: core)
    }

    /// The same, for a caller that unregisters the run itself.
    private static func carry(
        _ call: Call, _ control: RunControl, after first: Answer, _ carrier: (any BodyCarrier)?, by core: AgentCore
    ) async -> Answer {
        core.enter(control)
        var exchange = Exchange(core, call, control, carrier, after: first)
        return await exchange.run(after: first)
    }

    // MARK: Sending

    /// Adapters and the authenticator run again for the next request. That of a redirect is sent as it is, because they
    /// changed it for the first server; unless the carrier begins there, and the target no longer serves it.
    private mutating func prepareAgain() {
        if !redirects.isAtStart {
            guard carrier?.beginsAtOrigin ?? false, !hasSentUnsafe, !isTargetServing else { return }
            redirects.beginAgain()
            keepGranted()
            (url, credentials, token) = (call.url, firstCredentials, nil)
        }
        leg = nil
    }

    private mutating func send() async throws(RequestError) -> Answer {
        // What was prepared before a pause may be out of date after it.
        while try await carrier?.awaitTurn(control, until: deadline, url) ?? false || leg == nil {
            prepareAgain()
            if leg == nil { leg = try await prepared() }
        }
        guard let leg = leg.map(authorized) else { preconditionFailure("nothing was prepared") }
        // Without user and password, because it is shown from here on and becomes the response's URL.
        url = try core.builder.checked(leg.url)
        if InvalidationRules.isUnsafe(leg.method.rawValue) { hasSentUnsafe = true }
        for interceptor in core.configuration.interceptors {
            let info = call.info
            let answer = try await ask { try await interceptor.intercept(leg, of: info) }
            if let answer { return try intercepted(answer) }
        }
        try await openFiles(of: leg)
        if try await carrier?.awaitTurn(control, until: deadline, url) ?? false {
            prepareAgain()
            if self.leg == nil { return try await send() }
        }
        var built = try built(leg)
        (built.meter, built.transfer.passesLimits) = (call.meter, control.isRefresh)
        // One response of this run may fill the jar, and the next may empty it.
        let cookieAdditions = core.cookieAdditions
        if core.hasCookies { (hasUnknownCredentials, hadCookies) = (true, true) }
        var stage = cacheStage(for: built)
        if carrier == nil, stage != nil, let answer = try await look(&stage, &built) { return answer }
        if let remaining {
            // After the deadline it is not sent at all, whatever the delay was.
            if remaining <= .zero { throw .deadlinePassed(url: url) }
            built.transfer.timeouts.deadline = milliseconds(remaining)
        }
        beginSpan(&built)
        built.inform(call.watch)
        call.watch?.sends(built)
        if !hasPaid && !retries.isOff { core.payForRetries(url) }
        hasPaid = true
        if let carrier {
            let answer = await control.carry(built, streamedBy: carrier, by: core)
            if let stage, case .result(let result) = answer, result.succeeded { stage.invalidate(by: result) }
            return answer
        }
        let answer = await control.carry(built, by: core)
        if core.cookieAdditions != cookieAdditions { (hasUnknownCredentials, hadCookies) = (true, true) }
        guard stage != nil else { return answer }
        return await take(answer, &stage)
    }

    /// A request as it is sent. The credentials for challenges are part of its key in the cache.
    mutating func built(_ leg: OutgoingRequest) throws(RequestError) -> BuiltRequest {
        var built = try call.build(leg, hasOwnBody: !hasAlteredBody, reading: files, by: core.builder)
        authorize(&built.transfer)
        return built
    }

    // MARK: The HTTP cache (RFC 9111)

    /// `nil` if the request does not use it.
    mutating func cacheStage(for built: borrowing BuiltRequest) -> HTTPCacheStage? {
        guard let plan = call.http, let cache = core.cache else { return nil }
        // A streamed response is neither stored nor reused.
        if carrier != nil && !InvalidationRules.isUnsafe(built.transfer.method) { return nil }
        var fields = Headers(built.transfer.headers)
        if fields["User-Agent"] == nil, let agent = core.builder.userAgent { fields.append("User-Agent", agent) }
        if fields["Accept-Encoding"] == nil {
            switch built.transfer.acceptedEncodings {
            case .standard:
                let encodings = core.builder.acceptedEncodings
                if !encodings.isEmpty { fields.append("Accept-Encoding", encodings.field) }
            case .these(let encodings): fields.append("Accept-Encoding", encodings)
            case .none: break
            }
        }
        var own = fields.filter { field in
            SecretHeaders.distinguishes(field.name, declared: call.redirectPolicy.sensitiveHeaders)
                || tokenFields.contains { equalNames($0, field.name) }
        }
        var sent = RequestBuilder.secrets(own, isShared: false)
        // The policy names the owner of the response, so the token does not matter.
        let isOwned = plan.terms.sensitiveData != .none
        if isOwned { own.removeAll { added.contains($0) && !equalNames($0.name, "Host") } }
        var found = RequestBuilder.secrets(own, isShared: plan.terms.isShared)
        if let login = built.transfer.credentials {
            sent.append(HTTPCacheKey.Secret(name: "", value: "\(login.user)\0\(login.password)"))
            if !isOwned || call.digest != nil { found += sent.suffix(1) }
        }
        // A new token takes the place of one that was refused. The host is that of the server that is asked now.
        let hop = redirects.history.count
        secrets.removeAll { $0.hop == hop || $0.secret.name == "host" }
        for one in found where !secrets.contains(where: { $0.secret == one }) { secrets.append((hop, one)) }
        return HTTPCacheStage(
            core, cache, plan,
            HTTPCacheStage.Sent(
                method: built.transfer.method, url: url, fields: fields, hasBody: !built.transfer.body.isNone,
                key: HTTPCacheKey(
                    cache.httpPrefix, isPublicOnly: built.transfer.publicOnly, plan.terms, secrets.map(\.secret)),
                secrets: sent, added: added.map(\.name), hadCookies: hadCookies, isRepeatable: !hasSentUnsafe,
                isRetry: isRetry),
            of: call.request)
    }

    /// Returns the cache's response, if it has one. Otherwise it adds the conditions of a validation to the request.
    private mutating func look(
        _ stage: inout HTTPCacheStage?, _ built: inout BuiltRequest
    ) async throws(RequestError) -> Answer? {
        guard let way = await stage?.look(validates: !asksNoValidation, control, until: deadline) else {
            // The deadline has passed while another run was validating.
            guard control.end == nil, let (result, found) = stage?.standIn else { throw control.overdue(url: url) }
            core.cache?.counters.hit(fromMemory: true, isStale: true)
            (isIntercepted, trace) = (true, found)
            return .arrived(result, origin(isFromCache: true))
        }
        switch way {
        case .answer(let result, let found):
            let isFromCache = found.isHit
            (isIntercepted, trace) = (true, found)
            return .arrived(result, origin(isFromCache: isFromCache))
        case .refuse(let miss): throw .notCached(miss, url: url)
        case .send(let fields):
            for field in fields { built.transfer.headers.append(field.name, field.value) }
            standIn = stage?.standIn
            return nil
        }
    }

    /// Passes to the cache the answer to a validation that was sent before the exchange began.
    private mutating func taken(_ answer: Answer, of validation: PlainValidation) async -> Answer {
        var stage: HTTPCacheStage?
        do throws(RequestError) {
            let outgoing = try call.read().outgoing
            (leg, url) = (outgoing, try core.builder.checked(outgoing.url))
            if core.hasCookies || core.cookieAdditions != validation.cookieAdditions {
                (hasUnknownCredentials, hadCookies) = (true, true)
            }
            stage = cacheStage(for: try built(outgoing))
        } catch { return .refused(error) }
        stage?.take(over: validation)
        standIn = stage?.standIn
        return await take(answer, &stage)
    }

    /// Passes the response to the cache.
    private mutating func take(_ answer: Answer, _ stage: inout HTTPCacheStage?) async -> Answer {
        guard case .result(let result) = answer, result.succeeded else {
            stage?.failed(answer)
            return answer
        }
        switch await stage?.received(result, control, until: deadline) {
        case .deliver(let delivered, let found, let validated)?:
            (trace, validation, standIn) = (found, validated, stage?.standIn)
            asksNoValidation = false
            if validated == nil { return .result(result) }
            return .arrived(delivered, origin())
        case .again?:
            asksNoValidation = true
            hasLeft = false
            call.watch?.received(result)
            leave(result)
            return .unsent
        case nil: return answer
        }
    }
}
