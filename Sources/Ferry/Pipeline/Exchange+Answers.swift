import FerryTransport
import FoundationEssentials

extension Exchange {
    /// Decides whether a response is the last one of the run.
    mutating func next(after answer: Answer) async -> Next {
        let result: TransferResult
        let isFromCache: Bool
        switch answer {
        case .unsent: return .again
        case .refused: return .deliver(answer)
        case .result(let plain): (result, isFromCache) = (plain, false)
        case .arrived(let last, let origin): (result, isFromCache) = (last, origin.isFromCache)
        }
        hasLeft = false
        if !isFromCache { call.watch?.received(validation ?? result) }
        do throws(RequestError) {
            if result.succeeded {
                if isTargetServing, Self.endsTarget(result.status) {
                    // Its URL was valid for a limited time: the first server gives another one.
                    isTargetServing = false
                    leave(result)
                    return .again
                }
                // An authenticator may take a redirect to a page for signing in as a refusal.
                if let next = try await refused(by: result) { return next }
                if let next = try redirected(by: result) { return next }
            }
            if let next = try await challenged(by: result) { return next }
            var last = result
            if let carrier, result.succeeded {
                let head = Response(result, url: url, origin: origin(isFromCache: isFromCache))
                switch try await carrier.take(head, of: control, by: core) {
                case .left: break
                case .ended(let ended):
                    // Whatever server has refused a token before, this one has sent the file.
                    (last, refusal) = (ended, nil)
                    noteTarget(result)
                case .again:
                    refusal = nil
                    noteTarget(result)
                    leave(result)
                    // Signatures and tokens may have expired since, so adapters run again. So may credentials.
                    noteAcceptedCredentials()
                    return .again
                }
            }
            return try await retried(after: last) ?? .deliver(.arrived(last, origin(isFromCache: isFromCache)))
        } catch {
            leave(result)
            return .deliver(.refused(error))
        }
    }

    /// Whether a target says with this status that it does not serve its URL any more: some servers answer 400 to a URL
    /// that has expired, and some redirect it to a page, also with 307. It is no refusal of the URL if it is about the
    /// time, the range or the load.
    private static func endsTarget(_ status: Int) -> Bool {
        if RedirectMachine.isRedirect(status) { return true }
        return (400..<500).contains(status) && ![407, 408, 416, 425, 429].contains(status)
    }

    private mutating func noteTarget(_ result: TransferResult) {
        guard carrier?.beginsAtOrigin ?? false, !hasSentUnsafe else { return }
        isTargetServing = !redirects.isAtStart && result.status < 300
    }

    /// The answer of an interceptor, in place of a response from the network.
    mutating func intercepted(_ answer: InterceptedResponse) throws(RequestError) -> Answer {
        isIntercepted = true
        do throws(TransferFailure) {
            let result = try TransferResult(id: 1, head: answer.head(), body: Array(answer.body))
            return .arrived(result, origin(isFromCache: answer.isFromCache))
        } catch {
            throw RequestError(error, url: url).ofApplication
        }
    }

    /// Discards a response that does not end the run.
    mutating func leave(_ result: TransferResult) {
        if hasLeft { return }
        hasLeft = true
        if !isIntercepted {
            earlier.add(validation ?? result)
            left = RequestMetrics(validation ?? result)
        }
        carrier?.goOn(from: result)
    }

    /// Opens the files of the body before its source does: a task's thread must not wait for a file system.
    mutating func openFiles(of request: OutgoingRequest) async throws(RequestError) {
        let bodies = request.body?.files ?? []
        if bodies.isEmpty { return }
        let own = ownFiles ?? BodyFiles()
        guard hasAlteredBody else {
            files = own
            return try await own.open(bodies, for: control, url: url, until: deadline)
        }
        if adaptedFiles == nil {
            // The run's own files are the same in every attempt. Others may have been written for this one.
            let paths = try call.read().bodyFiles.map { Array($0.path.utf8) }
            let shared = bodies.filter { paths.contains(Array($0.path.utf8)) }
            try await own.open(shared, for: control, url: url, until: deadline)
            adaptedFiles = BodyFiles(sharing: own)
        }
        files = adaptedFiles
        try await adaptedFiles?.open(bodies, for: control, url: url, until: deadline)
    }

