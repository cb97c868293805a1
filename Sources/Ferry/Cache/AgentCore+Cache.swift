import FerryCache
import FerryTransport

extension AgentCore {
    /// A fresh answer from memory, if the mode lets it be used.
    func recall<R: Request>(_ plan: CachePlan, of request: R) -> (stored: StoredResponse, answer: Answer)? {
        guard plan.mode.reads, let cache, let stored = cache.recall(plan.key) else { return nil }
        let now = cache.clock()
        guard case .fresh(_, let trace) = verdict(on: stored, plan, of: request, now: now) else { return nil }
        cache.counters.hit(fromMemory: true, isStale: false)
        cache.used(stored, under: plan.key, now: now)
        return (stored, Self.answer(stored, trace, plan))
    }

    static func answer(_ stored: StoredResponse, _ trace: CacheTrace, _ plan: CachePlan) -> Answer {
        .arrived(
            stored.result,
            Trail(url: stored.attributes.url ?? plan.url, isIntercepted: true, isFromCache: true, cache: trace))
    }

    /// What the cache has, in memory or on the disk. `nil` when the journey was ended meanwhile, or the deadline has
    /// passed.
    func lookUp<R: Request>(
        _ plan: CachePlan, of request: R, _ journey: Journey, until deadline: ContinuousClock.Instant?
    ) async -> ResponseCache.Verdict? {
        await find(plan, of: request, journey, until: deadline)?.verdict
    }

    /// Likewise, and whether it was in memory.
    private func find<R: Request>(
        _ plan: CachePlan, of request: R, _ journey: Journey, until deadline: ContinuousClock.Instant?
    ) async -> (verdict: ResponseCache.Verdict, isInMemory: Bool)? {
        guard let cache else { return (.miss(.notConfigured), false) }
        var remembered: ResponseCache.Verdict?
        var rememberedStored = CacheTime.min
        if let stored = cache.recall(plan.key) {
            let found = verdict(on: stored, plan, of: request, now: cache.clock())
            if case .fresh = found { return (counted(found, fromMemory: true), true) }
            // Another process may have a newer one on the disk.
            remembered = found
            rememberedStored = stored.marks.stored
        }
        let loaded = await journey.wait(until: deadline) { done in
            cache.load(plan.key) { done((stored: $0, miss: $1)) }
        }
        guard let loaded else { return nil }
        // What is still to be written, or cannot be, is in memory only.
        // So is what is newer than the disk's.
        guard let stored = loaded.stored, stored.marks.stored >= rememberedStored else {
            return (remembered ?? .miss(loaded.miss), remembered != nil)
        }
        let now = cache.clock()
        cache.used(stored, under: plan.key, now: now)
        return (counted(verdict(on: stored, plan, of: request, now: now), fromMemory: false), false)
    }

    private func counted(_ verdict: ResponseCache.Verdict, fromMemory: Bool) -> ResponseCache.Verdict {
        if case .fresh = verdict { cache?.counters.hit(fromMemory: fromMemory, isStale: false) }
        return verdict
    }

    /// The answer of a run that has a plan, shares its transfer, or both: from the cache, the network, or none.
    func answer<R: Request>(
        _ request: R, _ plan: CachePlan?, mode: CacheMode, at servers: Servers, _ itinerary: Itinerary,
        _ journey: Journey
    ) async -> Answer {
        if journey.end != nil { return .refused(journey.error(url: itinerary.url)) }
        var miss = plan == nil ? CacheMiss.notConfigured : .reload
        var past: (answer: Answer, time: Int64, isInMemory: Bool)?
        if let plan, mode.reads {
            guard let found = await find(plan, of: request, journey, until: itinerary.end) else {
                return .refused(journey.overdue(url: itinerary.url))
            }
            switch found.verdict {
            case .fresh(let stored, let trace): return Self.answer(stored, trace, plan)
            case .stale(let stored, let time, let trace):
                (miss, past) = (.expired, (Self.answer(stored, trace, plan), time, found.isInMemory))
            case .miss(let reason): miss = reason
            }
        }
        if let past, past.time <= mode.staleWhileRevalidate, mode.asksNetwork, let plan {
            revalidate(request, plan)
            cache?.counters.hit(fromMemory: past.isInMemory, isStale: true)
            return past.answer
        }
        if plan != nil { cache?.counters.missed(miss) }
        if !mode.asksNetwork {
            return .refused(.notCached(miss, url: itinerary.url))
        }
        // Somebody may log out while it is under way.
        let hadCookies = plan != nil && hasCookies
        let fetched = await fetch(request, at: servers, itinerary, journey)
        if let past, past.time <= mode.staleIfError, fetched.isServersFault {
            cache?.counters.hit(fromMemory: past.isInMemory, isStale: true)
            return past.answer
        }
        if plan == nil { return fetched }
        return fetched.traced(miss, url: itinerary.url, hasUnknownCredentials: hadCookies, itinerary.watch)
    }

