import FerryCache
import FerryTransport

/// The first stage of the pipeline: finds a stored response for a run, and stores the run's response.
///
/// A run without a plan, or whose mode bypasses the cache, goes to the next stage.
struct CacheStage: Sendable {
    /// What follows a response that has become a reply, or could not.
    enum Next {
        /// It ends the run.
        case end
        /// A hit did not pass validation: use the network.
        case again
        /// It ends the run as soon as it is on disk.
        case write(KeptResponse)
    }

    /// The result of a cache lookup.
    enum Found {
        case verdict(ResponseCache.Verdict, isInMemory: Bool)
        /// The run was ended in the meantime, or the deadline has passed.
        case brokenOff

        var verdict: ResponseCache.Verdict? { if case .verdict(let verdict, _) = self { verdict } else { nil } }
    }

    let core: AgentCore
    /// The URL of the request; for a request that cannot be sent, the one in the error.
    let url: String
    /// `nil` if the request is not cached with a time to live.
    let plan: CachePlan?
    /// `nil` if the request is not cached by RFC 9111. If it is, this stage only looks into memory; the exchange does
    /// the rest for each of its transfers.
    let http: HTTPCachePlan?
    private(set) var mode: CacheMode
    /// What was read of the request for its key: the transfer is made of it. `nil` for a request that cannot be sent.
    let reading: RequestReading?
    /// What the policy says about responses, also if there is no plan.
    private let (owner, writing): (CacheDigest, CachePolicy.Writing)
    /// Ends at the latest with this stage.
    var lease: CacheLease?
    /// Read before the request was sent, also by the run whose transfer this one shares.
    private var sending: ResponseCache.Sending?

    init(
        _ plan: CachePlan?, _ mode: CacheMode, url: String, _ reading: RequestReading? = nil,
        of policy: CachePolicy = .none, by core: AgentCore
    ) {
        (self.plan, self.mode, self.url, self.reading, self.core) = (plan, mode, url, reading, core)
        http = nil
        if case .http(let terms) = policy.kind {
            (owner, writing) = (terms.sensitiveData, terms.writing)
        } else {
            (owner, writing) = (policy.terms?.sensitiveData ?? .none, policy.terms?.writing ?? .asynchronous)
        }
    }

    /// A stage for a cache by RFC 9111.
    init(_ http: HTTPCachePlan, url: String, by core: AgentCore) {
        (plan, mode, self.url, self.core, self.http) = (nil, http.mode, url, core, http)
        reading = http.target.reading
        (owner, writing) = (http.terms.sensitiveData, http.terms.writing)
    }

    /// The stage of a run that does not accept the stored response.
    var afterRejection: CacheStage {
        var stage = self
        stage.mode = .reload
        return stage
    }

    /// The stage of a request.
    static func of<R: Request>(
        _ request: R, _ mode: CacheMode, at servers: Servers, by core: AgentCore
    ) throws(RequestError) -> CacheStage {
        let policy = core.cachePolicy(of: request)
        if let terms = policy.http, let cache = core.cache {
            let target = try core.httpTarget(of: request, terms, at: servers, in: cache)
            return CacheStage(HTTPCachePlan(terms, mode, target), url: target.url, by: core)
        }
        let target = try core.builder.cacheTarget(request, at: servers)
        let plan = CachePlan(policy, target, in: core.cache)
        return CacheStage(plan, mode, url: target.url, target.reading, of: policy, by: core)
    }

    /// The request with the values that its key was made of, whatever the application has changed since.
    func snapshot<R: Request>(
        of request: R, at servers: Servers
    ) -> Result<RequestSnapshot, RequestError> {
        Result { () throws(RequestError) in
            try core.builder.snapshot(of: request, at: servers, after: reading)
        }
    }

    // MARK: Before the network

    /// A fresh response from memory, if the mode permits it.
    func recall<R: Request>(for request: R) -> Answer? {
        var isAbsent = false
        return recall(for: request, isAbsent: &isAbsent)
    }

    /// The same. `isAbsent` becomes `true` if memory has nothing at all.
    func recall<R: Request>(for request: R, isAbsent: inout Bool) -> Answer? {
        if let http { return HTTPCacheStage.recall(request, http, by: core) }
        guard mode.reads, let plan, let cache = core.cache else { return nil }
        guard let stored = cache.recall(plan.key) else {
            isAbsent = true
            return nil
        }
        let now = cache.clock()
        guard case .fresh(_, let trace) = verdict(on: stored, plan, of: request, now: now) else { return nil }
        cache.counters.hit(fromMemory: true, isStale: false)
        cache.used(stored, under: plan.key, now: now)
        return Answer(stored, trace, plan)
    }

