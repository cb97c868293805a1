import FerryCache
import FerryTransport

/// How a run uses the HTTP cache (RFC 9111). It is on the heap, so that it takes no space in runs without the cache.
final class HTTPCachePlan: Sendable {
    let terms: CachePolicy.HTTPTerms
    let mode: CacheMode
    /// The initial request of the run.
    let target: HTTPCacheTarget

    init(_ terms: CachePolicy.HTTPTerms, _ mode: CacheMode, _ target: HTTPCacheTarget) {
        (self.terms, self.mode, self.target) = (terms, mode, target)
    }
}

/// The HTTP cache (RFC 9111) in one exchange of a run, directly before the network. Each redirect, each retry and each
/// repetition with a new token is looked up by the request that it sends. The rules in `HTTPCaching` decide; this stage
/// reads and writes.
struct HTTPCacheStage: Sendable {
    /// The request that is about to be sent.
    struct Sent: Sendable {
        var method: String
        /// The URL without user, password and fragment.
        var url: String
        /// The header fields, including those that the transport adds itself.
        var fields: Headers
        var hasBody: Bool
        var key: HTTPCacheKey
        /// All that has identified the user, also what the key leaves out because the policy names the owner.
        var secrets: [HTTPCacheKey.Secret] = []
        /// The names of fields that adapters and the authenticator have added. They are unknown until these have run.
        var added: [String] = []
        /// Cookies of the jar were sent with it, or with a request that led to it.
        var hadCookies = false
        /// Whether the run may be started again to refresh the response, because it has sent nothing unsafe.
        var isRepeatable = true
        /// Whether the request is a retry after a response that was not accepted.
        var isRetry = false
    }

    enum Way {
        /// The cache responds.
        case answer(TransferResult, CacheTrace)
        /// The mode forbids using the network.
        case refuse(CacheMiss)
        /// Use the network, with these additional fields.
        case send([Headers.Field])
    }

    enum Received {
        /// `validation` is the server's response if a stored response is delivered.
        case deliver(TransferResult, CacheTrace, validation: TransferResult?)
        /// It refers to a response that is not stored: send the request again, without conditions.
        case again
    }

    let core: AgentCore
    let cache: ResponseCache
    let plan: HTTPCachePlan
    let sent: Sent
    let request: any Request
    let key: CacheKey
    let directives: RequestCacheControl
    /// Whether the owner of the response is unknown before it is sent: nothing is stored or reused.
    let isUnknown: Bool
    /// `AgentCore.cookieAdditions` before the request was sent.
    private let cookieAdditions: UInt64
    var stored: StoredVariants?
    /// `ResponseCache.removals(of:)` before this run looked.
    private(set) var removals: UInt64 = 0
    /// The number of the request in `ResponseCache.recentStores`, and the number when this run looked last.
    private(set) var mark: UInt64 = 0
    var lookMark: UInt64 = 0
    /// The variant that the request selects.
    private(set) var selected: Int?
    private(set) var forward = CacheStatus.Forward.uriMiss
    private(set) var isCollapsed = false
    /// The stored response to use if the server fails.
    var standIn: (result: TransferResult, trace: CacheTrace)?
    private(set) var requestTime: CacheTime = 0
    /// The numbers of invalidations before the request was sent.
    private(set) var invalidationMark = ResponseCache.InvalidationMark()
    /// The conditions in the request are those of the cache.
    private(set) var asksValidation = false
    /// While it exists, other runs wait for this validation.
    var lead: ValidationTable.Lead?
    /// While it exists, other processes wait for the response that this run fetches.
    var lease: CacheLease?

    init(_ core: AgentCore, _ cache: ResponseCache, _ plan: HTTPCachePlan, _ sent: Sent, of request: any Request) {
        (self.core, self.cache, self.plan, self.sent, self.request) = (core, cache, plan, sent, request)
        key = sent.key.key(sent.url)
        directives = RequestCacheControl(sent.fields)
        cookieAdditions = core.cookieAdditions
        isUnknown = (sent.hadCookies || core.hasCookies) && plan.terms.sensitiveData == .none
    }

    var isHead: Bool { sent.method == "HEAD" }
    /// Whether the owner of the response that has arrived is unknown.
    var isOwnerUnknown: Bool {
        if isUnknown { return true }
        return plan.terms.sensitiveData == .none && (core.hasCookies || core.cookieAdditions != cookieAdditions)
    }
    private var isAnswerable: Bool { sent.method == "GET" || isHead }

