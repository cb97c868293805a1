import FerryCache
import FerrySynchronization
import FerryTransport

/// Validates a response in memory with one plain transfer. This is the fast path for an awaited run whose request
/// nobody changes before it is sent. If the server responds with a 304 that changes only dates, the validation costs
/// little more than the transfer. Any other response is processed by a normal exchange.
struct PlainValidation: Sendable {
    let plan: HTTPCachePlan
    let key: CacheKey
    let stored: StoredVariants
    /// The variant that the request selects.
    let selected: Int
    let forward: CacheStatus.Forward
    let requestTime: CacheTime
    /// `ResponseCache.removals(of:)` at the lookup.
    let removals: UInt64
    /// The number of the request in `ResponseCache.recentStores`.
    let mark: UInt64
    /// The numbers of invalidations before the request was sent.
    let invalidationMark: ResponseCache.InvalidationMark
    /// `AgentCore.cookieAdditions` before the request was sent.
    let cookieAdditions: UInt64
    /// Whether the stored response may be used if the server fails (RFC 5861, 4).
    let standsIn: Bool
    /// While it exists, other runs wait for this validation. `nil` if another run is validating the same response, or
    /// if nobody waits.
    let lead: ValidationTable.Lead?

    // MARK: Before the network

    /// `nil` if there is nothing to validate, or if one plain transfer is not enough.
    static func of<R: Request>(_ request: R, _ plan: HTTPCachePlan, by core: AgentCore) -> PlainValidation? {
        let cookieAdditions = core.cookieAdditions
        guard plan.mode.way == .cacheElseNetwork, !request.coalesces, let cache = core.cache, let key = plan.target.key,
            let reading = plan.target.reading, plan.terms.sensitiveData != .none || !core.hasCookies
        else { return nil }
        let mark = cache.recentStores.next()
        var removals: UInt64 = 0
        guard let stored = cache.recallEntry(key, &removals)?.variants else { return nil }
        let index = stored.index(isHead: false) { names in
            if core.addsCookies(to: names) { return VaryRules.unknown }
            return VaryRules.variance(of: names) { core.builder.sentValue(of: $0, after: reading) }
        }
        guard let index else { return nil }
        let variant = stored.all[index]
        let directives =
            plan.target.hasDirectives
            ? RequestCacheControl(cacheControl: plan.target.cacheControl, pragma: plan.target.pragma)
            : RequestCacheControl()
        let (now, isShared) = (cache.clock(), plan.terms.isShared)
        // What a server says to one user changes nothing for the others (RFC 9111, 3.5).
        if isShared && !variant.directives.permitsSharing {
            let own = core.builder.sentValue(of: "Authorization", after: reading)
            if own != nil || reading.joined.credentials != nil { return nil }
        }
        let facts = ReuseRules.Stored(
            age: variant.age(at: now), lifetime: variant.lifetime.microseconds, directives: variant.directives)
        let allowance = ReuseRules.Allowance(
            staleIfError: plan.mode.staleIfError, staleWhileRevalidate: plan.mode.staleWhileRevalidate)
        let verdict = ReuseRules.verdict(on: facts, directives, allowance, isShared: isShared)
        guard case .validate(let standsIn) = verdict, !directives.noStore, !directives.onlyIfCached else { return nil }
        if !stored.hasConditions(selecting: index) { return nil }
        let servesOthers = facts.servesOthersOnceValidated(directives, allowance, isShared: isShared)
        // Another process may have stored a newer one. An exchange looks for it before it asks the server.
        if standsIn && servesOthers && cache.isShared && !stored.isCompared { return nil }
        // Nobody waits for a response that has to be validated for each run.
        let mayServe = !variant.directives.noCache && variant.lifetime.microseconds > 0
        let lead = mayServe ? cache.validations.lead(VariantKey(key: key, variance: variant.variance)) : nil
        if servesOthers && mayServe {
            // Another run is validating it, and an exchange can wait for that run. A plain transfer cannot.
            if lead == nil { return nil }
            // Another run has validated it since the lookup.
            if let current = cache.recallEntry(key), current !== stored { return nil }
        }
        let isFresh = variant.age(at: now).map { $0 < variant.lifetime.microseconds } ?? false
        cache.counters.missed(.expired)
        return PlainValidation(
            plan: plan, key: key, stored: stored, selected: index,
            forward: isFresh && !variant.directives.noCache ? .request : .stale, requestTime: now, removals: removals,
            mark: mark, invalidationMark: cache.invalidationMark, cookieAdditions: cookieAdditions,
            standsIn: standsIn, lead: lead)
    }