    func origin(isFromCache: Bool = false) -> ResponseOrigin {
        ResponseOrigin(
            url: url, redirects: redirects.history, earlier: earlier, isIntercepted: isIntercepted,
            isFromCache: isFromCache, cache: trace, hasUnknownCredentials: hasUnknownCredentials,
            added: added.map(\.name), start: start, validation: validation)
    }

    /// Calls code of the application.
    func ask<Value: Sendable>(
        _ question: @escaping @Sendable () async throws -> Value
    ) async throws(RequestError) -> Value {
        try await control.ask(url, until: deadline, question)
    }

    func asked() throws(RequestError) -> OutgoingRequest {
        if let leg { return leg }
        return try call.read().outgoing
    }

    private mutating func redirected(by result: TransferResult) throws(RequestError) -> Next? {
        guard (300..<400).contains(result.status) else { return nil }
        let asked = try asked()
        let isFirst = redirects.isAtStart
        let action = redirects.answered(
            status: result.status, locations: RedirectMachine.locations(of: result),
            to: RedirectMachine.Asked(
                url: asked.url, method: asked.method, hasBody: asked.body != nil,
                isBodyReplayable: asked.body?.isReplayable ?? true, isBodyBound: hasAlteredBody))
        switch action {
        case .deliver: return nil
        case .fail(let code, let message):
            let error = RequestError(code, message: message, response: Response(result, url: url, origin: origin()))
            throw isIntercepted ? error.ofApplication : error
        case .follow(let next):
            // An interceptor's redirect was not sent anywhere.
            if !isIntercepted { earlier.addRedirect() }
            leave(result)
            core.log?.redirected(call.info, to: next.url, status: result.status)
            leg = asked.following(next, without: next.dropsSecrets ? added : [])
            if isFirst { (firstCredentials, way) = (credentials, Way()) }
            if next.dropsSecrets { (token, tokenFields) = (nil, []) }
            // A credential is for one server, and stays for a redirect within that.
            if next.dropsSecrets, HostKey(url: asked.url) != HostKey(url: next.url) {
                keepGranted()
                credentials = []
                way.goOn(from: asked.url, to: next.url)
            }
            grantAgain(for: next.url)
            return .goOn
        }
    }

    /// The token was refused: it is refreshed once for all waiting runs, and the request is sent again, once.
    private mutating func refused(by result: TransferResult) async throws(RequestError) -> Next? {
        guard let token, let session = core.tokens else { return nil }
        // It is from an interceptor or the cache.
        if isIntercepted && (!refreshesToken || (300..<400).contains(result.status)) { return nil }
        let head = Response(result, url: url, origin: origin())
        guard session.isRefused(head) else {
            noteAccepted(token, by: result, in: session)
            return nil
        }
        let asked = try asked()
        let next = try await session.refused(
            url, generation: token, wasReplayed: refusal != nil, isReplayable: asked.body?.isReplayable ?? true,
            for: control, until: deadline
        ) { [carrier] in carrier?.waits(after: head) }
        // Once until the token is accepted, whatever happens, even if the request is sent again for another reason.
        refusal = TokenRefusal(isReplayed: next.isReplayed, refresh: next.refresh ?? refusal?.refresh)
        guard next.isReplayed else {
            carrier?.keepsResponse()
            return nil
        }
        leave(result)
        if redirects.isAtStart { return .again }
        leg = try await withToken(asked)
        // The new token is meant for the first server, too.
        added += leg?.headers.filter { !asked.headers.contains($0) } ?? []
        if let leg, leg.hasOtherBody(than: asked) {
            try checkBody(of: leg)
            (hasAlteredBody, adaptedFiles) = (true, nil)
        }
        return .goOn
    }