    /// The request's values of the fields in `Vary`.
    func variance(_ names: [String]) -> CacheDigest {
        if core.addsCookies(to: names) { return VaryRules.unknown }
        return VaryRules.variance(of: names) { sent.fields[$0] }
    }

    // MARK: Before the network

    /// Looks up the stored response and decides what to do. `nil` if the run was ended in the meantime, or its deadline
    /// has passed.
    ///
    /// Without `validates`, the request gets no conditions of the cache, so a 304 goes to the caller.
    mutating func look(
        validates: Bool, _ control: RunControl, until deadline: ContinuousClock.Instant?
    ) async -> Way? {
        requestTime = cache.clock()
        invalidationMark = cache.invalidationMark
        mark = cache.recentStores.next()
        lookMark = mark
        if !isAnswerable || sent.hasBody {
            forward = .method
            if !plan.mode.asksNetwork { return .refuse(CacheMiss(forward)) }
            return directives.onlyIfCached ? onlyIfCached() : .send([])
        }
        if isUnknown || plan.mode.way == .reload {
            forward = .bypass
            if !plan.mode.asksNetwork { return .refuse(.unknownCredentials) }
            return directives.onlyIfCached ? onlyIfCached() : .send([])
        }
        let mayAsk = plan.mode.asksNetwork && !directives.onlyIfCached
        // A refresh must not wait for a run that may wait for the token, or for a place of such runs; and who does not
        // use the network does not wait for that of others.
        var (mayWait, mayLease, mayRepeat) = (!control.isRefresh && mayAsk, !control.isRefresh && mayAsk, true)
        while true {
            standIn = nil
            guard let isInMemory = await find(control, until: deadline) else { return nil }
            let now = cache.clock()
            // A response that another run has asked for and stored during the lookup is the older one.
            (requestTime, mark) = (now, cache.recentStores.next())
            invalidationMark = cache.invalidationMark
            guard let selected, let variant = stored?.all[selected] else {
                if isInMemory {
                    guard let loadsNewer = await loadsNewer(control, until: deadline) else { return nil }
                    if loadsNewer { continue }
                }
                if mayLease, isLeased {
                    mayLease = false
                    switch await waitForOther(control, until: deadline) {
                    case .brokenOff: return nil
                    case .stored: continue
                    case .own:
                        (requestTime, invalidationMark) = (cache.clock(), cache.invalidationMark)
                        mark = cache.recentStores.next()
                    }
                }
                return missed(validates: validates)
            }
            var facts = ReuseRules.Stored(
                age: variant.age(at: now), lifetime: variant.lifetime.microseconds, directives: variant.directives)
            var allowance = allowance
            if !mayRefresh { (allowance.staleWhileRevalidate, facts.staleWhileRevalidate) = (0, 0) }
            var verdict = ReuseRules.verdict(on: facts, directives, allowance, isShared: plan.terms.isShared)
            // Only the server can evaluate these conditions.
            let needsServer =
                plan.mode.way == .revalidate || (sent.isRetry && variant.result.status >= 400)
                || ValidationRules.conditionsOfServer.contains { sent.fields.contains($0) }
            if needsServer { verdict = .validate(standsIn: false) }
            switch verdict {
            case .serve, .serveStale, .serveWhileRevalidating:
                guard let served = served(variant, at: now) else { return missed(.partial, validates: validates) }
                cache.counters.hit(fromMemory: isInMemory, isStale: verdict != .serve)
                if let stored { cache.used(stored, under: key, now: now) }
                if verdict == .serveWhileRevalidating { revalidate(request, of: variant) }
                return .answer(served, trace(of: variant, at: now, isStale: verdict != .serve))
            case .validate(let standsIn):
                if standsIn, let served = served(variant, at: now) {
                    standIn = (served, trace(of: variant, at: now, isStale: true))
                }
                let servesOthers =
                    !needsServer
                    && facts.servesOthersOnceValidated(directives, allowance, isShared: plan.terms.isShared)
                // Without the server, or if it fails, what another process has stored since is better than nothing or
                // than a stale response.
                if isInMemory && servesOthers && (!mayAsk || standsIn) {
                    guard let loadsNewer = await loadsNewer(control, until: deadline) else { return nil }
                    if loadsNewer { continue }
                }
                let target = VariantKey(key: key, variance: variant.variance)
                // The response to a request with its own conditions may be of no use to others.
                if mayAsk, !hasOwnConditions, let lead = cache.validations.lead(target) {
                    // Another run has validated it since the lookup.
                    if mayRepeat, let current = cache.recallEntry(key), current !== stored {
                        mayRepeat = false
                        continue
                    }
                    self.lead = lead
                } else if mayWait, servesOthers, cache.validations.isUnderWay(target) {
                    // Another run is validating it: the result may serve this one, too (RFC 9111, 4).
                    mayWait = false
                    let isOver = await control.wait(until: deadline) { cache.validations.wait(target, $0) }
                    guard isOver != nil else { return nil }
                    isCollapsed = true
                    continue
                }
                let isFresh = variant.age(at: now).map { $0 < variant.lifetime.microseconds } ?? false
                return missed(isFresh && !variant.directives.noCache ? .request : .stale, validates: validates)
            }
        }
    }