    /// Fetches an entry anew, in a run of its own, unless that is under way.
    private func revalidate<R: Request>(_ request: R, _ plan: CachePlan) {
        guard let cache, cache.beginsRevalidating(plan.key) else { return }
        NetworkAgent(self).start(request, cache: .reload, on: processingQueue) { _ in
            cache.endRevalidating(plan.key)
        }
    }

    /// Over the network: alone, or with others who want the same.
    private func fetch<R: Request>(
        _ request: R, at servers: Servers, _ itinerary: Itinerary, _ journey: Journey
    ) async -> Answer {
        enter(journey)
        var itinerary = itinerary
        if itinerary.snapshot == nil {
            itinerary.snapshot = Result { () throws(RequestError) in try builder.snapshot(of: request, at: servers) }
        }
        // Whose body is counted, sends it.
        let mayShare = request.coalesces && itinerary.meter == nil
        if mayShare, let key = flightKey(of: request, itinerary, journey) {
            return await share(request, key, itinerary, journey)
        }
        return await fetchAlone(request, itinerary, journey)
    }

    /// As a run without a cache goes: one plain transfer, and a journey only when it takes more. Who calls it lets the
    /// journey go in the end.
    func fetchAlone<R: Request>(_ request: R, _ itinerary: Itinerary, _ journey: Journey) async -> Answer {
        if travelsFirst(request) || journey.group != nil { return await travel(itinerary, journey, after: .unsent) }
        var built: BuiltRequest
        do throws(RequestError) {
            built = try itinerary.read().open()
        } catch {
            return .refused(error)
        }
        built.meter = itinerary.meter
        // A transfer that is shared has none. Of any other, what went before the transfer counts.
        built.transfer.timeouts.deadline = 0
        if let end = itinerary.end {
            let remaining = ContinuousClock.now.duration(to: end)
            if remaining <= .zero { return .refused(.deadlinePassed(url: itinerary.url)) }
            built.transfer.timeouts.deadline = milliseconds(remaining)
        }
        itinerary.watch?.sends(built)
        if builder.mayRetry(request) { payForRetries(itinerary.url) }
        let answer = await journey.carry(built, by: self)
        if isSettled(answer, of: request) { return answer }
        return await travel(itinerary, journey, after: answer)
    }

    /// An entry that does not pass the request's checks any more goes.
    func drop(_ plan: CachePlan) {
        cache?.counters.missed(.invalid)
        cache?.remove(plan.key)
    }
}

extension Answer {
    /// Whether it comes from the cache.
    var isHit: Bool { if case .arrived(_, let trail) = self { trail.cache?.isHit == true } else { false } }

    /// A failure that an older answer may stand in for: the network's, or the server's own (RFC 5861, 4).
    fileprivate var isServersFault: Bool {
        switch self {
        case .result(let result), .arrived(let result, _):
            if let failure = result.failure { return failure.code != .cancelled && failure.code != .shutdown }
            return [500, 502, 503, 504].contains(result.status)
        case .refused(let error):
            return error.phase != .preparing && error.code != .cancelled && error.code != .shutdown
        case .unsent: return false
        }
    }

    /// The same, of a run that had looked into the cache.
    fileprivate func traced(
        _ miss: CacheMiss, url: String, hasUnknownCredentials: Bool, _ watch: RunWatch?
    ) -> Answer {
        let trace = CacheTrace(outcome: .miss(miss))
        switch self {
        case .result(let result):
            watch?.received(result)
            return .arrived(result, Trail(url: url, cache: trace, hasUnknownCredentials: hasUnknownCredentials))
        case .arrived(let result, let trail):
            return .arrived(result, trail.traced(trace, hasUnknownCredentials: hasUnknownCredentials))
        case .refused, .unsent: return self
        }
    }
}

extension Trail {
    fileprivate func traced(_ trace: CacheTrace, hasUnknownCredentials: Bool) -> Trail {
        Trail(
            url: url, redirects: redirects, earlier: earlier, isIntercepted: isIntercepted, isFromCache: isFromCache,
            cache: trace, hasUnknownCredentials: self.hasUnknownCredentials || hasUnknownCredentials, added: added,
            start: start)
    }
}