    /// A response that is no refusal shows that the token was accepted, also if it is a redirect or an error of the
    /// request. What an overloaded server says may come from before it has looked at the token.
    private mutating func noteAccepted(_ token: UInt64, by result: TransferResult, in session: any TokenSession) {
        guard (200..<500).contains(result.status), ![401, 407, 408, 429].contains(result.status), !isIntercepted
        else { return }
        // A provider's credential was sent in its place.
        if isTokenInField, let leg, isOther(authorized(leg), than: leg) { return }
        session.accepted(generation: token, after: refusal?.refresh)
        // A later refusal is a new case: the token was accepted, and has expired since.
        refusal = nil
    }

    /// Refuses another body, because nobody would read what the application writes.
    func checkBody(of outgoing: OutgoingRequest) throws(RequestError) {
        guard let writer = carrier?.writerBody, outgoing.body?.isMade(of: writer) != true else { return }
        throw RequestError(
            preparing: .invalidRequest(.body), message: "an adapter has replaced the body of an exchange", url: url)
    }

    private mutating func retried(after result: TransferResult) async throws(RequestError) -> Next? {
        // The cache would give the same response again.
        if retries.isOff || (isIntercepted && trace != nil) { return nil }
        let outcome: FailedAttempt.Outcome
        if let failure = result.failure {
            outcome = .fault(RequestError(failure, of: result, url: url))
            // It may be gone.
            if result.status == 0 { isTargetServing = false }
        } else if result.status >= 400 {
            outcome = .response(status: result.status, headers: Headers(result))
        } else {
            return nil
        }
        let asked = try asked()
        let attempt = FailedAttempt(
            outcome, attempt: retries.retries + 1, method: asked.method, url: url,
            isIdempotent: asked.method == call.info.method ? call.isIdempotent : asked.method.isIdempotent,
            headers: asked.headers)
        let (host, accounts) = (HostKey(url: url)?.authority ?? "", core.retryAccounts)
        let action = retries.failed(
            attempt,
            RetryMachine.Surroundings(
                remaining: remaining, isBodyReplayable: asked.body?.isReplayable ?? true,
                now: HTTPDate(secondsSince1970: Int64(Date.now.timeIntervalSince1970))),
            random: { Double.random(in: 0...1) }, withdraw: { accounts.withdraw(host) })
        guard case .retry(let wait) = action else { return nil }
        leave(result)
        core.log?.retrying(
            call.info, attempt: attempt.attempt, after: attempt.code ?? .invalidStatusCode(result.status),
            delay: wait)
        guard await control.pause(wait) else { throw control.error(url: url) }
        isRetry = true
        return .again
    }
}

extension Exchange {
    // MARK: Preparing

    /// The request after the adapters.
    mutating func prepared() async throws(RequestError) -> OutgoingRequest {
        // That of the last attempt, which may have gone to another server.
        (token, tokenFields) = (nil, [])
        let bare = try call.read().outgoing
        var outgoing = bare
        let info = call.info
        for adapter in core.configuration.adapters {
            outgoing = try await ask { [outgoing] in
                var adapted = outgoing
                try await adapter.adapt(&adapted, of: info)
                return adapted
            }
            // Before the next one, which may sign the fields.
            if outgoing.url != bare.url { outgoing.headers = fields(of: outgoing, movedFrom: bare) }
        }
        // Decided by its current URL, because an adapter may have sent it to another server.
        if call.usesAuthenticator, call.takesToken(to: try core.builder.checked(outgoing.url)) {
            outgoing = try await withToken(outgoing)
        }
        try checkBody(of: outgoing)
        added = outgoing.headers.filter { !bare.headers.contains($0) }
        (hasAlteredBody, adaptedFiles) = (outgoing.hasOtherBody(than: bare), nil)
        if outgoing.url != bare.url || outgoing.method != bare.method || hasAlteredBody || hasSecrets(added) {
            hasUnknownCredentials = true
        }
        return outgoing
    }