    /// Whether a run in the background may refresh a stale response. A part that the server sends is not stored.
    private var mayRefresh: Bool { plan.mode.asksNetwork && sent.isRepeatable && !sent.fields.contains("Range") }

    private var allowance: ReuseRules.Allowance {
        ReuseRules.Allowance(
            staleIfError: plan.mode.staleIfError, staleWhileRevalidate: plan.mode.staleWhileRevalidate)
    }

    /// Continues a validation whose request a plain transfer has already sent.
    mutating func take(over validation: PlainValidation) {
        (stored, selected) = (validation.stored, validation.selected)
        (removals, mark, lookMark) = (validation.removals, validation.mark, validation.mark)
        (requestTime, invalidationMark) = (validation.requestTime, validation.invalidationMark)
        (forward, asksValidation, lead) = (validation.forward, true, validation.lead)
        if let selected, validation.standsIn, let variant = stored?.all[selected] {
            let now = cache.clock()
            standIn = served(variant, at: now).map { ($0, trace(of: variant, at: now, isStale: true)) }
        }
    }

    /// Reads the stored response and selects a variant. Returns whether it was in memory.
    mutating func find(_ control: RunControl, until deadline: ContinuousClock.Instant?) async -> Bool? {
        var isInMemory = false
        (removals, lookMark) = (cache.removals(of: key), cache.recentStores.next())
        if let found = cache.recallEntry(key)?.variants {
            (stored, isInMemory) = (found, true)
        } else {
            let loaded: StoredEntry?? = await control.wait(until: deadline) { done in
                cache.loadEntry(key) { entry, _ in done(entry) }
            }
            guard let loaded else { return nil }
            stored = loaded?.variants
        }
        selected = stored?.index(isHead: isHead) { variance($0) }
        return isInMemory
    }

    /// Whether another process has stored a newer response than the one in memory; it is in memory then. The storage is
    /// asked once for each response in memory. `nil` if the run was ended meanwhile.
    private mutating func loadsNewer(_ control: RunControl, until deadline: ContinuousClock.Instant?) async -> Bool? {
        guard cache.isShared, let stored, stored.beginsComparison() else { return false }
        let loaded: StoredEntry?? = await control.wait(until: deadline) { done in
            cache.loadEntry(key) { entry, _ in done(entry) }
        }
        guard let loaded else { return nil }
        (requestTime, invalidationMark) = (cache.clock(), cache.invalidationMark)
        mark = cache.recentStores.next()
        return (loaded?.marks.stored ?? .min) > stored.marks.stored
    }

    /// The next step after a miss: use the network, unless the mode or the request forbids it.
    private mutating func missed(_ reason: CacheStatus.Forward? = nil, validates: Bool) -> Way {
        let hasOthers = stored?.all.isEmpty == false
        forward = reason ?? (hasOthers ? .varyMiss : .uriMiss)
        let miss = CacheMiss(forward)
        cache.counters.missed(miss)
        if !plan.mode.asksNetwork { return .refuse(miss) }
        if directives.onlyIfCached { return onlyIfCached() }
        return .send(validates ? conditions() : [])
    }