    /// Starts the transfer. `nil` if the request cannot be built.
    func start<R: Request>(
        _ request: R, at servers: Servers, isCancelled: Bool, _ watch: RunWatch?, by core: AgentCore
    ) -> AwaitedRun? {
        guard var built = try? core.builder.build(request, at: servers, after: plan.target.reading) else { return nil }
        // Whatever else the run needs later is made again from what was read, except a key that was generated, and the
        // request's own settings.
        let run = AwaitedRun(
            url: built.transfer.url, tag: request.tag, watch: watch, servers: servers,
            snapshot: plan.target.reading?.idempotencyKey == nil && built.settings == nil
                ? nil : RequestSnapshot(built))
        if isCancelled {
            core.refuse(run, .cancelled(nil, url: run.url))
            return run
        }
        built.transfer.headers.append(stored.conditions(selecting: selected))
        built.beginSpan(of: watch)
        built.inform(watch)
        built.transfer.passesLimits = core.tokens != nil && core.isRefreshing
        core.start(run, built, mayBeRetried: core.builder.mayRetry(built.settings))
        return run
    }

    // MARK: After the network

    /// The answer of the run if the server has confirmed the stored response and changed only its dates (RFC 9111,
    /// 4.3.3 and 4.3.4). `nil` for every other answer.
    func renewed(by answer: Answer, _ core: AgentCore) -> Answer? {
        guard case .result(let result) = answer, result.status == 304, result.succeeded, let cache = core.cache
        else { return nil }
        let (old, isShared) = (stored.all[selected], plan.terms.isShared)
        // Others are followed or retried by an exchange.
        guard old.result.status < 300, old.isRenewable, !old.directives.noStore,
            plan.terms.sensitiveData != .none || core.cookieAdditions == cookieAdditions && !core.hasCookies,
            !core.addsCookies(to: old.varying), let renewal = old.renewal(by: result),
            stored.all.count == 1 || speaksOfSelected(result)
        else { return nil }
        let now = cache.clock()
        let apparent = max(0, now / Freshness.second - renewal.date.secondsSince1970) * Freshness.second
        let times = StoredVariant.Times(
            request: requestTime, response: now, initialAge: max(apparent, max(0, now - requestTime)))
        if cache.isInvalidated(key, since: invalidationMark) { return nil }
        var (new, isStored) = (nil as StoredVariant?, false)
        if stored.all.count > 1 || !Self.isConfirmed(old, renewal, times) {
            guard let made = StoredVariant(old, renewal, times, isShared: isShared) else { return nil }
            let isWritten = old.isWorthWriting(as: made, by: [])
            // The run has to wait for the disk, which only an exchange can do.
            if isWritten && plan.terms.writing == .synchronous { return nil }
            isStored = store(made, isWritten: isWritten, isShared: isShared, in: cache)
            new = made
        } else {
            isStored = cache.removals(of: key) == removals
        }
        lead?.end()
        cache.counters.validated()
        var trace = CacheTrace(outcome: .validated(age: .microseconds(times.initialAge)))
        (trace.isHTTP, trace.forward, trace.isStored) = (true, forward, isStored)
        trace.remaining = (new ?? old).lifetime.microseconds - times.initialAge
        let origin = ResponseOrigin(
            url: plan.target.url, cache: trace, hasUnknownCredentials: core.hasCookies, validation: result)
        return .arrived((new ?? old).result, origin)
    }

    /// Whether a 304 would only move the age of the stored response by less than a second. Then the stored response
    /// stays as it is: its age is at most that much too high. Of many validations within a second, one is stored.
    private static func isConfirmed(_ old: StoredVariant, _ renewal: Renewal, _ times: StoredVariant.Times) -> Bool {
        guard renewal.changes.isEmpty, let age = old.age(at: times.response) else { return false }
        return (0..<Freshness.second).contains(age - times.initialAge)
    }

    /// Puts the renewed response in the place of the one that the server has confirmed. Returns `false` if it was
    /// removed or replaced meanwhile.
    private func store(_ new: StoredVariant, isWritten: Bool, isShared: Bool, in cache: ResponseCache) -> Bool {
        cache.changing.withLock { _ in
            let isUnchanged =
                cache.removals(of: key) == removals && !cache.recentStores.isNoted(key, since: mark)
            let current = cache.recallEntry(key)?.variants ?? (isUnchanged ? stored : nil)
            let old = stored.all[selected]
            // One with another `Vary` may serve the request.
            func serves(_ one: StoredVariant) -> Bool { one.varying != old.varying || one.variance == old.variance }
            // The response to a later HEAD says more about it (RFC 9111, 4.3.5).
            let isOvertaken = current?.all.contains { one in
                one.isHead && serves(one)
                    && (one.times.request > requestTime && one.times.response <= new.times.response
                        || cache.recentStores.isNewer(one, under: key, than: mark))
            }
            if isOvertaken ?? false { return false }
            let variants = current?.all.replacing([old], by: [new], since: requestTime, serves: serves)
            guard let variants else { return false }
            let made = StoredVariants(variants, stored: new.times.response, maxBytes: cache.maxEntryBytes)
            cache.keep(made, under: key, isWritten ? made.entry(isShared: isShared) : nil)
            cache.recentStores.note(new, under: key, sent: mark)
            return true
        }
    }

