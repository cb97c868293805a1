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
                if let next = try redirected(by: result) { return next }
                if let next = try await refused(by: result) { return next }
            }
            if let next = try await challenged(by: result) { return next }
            var last = result
            if let carrier, result.succeeded {
                let head = Response(result, url: url, origin: origin(isFromCache: isFromCache))
                switch try await carrier.take(head, of: control, by: core) {
                case .left: break
                case .ended(let ended): last = ended
                case .again:
                    leave(result)
                    // Signatures and tokens may have expired since, so adapters run again.
                    return .again
                }
            }
            return try await retried(after: last) ?? .deliver(.arrived(last, origin(isFromCache: isFromCache)))
        } catch {
            leave(result)
            return .deliver(.refused(error))
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
            if next.dropsSecrets { (credential, token) = (nil, nil) }
            return .goOn
        }
    }

    /// The token was refused: it is refreshed once for all waiting runs, and the request is sent again, once.
    private mutating func refused(by result: TransferResult) async throws(RequestError) -> Next? {
        guard let token, let session = core.tokens else { return nil }
        let head = Response(result, url: url, origin: origin())
        guard session.isRefused(head) else {
            if (200..<300).contains(result.status), !isIntercepted {
                session.accepted(generation: token, after: refusal?.refresh)
                // A later refusal is a new case: the token was accepted, and has expired since.
                refusal = nil
            }
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
        if redirects.history.isEmpty { return .again }
        leg = try await withToken(asked)
        // The new token is meant for the first server, too.
        added += leg?.headers.filter { !asked.headers.contains($0) } ?? []
        if let leg, leg.hasOtherBody(than: asked) {
            try checkBody(of: leg)
            (hasAlteredBody, adaptedFiles) = (true, nil)
        }
        return .goOn
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
        } else if result.status >= 400 {
            outcome = .answer(status: result.status, headers: Headers(result))
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
        let bare = try call.read().outgoing
        var outgoing = bare
        let info = call.info
        for adapter in core.configuration.adapters {
            outgoing = try await ask { [outgoing] in
                var adapted = outgoing
                try await adapter.adapt(&adapted, of: info)
                return adapted
            }
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

    /// Adds the current token, if the agent has an authenticator.
    mutating func withToken(_ outgoing: OutgoingRequest) async throws(RequestError) -> OutgoingRequest {
        guard let session = core.tokens, !control.isRefresh else { return outgoing }
        let prepared = try await session.prepared(outgoing, for: control, until: deadline)
        token = prepared.generation
        hasUnknownCredentials = true
        return prepared.request
    }

    private func hasSecrets(_ fields: [Headers.Field]) -> Bool {
        // Including those of the configuration.
        let declared = call.redirectPolicy.sensitiveHeaders
        return fields.contains { SecretHeaders.contains($0.name, declared: declared) }
    }
}

extension OutgoingRequest {
    fileprivate func following(_ next: RedirectMachine.Next, without added: [Headers.Field]) -> OutgoingRequest {
        OutgoingRequest(
            own: next.method, url: next.url,
            headers: Headers(headers.filter { !next.drops($0.name) && !added.contains($0) }),
            body: next.dropsBody ? nil : body)
    }
}

extension Exchange {
    /// A credential, and where it may be sent.
    struct Granted: Sendable {
        var credential: Credential
        var schemes: CredentialSchemes
        /// The proxy that the credential is for, `host:port`; `nil` for a server.
        var proxy: String?
    }

    /// Handles a challenge (RFC 9110, 11.4). The provider is asked once for the server and once for the proxy; after a
    /// redirect each may be a different one.
    mutating func challenged(by result: TransferResult) async throws(RequestError) -> Next? {
        guard let provider = core.configuration.credentialProvider, let challenger = Self.challenger(of: result) else {
            return nil
        }
        let isAnswered = challenger == .server ? credential != nil : proxyCredential != nil
        let asked = try asked()
        // libcurl answers challenges, and carries no exchange in full duplex: its caller gets the refusal.
        if case .pulled(let body) = asked.body?.content, body is WriterBody { return nil }
        guard !isAnswered, asked.body?.isReplayable ?? true, let place = try place(of: challenger, for: asked.url)
        else {
            return nil
        }
        let challenge = CredentialChallenge(
            challenger: challenger, host: place.host, port: place.port,
            fields: Headers(result).values(of: challenger.field))
        // Nothing else is known about a refused tunnel: libcurl finds out which schemes are offered.
        let schemes = challenger == .proxy && challenge.offers.isEmpty ? .all : challenge.schemes
        if schemes.isEmpty { return nil }
        let info = call.info
        if result.succeeded { carrier?.waits(after: Response(result, url: url, origin: origin())) }
        guard let found = try await ask({ try await provider.credential(for: challenge, of: info) }) else {
            carrier?.keepsResponse()
            return nil
        }
        guard found.isUsable else { throw .unusableCredential(url: url) }
        leave(result)
        hasUnknownCredentials = true
        switch challenger {
        case .server: credential = Granted(credential: found, schemes: schemes)
        case .proxy:
            proxyCredential = Granted(credential: found, schemes: schemes, proxy: "\(place.host):\(place.port)")
        }
        leg = asked
        return .again
    }

    /// Whether the server or the proxy requests credentials with this response or failure.
    static func challenger(of result: TransferResult) -> CredentialChallenge.Challenger? {
        // A 407 without a failure comes from the server itself, because that of a proxy is always a failure.
        guard let failure = result.failure else { return result.status == 401 ? .server : nil }
        return failure.code == .proxy && failure.detail == .proxyAuthRequired ? .proxy : nil
    }

    private func place(
        of challenger: CredentialChallenge.Challenger, for url: String
    ) throws(RequestError) -> (host: String, port: Int)? {
        if challenger == .proxy {
            return try call.proxy.route(for: url).map { ($0.host, Int($0.port)) }
        }
        return (try? URLParts(url)).map { ($0.host, Int($0.port)) }
    }

    /// The request of the next transfer, without the field that a provider's credential replaces. That field was not
    /// accepted, and would take precedence even if adapters ran again.
    func authorized(_ leg: OutgoingRequest) -> OutgoingRequest {
        if credential == nil || call.digest != nil || leg.headers["Authorization"] == nil { return leg }
        var leg = leg
        leg.headers["Authorization"] = nil
        return leg
    }

    /// Adds the granted credentials, for the server and for the proxy.
    mutating func authorize(_ transfer: inout TransferRequest) {
        if let credential {
            transfer.credentials = TransferCredentials(
                user: credential.credential.user, password: credential.credential.password,
                schemes: .init(rawValue: credential.schemes.rawValue))
        }
        // After a redirect the transfer may use another proxy, which has to challenge first.
        if transfer.proxy?.kind != .http || transfer.proxy?.address != proxyCredential?.proxy { proxyCredential = nil }
        guard let proxyCredential else { return }
        transfer.proxy?.user = proxyCredential.credential.user
        transfer.proxy?.password = proxyCredential.credential.password
        transfer.proxy?.schemes = .init(rawValue: proxyCredential.schemes.rawValue)
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
}

extension CredentialChallenge.Challenger {
    /// The header field of its challenges.
    fileprivate var field: String { self == .server ? "WWW-Authenticate" : "Proxy-Authenticate" }
}