    /// The answer to a request that must not use the network (RFC 9111, 5.2.1.7).
    private func onlyIfCached() -> Way {
        let miss = CacheMiss(forward)
        let empty = [Headers.Field(name: "Content-Length", value: "0")]
        guard let result = StoredVariant.result(status: 504, empty) else { return .refuse(miss) }
        return .answer(result, CacheTrace(outcome: .miss(miss)))
    }

    /// The conditions of a validation (RFC 9111, 4.3.1). None if the request has its own, because its caller wants to
    /// see the response to them.
    private mutating func conditions() -> [Headers.Field] {
        guard let stored, !hasOwnConditions else { return [] }
        // A stored response to HEAD cannot serve a GET.
        let usable = stored.all.indices.filter { isHead || !stored.all[$0].isHead }
        let fields = ValidationRules.conditions(
            selected: selected.map { stored.all[$0].validators },
            all: usable.map { stored.all[$0].validators })
        asksValidation = !fields.isEmpty
        return fields
    }

    private var hasOwnConditions: Bool {
        let names = ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"]
        return names.contains { sent.fields.contains($0) }
    }

    // MARK: Serving

    /// A stored response in the form that the request wants: complete, a part, its head, or a 304 if a condition of the
    /// request holds. `nil` if only the server can respond.
    func served(_ variant: StoredVariant, at now: CacheTime) -> TransferResult? {
        let result = variant.result
        if sent.fields.contains("If-None-Match") || sent.fields.contains("If-Modified-Since"),
            ValidationRules.isNotModified(
                sent.fields, variant.headers, status: result.status, responseTime: variant.times.response)
        {
            let fields = variant.headers.filter { field in
                let name = lowercased(field.name)
                // RFC 9110, 15.4.5
                return !name.hasPrefix("content-") || name == "content-location"
            }
            return StoredVariant.result(status: 304, httpVersion: result.httpVersion, fields)
        }
        if isHead {
            return variant.isHead
                ? result
                : StoredVariant.result(status: result.status, httpVersion: result.httpVersion, variant.headers)
        }
        guard sent.fields.contains("Range"), result.status == 200 else { return result }
        switch RangeRules.part(sent.fields, of: result.body.count, variant.headers) {
        case .whole: return result
        case .ofServer: return nil
        case .part(let part):
            if variant.isDecoded { return nil }
            let fields = RangeRules.fields(variant.headers, part, of: result.body.count)
            return StoredVariant.result(
                status: 206, httpVersion: result.httpVersion, fields,
                body: UnsafeRawBufferPointer(rebasing: result.body[part]))
        }
    }

    func trace(of variant: StoredVariant, at now: CacheTime, isStale: Bool) -> CacheTrace {
        let age = variant.age(at: now) ?? 0
        var trace = CacheTrace(outcome: .hit(age: .microseconds(age), isStale: isStale))
        trace.remaining = variant.lifetime.microseconds - age
        trace.isHTTP = true
        if isCollapsed {
            var status = trace.status
            status.isCollapsed = true
            trace.more = CacheTraceStatus(status)
        }
        return trace
    }

    /// Refreshes a response that was served stale, in a separate run, unless such a run is already active.
    private func revalidate<R: Request>(_ request: R, of variant: StoredVariant) {
        let target = VariantKey(key: key, variance: variant.variance)
        guard cache.beginsRevalidating(target) else { return }
        RequestRun<R>.start(
            request, on: core.processingQueue, .closure { [cache] _ in cache.endRevalidating(target) },
            mode: .revalidate, by: core)
    }

    // MARK: Invalidation

    /// Invalidates (RFC 9111, 4.4) for the user of the request, and for requests without credentials.
    func invalidate(_ result: TransferResult, _ response: Headers) {
        let urls = InvalidationRules.invalidated(
            method: sent.method, url: sent.url, status: result.status, response)
        if urls.isEmpty { return }
        for key in sent.key.relatives(urls, sent: sent.secrets) { cache.invalidate(key) }
    }

    /// The same, for a response with a streamed body.
    func invalidate(by result: TransferResult) { invalidate(result, Headers(result)) }
}

extension CacheMiss {
    /// The reason of this miss in the terms of the policy with a time to live.
    init(_ forward: CacheStatus.Forward) {
        switch forward {
        case .uriMiss, .method: self = .notFound
        case .varyMiss: self = .varyMismatch
        case .bypass: self = .reload
        default: self = .expired
        }
    }
}