    private func speaksOfSelected(_ response: TransferResult) -> Bool {
        let which = ValidationRules.freshened(
            by: Validators(Headers(response)), selected: selected, chosen: selected, stored.all.map(\.validators))
        return which == [selected]
    }
}

extension StoredVariants {
    /// Whether a GET that selects this variant has conditions.
    func hasConditions(selecting index: Int) -> Bool {
        all.count == 1 ? all[index].hasConditions : !conditions(selecting: index).bytes.isEmpty
    }

    /// The conditions with which a GET that selects this variant asks for a validation (RFC 9111, 4.3.1).
    func conditions(selecting index: Int) -> HeaderBlock {
        if all.count == 1 { return all[index].conditions }
        // A stored response to HEAD cannot serve a GET.
        let others = all.filter { !$0.isHead }.map(\.validators)
        return HeaderBlock(ValidationRules.conditions(selected: all[index].validators, all: others))
    }
}

// MARK: Hits for plain requests

extension HTTPCacheStage {
    /// A fresh response from memory for a request that nothing changes before it is sent. `nil` if more is needed to
    /// decide.
    static func recall<R: Request>(
        _ request: R, _ plan: HTTPCachePlan, by core: AgentCore
    ) -> Answer? {
        let target = plan.target
        guard plan.mode.way == .cacheElseNetwork || plan.mode.way == .cacheOnly, let cache = core.cache,
            let key = target.key, !target.hasDirectives, plan.terms.sensitiveData != .none || !core.hasCookies,
            let stored = cache.recallEntry(key)?.variants
        else { return nil }
        let now = cache.clock()
        guard let answer = hit(on: stored, of: request, target, now: now, by: core) else { return nil }
        cache.counters.hit(fromMemory: true, isStale: false)
        cache.used(stored, under: key, now: now)
        return answer
    }

    /// The first of the two responses of a run that receives the stored response and then that of the network. `nil` if
    /// none is fresh.
    static func first(
        _ call: Call, _ plan: HTTPCachePlan, _ control: RunControl, by core: AgentCore
    ) async -> Answer? {
        let target = plan.target
        guard let cache = core.cache, plan.terms.sensitiveData != .none || !core.hasCookies else { return nil }
        guard let key = target.key, !target.hasDirectives else {
            // Adapters, the authenticator or its own fields decide which response serves the request. Adapters run for
            // each of the two; an interceptor may answer both.
            guard let transfer = try? call.snapshot?.get().transfer, ["GET", "HEAD"].contains(transfer.method),
                transfer.body.isNone, core.configuration.interceptors.isEmpty
            else { return nil }
            var asking = call.ofPart
            asking.http = HTTPCachePlan(plan.terms, .cacheOnly, target)
            let found = await Exchange.answer(asking, control, by: core)
            guard case .arrived(let result, let origin) = found, origin.cache?.isHit == true,
                origin.cache?.isStale == false
            else { return nil }
            return result.status < 300 ? found : nil
        }
        guard let stored = await find(key, in: cache, control, until: call.end) else { return nil }
        return hit(on: stored, of: call.request, target, now: cache.clock(), by: core)
    }

    /// The variants stored under a key, in memory or in the store.
    static func find(
        _ key: CacheKey, in cache: ResponseCache, _ control: RunControl, until deadline: ContinuousClock.Instant?
    ) async -> StoredVariants? {
        if let stored = cache.recallEntry(key)?.variants { return stored }
        let loaded: StoredEntry?? = await control.wait(until: deadline) { done in
            cache.loadEntry(key) { entry, _ in done(entry) }
        }
        return loaded??.variants
    }

    /// The stored response to a request without caching directives; `nil` unless one is fresh and ends its run.
    static func hit<R: Request>(
        on stored: StoredVariants, of request: R, _ target: HTTPCacheTarget, now: CacheTime, by core: AgentCore
    ) -> Answer? {
        let index = stored.index(isHead: false) { names in
            if core.addsCookies(to: names) { return VaryRules.unknown }
            guard let reading = target.reading else { return VaryRules.unknown }
            return VaryRules.variance(of: names) { core.builder.sentValue(of: $0, after: reading) }
        }
        guard let index else { return nil }
        let variant = stored.all[index]
        guard now >= variant.times.response, now < variant.freshUntil, variant.result.status < 300 else { return nil }
        let age = variant.times.initialAge + (now - variant.times.response)
        var trace = CacheTrace(outcome: .hit(age: .microseconds(age), isStale: false))
        trace.remaining = variant.freshUntil - now
        trace.isHTTP = true
        return .arrived(
            variant.result, ResponseOrigin(url: target.url, isIntercepted: true, isFromCache: true, cache: trace))
    }
}
