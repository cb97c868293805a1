import FerryTransport
import FoundationEssentials

extension Travel {
    /// Looks at an answer: is it the last?
    mutating func next(after answer: Answer) async -> Next {
        let result: TransferResult
        let isFromCache: Bool
        switch answer {
        case .unsent: return .again
        case .refused: return .deliver(answer)
        case .result(let plain): (result, isFromCache) = (plain, false)
        case .arrived(let last, let trail): (result, isFromCache) = (last, trail.isFromCache)
        }
        hasLeft = false
        itinerary.watch?.received(result)
        do throws(RequestError) {
            if result.succeeded {
                if let next = try redirected(by: result) { return next }
                if let next = try await refused(by: result) { return next }
            }
            if let next = try await challenged(by: result) { return next }
            var last = result
            if let carrier, result.succeeded {
                let head = Response(result, url: url, trail: trail(isFromCache: isFromCache))
                switch try await carrier.take(head, of: journey, by: core) {
                case .left: break
                case .ended(let ended): last = ended
                case .again:
                    leave(result)
                    // It may be long since: a signature or a token of that time would not be accepted any more.
                    return .again
                }
            }
            return try await retried(after: last) ?? .deliver(.arrived(last, trail(isFromCache: isFromCache)))
        } catch {
            leave(result)
            return .deliver(.refused(error))
        }
    }

    /// The answer is not the run's.
    mutating func leave(_ result: TransferResult) {
        if hasLeft { return }
        hasLeft = true
        if !isIntercepted {
            earlier.add(result)
            left = RequestMetrics(result)
        }
        carrier?.goOn(from: result)
    }

    func asked() throws(RequestError) -> OutgoingRequest {
        if let leg { return leg }
        return try itinerary.outgoing()
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
            let error = RequestError(code, message: message, response: Response(result, url: url, trail: trail()))
            throw isIntercepted ? error.ofApplication : error
        case .follow(let next):
            // An interceptor's was sent nowhere.
            if !isIntercepted { earlier.addRedirect() }
            leave(result)
            core.log?.redirected(itinerary.info, to: next.url, status: result.status)
            leg = asked.following(next, without: next.dropsSecrets ? added : [])
            if next.dropsSecrets { (credential, token) = (nil, nil) }
            return .goOn
        }
    }

    /// The token was not accepted: it is refreshed, once for all, and this is sent again, once.
    private mutating func refused(by result: TransferResult) async throws(RequestError) -> Next? {
        guard let token, let session = core.tokens else { return nil }
        guard session.isRefused(Response(result, url: url, trail: trail())) else {
            if (200..<300).contains(result.status), !isIntercepted {
                session.accepted(generation: token, after: refusal?.refresh)
                // The next refusal is another matter: the token was good, and has expired since.
                refusal = nil
            }
            return nil
        }
        let asked = try asked()
        let next = try await session.refused(
            url, generation: token, wasReplayed: refusal != nil, isReplayable: asked.body?.isReplayable ?? true,
            for: journey, until: deadline)
        // Once until it is accepted, whatever comes of it: also where it is sent again for another reason.
        refusal = TokenRefusal(isReplayed: next.isReplayed, refresh: next.refresh ?? refusal?.refresh)
        guard next.isReplayed else { return nil }
        leave(result)
        if redirects.history.isEmpty { return .again }
        leg = try await withToken(asked)
        // The new token is meant for the first server, too.
        added += leg?.headers.filter { !asked.headers.contains($0) } ?? []
        if leg?.changes != asked.changes { hasAlteredBody = true }
        return .goOn
    }

    private mutating func retried(after result: TransferResult) async throws(RequestError) -> Next? {
        if retries.isOff { return nil }
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
            isIdempotent: asked.method == itinerary.info.method ? itinerary.isIdempotent : asked.method.isIdempotent,
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
            itinerary.info, attempt: attempt.attempt, after: attempt.code ?? .invalidStatusCode(result.status),
            delay: wait)
        guard await journey.pause(wait) else { throw journey.error(url: url) }
        return .again
    }
}

extension OutgoingRequest {
    fileprivate func following(_ next: RedirectMachine.Next, without added: [Headers.Field]) -> OutgoingRequest {
        OutgoingRequest(
            method: next.method, url: next.url,
            headers: Headers(headers.filter { !next.drops($0.name) && !added.contains($0) }),
            body: next.dropsBody ? nil : body)
    }
}
