import FerryCache
import FerryTransport
import FoundationEssentials

extension AgentCore {
    /// `nil` for a request whose transfer cannot be shared.
    func flightKey<R: Request>(
        of request: R, _ itinerary: Itinerary, _ journey: Journey
    ) -> FlightKey? {
        // They may give each run credentials of its own. And of two rules nobody knows whether they are the same.
        guard configuration.adapters.isEmpty, configuration.credentialProvider == nil, !hasCookies,
            request.redirectPolicy?.decide == nil, request.retryPolicy?.decide == nil,
            let transfer = try? itinerary.read().transfer
        else { return nil }
        var material: [UInt8] = []
        material.appendCounted(transfer.method)
        material.appendCounted(transfer.url)
        transfer.headers.bytes.withUnsafeBytes { material.appendCounted($0) }
        switch transfer.body {
        case .none: material.append(0)
        case .bytes(let bytes): material.append(CacheDigest(of: bytes))
        case .data(let data): material.append(data.withUnsafeBytes { CacheDigest(of: $0) })
        case .pull: return nil
        }
        let credentials = transfer.credentials.map { "\($0.user)\0\($0.password)" } ?? ""
        material.appendCounted(credentials)
        let proxy = transfer.proxy.map { "\($0.address)\0\($0.user ?? "")\0\($0.password ?? "")" } ?? ""
        material.appendCounted(proxy)
        // With another token it may be for somebody else.
        let token = itinerary.takesToken(to: transfer.url) ? tokens?.generation : nil
        material.appendCounted("\(transfer.maxBodyBytes) \(transfer.publicOnly) \(token.map(String.init) ?? "none")")
        let terms = request.cachePolicy.terms
        (terms?.sensitiveData ?? .none).withBytes { material.appendCounted($0) }
        material.appendCounted("\(transfer.acceptedEncodings) \(transfer.isIdempotent) \(journey.isRefresh)")
        // Each run has a deadline of its own; the rest is the transfer's.
        let timeouts = transfer.timeouts
        material.appendCounted(
            "\(timeouts.connect) \(timeouts.idle) \(timeouts.total) \(timeouts.lowSpeedBytes) \(timeouts.lowSpeedTime)")
        material.appendCounted(request.redirectPolicy?.words ?? "")
        material.appendCounted(request.retryPolicy?.words ?? "")
        return FlightKey(type: ObjectIdentifier(R.self), material: material)
    }

    /// Waits for a transfer that others may wait for, too, and no longer than until the run's own deadline.
    func share<R: Request>(
        _ request: R, _ key: FlightKey, _ itinerary: Itinerary, _ journey: Journey
    ) async -> Answer {
        let (flight, number, isNew) = flights.board(key) { Flight(Journey(tag: nil, of: self)) }
        if isNew { launch(flight, key, request, itinerary.shared) }
        let answer: Answer? = await journey.wait(until: itinerary.end) { done in flight.wait(number, done) }
        if let answer { return answer }
        flights.leave(flight, key, number)
        return .refused(journey.overdue(url: itinerary.url).aboard)
    }

    /// In a task of its own, as it outlives whoever began it.
    private func launch<R: Request>(
        _ flight: Flight, _ key: FlightKey, _ request: R, _ itinerary: Itinerary
    ) {
        // It carries a run that was let in, and so needs not be let in itself.
        enter(flight.journey)
        Task {
            let answer = await fetchAlone(request, itinerary, flight.journey)
            leave(flight.journey)
            flights.land(flight, key, answer)
        }
    }
}

extension Itinerary {
    /// For a transfer that is nobody's own: those who wait for it have their deadlines, it has none.
    fileprivate var shared: Itinerary {
        var shared = self
        (shared.watch, shared.tag, shared.meter) = (nil, nil, nil)
        (shared.deadline, shared.start, shared.groupDeadline) = (nil, nil, nil)
        return shared
    }
}

extension RequestError {
    /// Of a run that leaves a transfer, which goes on: how far that has come is not known here.
    fileprivate var aboard: RequestError {
        var facts = facts
        facts.phase = .waitingHead
        facts.mayHaveBeenProcessed = true
        return RequestError(facts)
    }
}

extension RedirectPolicy {
    /// All of it but the rule.
    fileprivate var words: String {
        "\(limit ?? -1) \(allowsDowngrade) \(sensitiveHeaders) \(keepsMethodOn301And302)"
    }
}

extension RetryPolicy {
    /// All of it but the rule.
    fileprivate var words: String {
        """
        \(attempts) \(base) \(factor) \(cap) \(jitter) \(statuses.sorted()) \(faults) \(retriesNonIdempotent) \
        \(retryAfterCap)
        """
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ digest: CacheDigest) {
        append(1)
        digest.withBytes { append(contentsOf: $0) }
    }
}