    /// Looks into memory and on the disk. Memory is skipped if `isAbsent`, because it was just searched.
    func find<R: Request>(
        for request: R, _ plan: CachePlan, _ control: RunControl, until deadline: ContinuousClock.Instant?,
        isAbsent: Bool = false
    ) async -> Found {
        guard let cache = core.cache else { return .verdict(.miss(.notConfigured), isInMemory: false) }
        var remembered: ResponseCache.Verdict?
        var rememberedStored = CacheTime.min
        if !isAbsent, let stored = cache.recall(plan.key) {
            let found = verdict(on: stored, plan, of: request, now: cache.clock())
            if case .fresh = found { return .verdict(counted(found, fromMemory: true), isInMemory: true) }
            // Another process may have stored a newer one on the disk.
            remembered = found
            rememberedStored = stored.marks.stored
        }
        let loaded = await control.wait(until: deadline) { done in
            cache.load(plan.key) { done((stored: $0, miss: $1)) }
        }
        guard let loaded else { return .brokenOff }
        // A response that is still to be written, or cannot be written, is in memory only. So is one that is newer than
        // the disk's.
        guard let stored = loaded.stored, stored.marks.stored >= rememberedStored else {
            return .verdict(remembered ?? .miss(loaded.miss), isInMemory: remembered != nil)
        }
        let now = cache.clock()
        cache.used(stored, under: plan.key, now: now)
        return .verdict(
            counted(verdict(on: stored, plan, of: request, now: now), fromMemory: false), isInMemory: false)
    }

    private func counted(_ verdict: ResponseCache.Verdict, fromMemory: Bool) -> ResponseCache.Verdict {
        if case .fresh = verdict { core.cache?.counters.hit(fromMemory: fromMemory, isStale: false) }
        return verdict
    }

    /// The first of the two responses of a run that receives the stored response and then that of the network. `nil` if
    /// no stored response is fresh.
    func first(_ call: Call, _ control: RunControl) async -> Answer? {
        if let http { return await HTTPCacheStage.first(call, http, control, by: core) }
        guard let plan else { return nil }
        switch await find(for: call.request, plan, control, until: call.end).verdict {
        case .fresh(let stored, let trace)?: return Answer(stored, trace, plan)
        case .stale?: core.cache?.counters.missed(.expired)
        case .miss(let reason)?: core.cache?.counters.missed(reason)
        case nil: break
        }
        return nil
    }

    /// The response of a run: from the cache or the network, or an error. `found` is the result of an earlier lookup.
    mutating func answer(_ call: Call, _ control: RunControl, after found: Found? = nil) async -> Answer {
        core.enter(control)
        if control.end != nil { return .refused(control.error(url: call.url)) }
        if http != nil { return await fetch(call, control) }
        var miss = plan == nil ? CacheMiss.notConfigured : .reload
        var past: (answer: Answer, time: Int64, isInMemory: Bool)?
        if let plan, mode.reads {
            var found = found
            if found == nil { found = await find(for: call.request, plan, control, until: call.end) }
            switch found {
            case .verdict(.fresh(let stored, let trace), _): return Answer(stored, trace, plan)
            case .verdict(.stale(let stored, let time, let trace), let isInMemory):
                (miss, past) = (.expired, (Answer(stored, trace, plan), time, isInMemory))
            case .verdict(.miss(let reason), _): miss = reason
            case .brokenOff, nil: return .refused(control.overdue(url: call.url))
            }
        }
        if let past, past.time <= mode.staleWhileRevalidate, mode.asksNetwork, let plan {
            revalidate(call.request, plan)
            core.cache?.counters.hit(fromMemory: past.isInMemory, isStale: true)
            return past.answer
        }
        // A refresh must not wait for a run that may wait for its token.
        if let plan, core.cache?.leaseTime != nil, mode.way == .cacheElseNetwork, !control.isRefresh {
            if let answer = await answerOfOther(call, plan, control) { return answer }
        }
        if plan != nil { core.cache?.counters.missed(miss) }
        if !mode.asksNetwork { return .refused(.notCached(miss, url: call.url)) }
        if plan != nil { sending = core.cache.map { ResponseCache.Sending($0) } }
        // The user may log out while the transfer is active.
        let (hadCookies, cookieAdditions) = (plan != nil && core.hasCookies, core.cookieAdditions)
        let fetched = await fetch(call, control)
        let standIn = past.flatMap { $0.time <= mode.staleIfError && fetched.isServersFault ? $0 : nil }
        if !fetched.isArrival || standIn != nil { lease = nil }
        if let past = standIn {
            core.cache?.counters.hit(fromMemory: past.isInMemory, isStale: true)
            return past.answer.after(fetched)
        }
        if plan == nil { return fetched }
        let hasUnknownCredentials = hadCookies || core.cookieAdditions != cookieAdditions
        return fetched.traced(miss, url: call.url, hasUnknownCredentials: hasUnknownCredentials, call.watch)
    }

    private mutating func fetch(_ call: Call, _ control: RunControl) async -> Answer {
        var call = call
        if let http { call.http = http.mode == mode ? http : HTTPCachePlan(http.terms, mode, http.target) }
        let sharing = SharingStage(core: core, owner: owner, writing: writing)
        return await sharing.answer(call, control, storedUnder: plan?.key, since: &sending)
    }

