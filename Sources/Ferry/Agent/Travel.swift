import FerryTransport

/// Goes the way of one journey: prepares, sends, looks at the answer, and sends again until there is one to deliver.
///
/// Redirects, retries, refreshed tokens and answered challenges all come down to that. What to do next is decided by
/// the machines in it; this drives them.
struct Travel {
    private let core: AgentCore
    private let itinerary: Itinerary
    private let journey: Journey
    private let start: ContinuousClock.Instant
    private let deadline: ContinuousClock.Instant?
    private var redirects: RedirectMachine
    /// What was sent last, or follows a redirect; `nil` when the request has to be asked anew.
    private var leg: OutgoingRequest?
    /// How often it was sent before the answer at hand.
    private var attempts = 0
    private var url: String

    enum Next {
        case deliver(Answer)
        /// Ask the request anew, adapters and all.
        case again
        /// Send what `leg` holds.
        case goOn
    }

    init(_ core: AgentCore, _ itinerary: Itinerary, _ journey: Journey, after first: Answer) {
        self.core = core
        self.itinerary = itinerary
        self.journey = journey
        redirects = RedirectMachine(itinerary.redirectPolicy)
        url = itinerary.url
        let elapsed: Duration =
            if case .result(let result) = first { .microseconds(result.metrics.total) } else { .zero }
        let start = ContinuousClock.now - elapsed
        self.start = start
        deadline = itinerary.deadline.map { start + $0 }
    }

    mutating func run(after first: Answer) async -> Answer {
        var answer = first
        while true {
            switch await next(after: answer) {
            case .deliver(let answer): return answer
            case .again: leg = nil
            case .goOn: break
            }
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
        guard let leg else { preconditionFailure("nothing was prepared") }
        url = leg.url
        for interceptor in core.configuration.interceptors {
            let info = itinerary.info
            let answer = try await journey.ask(url) { try await interceptor.intercept(leg, of: info) }
            if let answer { return try intercepted(answer) }
        }
        var built = try itinerary.build(leg)
        if let deadline {
            let left = ContinuousClock.now.duration(to: deadline)
            // Milliseconds, where 0 would be no bound at all.
            built.transfer.timeouts.deadline = max(milliseconds(left), 1)
        }
        return await journey.carry(built, by: core)
    }

    /// The request as the adapters leave it.
    private func prepared() async throws(RequestError) -> OutgoingRequest {
        var outgoing = try itinerary.outgoing()
        let info = itinerary.info
        for adapter in core.configuration.adapters {
            outgoing = try await journey.ask(outgoing.url) { [outgoing] in
                var adapted = outgoing
                try await adapter.adapt(&adapted, of: info)
                return adapted
            }
        }
        return outgoing
    }

    private func intercepted(_ answer: InterceptedResponse) throws(RequestError) -> Answer {
        do throws(TransferFailure) {
            let result = try TransferResult(
                id: 1, head: answer.head, body: Array(answer.body))
            return .arrived(result, trail(isFromCache: answer.isFromCache))
        } catch {
            throw RequestError(error, url: url)
        }
    }

    private func trail(isFromCache: Bool = false) -> Trail {
        Trail(
            url: url, redirects: redirects.history, earlierAttempts: attempts, isFromCache: isFromCache,
            elapsed: start.duration(to: .now))
    }

    // MARK: And back

    private mutating func next(after answer: Answer) async -> Next {
        let result: TransferResult
        let isFromCache: Bool
        switch answer {
        case .unsent: return .again
        case .refused: return .deliver(answer)
        case .result(let plain): (result, isFromCache) = (plain, false)
        case .arrived(let last, let trail): (result, isFromCache) = (last, trail.isFromCache)
        }
        let delivered = Next.deliver(.arrived(result, trail(isFromCache: isFromCache)))
        if journey.end != nil { return delivered }
        if result.succeeded, let next = redirected(by: result) { return next }
        return delivered
    }

    private mutating func redirected(by result: TransferResult) -> Next? {
        do throws(RequestError) {
            let asked = if let leg { leg } else { try itinerary.outgoing() }
            let action = redirects.answered(
                status: result.status, locations: Headers(result).values(of: "Location"),
                to: RedirectMachine.Asked(
                    url: asked.url, method: asked.method, hasBody: asked.body != nil,
                    isBodyReplayable: asked.body?.isReplayable ?? true))
            switch action {
            case .deliver: return nil
            case .follow(let next):
                attempts += result.attempts
                leg = asked.following(next)
                return .goOn
            case .fail(let code, let target):
                let response = Response(result, url: url, trail: trail())
                let message = target.isEmpty ? code.sentence : "\(code.sentence): \(target)"
                return .deliver(.refused(RequestError(code, message: message, response: response)))
            }
        } catch {
            return .deliver(.refused(error))
        }
    }
}

extension OutgoingRequest {
    fileprivate func following(_ next: RedirectMachine.Next) -> OutgoingRequest {
        OutgoingRequest(
            method: next.method, url: next.url, headers: Headers(headers.filter { !next.drops($0.name) }),
            body: next.dropsBody ? nil : body)
    }
}
