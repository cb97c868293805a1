import FerryCache
import FerryTransport
import FoundationEssentials

extension AgentCore {
    /// `nil` for a request whose transfer cannot be shared.
    func flightKey<R: Request>(of request: R, at servers: Servers) -> FlightKey? {
        // Both may give each run credentials of its own.
        guard configuration.adapters.isEmpty, configuration.credentialProvider == nil,
            let built = try? builder.build(request, at: servers, opensBody: false)
        else { return nil }
        let transfer = built.transfer
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
        material.appendCounted("\(transfer.maxBodyBytes) \(transfer.publicOnly) \(request.usesAuthenticator)")
        return FlightKey(type: ObjectIdentifier(R.self), material: material)
    }

    /// Waits for a transfer that others may wait for, too.
    func share<R: Request>(
        _ request: R, _ key: FlightKey, at servers: Servers, _ itinerary: Itinerary, _ journey: Journey
    ) async -> Answer {
        let (flight, number, isNew) = flights.board(key) { Flight(Journey(tag: nil, of: self)) }
        if isNew { launch(flight, key, request, at: servers, itinerary.unwatched) }
        if let answer = await journey.wait(for: { flight.wait(number, $0) }) { return answer }
        flights.leave(flight, key, number)
        return .refused(journey.error(url: itinerary.url))
    }

    /// In a task of its own, as it outlives whoever began it.
    private func launch<R: Request>(
        _ flight: Flight, _ key: FlightKey, _ request: R, at servers: Servers, _ itinerary: Itinerary
    ) {
        if let error = admit(flight.journey, url: itinerary.url) { return flights.land(flight, key, .refused(error)) }
        Task {
            let answer = await fetchAlone(request, at: servers, itinerary, flight.journey)
            leave(flight.journey)
            flights.land(flight, key, answer)
        }
    }
}

extension Itinerary {
    /// For a transfer that is nobody's own.
    fileprivate var unwatched: Itinerary {
        Itinerary(
            info: info, watch: nil, url: url, tag: nil, deadline: deadline, groupDeadline: nil,
            redirectPolicy: redirectPolicy,
            retryPolicy: retryPolicy, proxy: proxy, usesAuthenticator: usesAuthenticator, isIdempotent: isIdempotent,
            digest: digest, meter: nil, outgoing: outgoing, build: build)
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ digest: CacheDigest) {
        append(1)
        digest.withBytes { append(contentsOf: $0) }
    }
}