    /// The fields without the secrets of the configuration, if adapters have sent the request to a server that must not
    /// have them. What they or the request have set to another value stays.
    private func fields(of outgoing: OutgoingRequest, movedFrom bare: OutgoingRequest) -> Headers {
        let origin = HostKey(url: (try? core.builder.checked(outgoing.url)) ?? outgoing.url)
        if origin == HostKey(url: bare.url) { return outgoing.headers }
        let own = call.servers.allOwnOrigins(call.named)
        // Without servers in the configuration its fields go to any server.
        var secrets = own.isEmpty || own.contains { $0 == origin } ? [] : core.builder.headers.secretFields
        secrets += call.servers.credentials(call.named, hiddenFrom: origin).map {
            Headers.Field(name: "Authorization", value: $0)
        }
        if secrets.isEmpty { return outgoing.headers }
        return Headers(
            outgoing.headers.filter { field in
                !secrets.contains { $0.value == field.value && equalNames($0.name, field.name) }
            })
    }

    /// Adds the current token, if the agent has an authenticator.
    mutating func withToken(_ outgoing: OutgoingRequest) async throws(RequestError) -> OutgoingRequest {
        guard let session = core.tokens, !control.isRefresh else { return outgoing }
        // The request may have a token already, perhaps the same.
        let wasInField = token != nil && isTokenInField
        if !refreshesToken {
            let current = session.withCurrentToken(outgoing)
            token = current.map { _ in session.generation }
            isTokenInField = wasInField || current.map { isOther($0, than: outgoing) } ?? false
            // Whoever gets the token later may be another user.
            if current == nil { hadCookies = true }
            noteToken(in: current ?? outgoing, since: outgoing)
            return current ?? outgoing
        }
        let prepared = try await session.prepared(outgoing, for: control, until: deadline)
        token = prepared.generation
        isTokenInField = wasInField || isOther(prepared.request, than: outgoing)
        hasUnknownCredentials = true
        noteToken(in: prepared.request, since: outgoing)
        return prepared.request
    }

    private mutating func noteToken(in request: OutgoingRequest, since bare: OutgoingRequest) {
        if call.http == nil { return }
        for field in request.headers where !SecretHeaders.contains(field.name, declared: []) {
            if !bare.headers.contains(field) { tokenFields.append(field.name) }
        }
    }

    private func isOther(_ request: OutgoingRequest, than bare: OutgoingRequest) -> Bool {
        request.headers["Authorization"] != bare.headers["Authorization"]
    }

    private func hasSecrets(_ fields: [Headers.Field]) -> Bool {
        // Including those of the configuration.
        let declared = call.redirectPolicy.sensitiveHeaders
        return fields.contains { SecretHeaders.contains($0.name, declared: declared) }
    }

    /// Starts a span. The trace is sent to the first server only.
    func beginSpan(_ built: inout BuiltRequest) {
        if built.trace == nil && call.watch?.span == nil && call.parent == nil { return }
        call.beginSpan(of: &built, isSent: call.redirectPolicy.keepsTraceContext || isAtOrigin)
    }

    /// Whether the current URL has the origin of the request.
    var isAtOrigin: Bool { HostKey(url: url) == HostKey(url: call.url) }

    /// The time until the deadline; `nil` if there is none.
    var remaining: Duration? { deadline.map { ContinuousClock.now.duration(to: $0) } }
}

extension OutgoingRequest {
    fileprivate func following(_ next: RedirectMachine.Next, without added: [Headers.Field]) -> OutgoingRequest {
        OutgoingRequest(
            own: next.method, url: next.url,
            headers: Headers(headers.filter { !next.drops($0.name) && !added.contains($0) }),
            body: next.dropsBody ? nil : body)
    }
}