    /// Refreshes an entry in a run of its own, unless such a run is already active.
    private func revalidate<R: Request>(_ request: R, _ plan: CachePlan) {
        let target = VariantKey(key: plan.key)
        guard let cache = core.cache, cache.beginsRevalidating(target) else { return }
        RequestRun<R>.start(
            request, on: core.processingQueue, .closure { _ in cache.endRevalidating(target) }, mode: .reload, by: core)
    }

    // MARK: After the network

    /// Decides what follows a response. `response` is `nil` if it could not become a reply.
    mutating func next<R: Request>(after answer: Answer, _ response: Response?, of request: R) -> Next {
        guard let response else {
            lease = nil
            guard answer.isHit, mode.asksNetwork else { return .end }
            // An entry that no longer passes the request's validation is removed.
            if let plan {
                core.cache?.counters.missed(.invalid)
                core.cache?.remove(plan.key)
            } else if http != nil {
                // A status that the request does not accept is what the server said, and remains stored.
                guard case .arrived(let result, _) = answer, (200..<300).contains(result.status) else { return .end }
                core.cache?.counters.missed(.invalid)
            }
            mode = .reload
            return .again
        }
        guard let plan, !answer.isHit else { return .end }
        let attempts = EarlierAttempts(answer)
        sending?.wasRetried = attempts.count - attempts.redirects > 1
        guard let kept = kept(response, of: request, plan) else {
            lease = nil
            return .end
        }
        if plan.writing == .synchronous { return .write(kept) }
        core.cache?.keep(kept, under: plan.key, since: sending)
        lease = nil
        return .end
    }

    /// Waits until the response is on disk, but not after a cancel or the deadline, because the response has already
    /// arrived.
    mutating func write(_ kept: KeptResponse, _ control: RunControl, until deadline: ContinuousClock.Instant?) async {
        guard let cache = core.cache, let plan else { return }
        let _: Bool? = await control.wait(until: deadline) { [lease, sending] done in
            cache.keep(kept, under: plan.key, since: sending, done)
            // The storage carries both out in this order.
            lease?.end()
        }
        lease = nil
    }
}

extension Answer {
    init(_ stored: StoredResponse, _ trace: CacheTrace, _ plan: CachePlan) {
        self = .arrived(
            stored.result,
            ResponseOrigin(
                url: stored.attributes.url ?? plan.url, isIntercepted: true, isFromCache: true, cache: trace))
    }

    /// The same response, which stands in for one that had failed. The run has made the attempts of both.
    fileprivate func after(_ failed: Answer) -> Answer {
        guard case .arrived(let result, let origin) = self else { return self }
        return .arrived(
            result,
            ResponseOrigin(
                url: origin.url, earlier: EarlierAttempts(failed), isIntercepted: true, isFromCache: true,
                cache: origin.cache))
    }

    /// Whether the response comes from the cache.
    var isHit: Bool { if case .arrived(_, let origin) = self { origin.cache?.isHit == true } else { false } }

    /// Whether there is a response, with any status.
    fileprivate var isArrival: Bool {
        switch self {
        case .result(let result), .arrived(let result, _): result.failure == nil
        case .refused, .unsent: false
        }
    }

    /// Whether this is a failure of the network or of the server, which an older response may replace (RFC 5861, 4).
    var isServersFault: Bool {
        switch self {
        case .result(let result), .arrived(let result, _):
            if let failure = result.failure { return failure.code != .cancelled && failure.code != .shutdown }
            return [500, 502, 503, 504].contains(result.status)
        case .refused(let error):
            return error.phase != .preparing && error.code != .cancelled && error.code != .shutdown
        case .unsent: return false
        }
    }

    /// The same result with the trace of the cache lookup.
    fileprivate func traced(
        _ miss: CacheMiss, url: String, hasUnknownCredentials: Bool, _ watch: RunWatch?
    ) -> Answer {
        let trace = CacheTrace(outcome: .miss(miss))
        switch self {
        case .result(let result):
            watch?.received(result)
            return .arrived(
                result, ResponseOrigin(url: url, cache: trace, hasUnknownCredentials: hasUnknownCredentials))
        case .arrived(let result, let origin):
            return .arrived(result, origin.traced(trace, hasUnknownCredentials: hasUnknownCredentials))
        case .refused, .unsent: return self
        }
    }
}

extension ResponseOrigin {
    fileprivate func traced(_ trace: CacheTrace, hasUnknownCredentials: Bool) -> ResponseOrigin {
        ResponseOrigin(
            url: url, redirects: redirects, earlier: earlier, isIntercepted: isIntercepted, isFromCache: isFromCache,
            cache: trace, hasUnknownCredentials: self.hasUnknownCredentials || hasUnknownCredentials, added: added,
            start: start)
    }
}
