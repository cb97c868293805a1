public import Dispatch
import FerryCache
import FerryTransport
import Synchronization

/// The cache of an agent: read, write and remove entries directly, and get the statistics.
///
/// None of the methods waits for the network or blocks a thread.
public struct AgentCache: Sendable {
    let core: AgentCore

    /// The stored reply for a request, without a run. It is validated and its value is created as in a run, but hooks
    /// and observers are not called. Fails with `notCached`, which has the reason, or with the error of the validation.
    public func reply<R: Request>(for request: R) async throws(RequestError) -> Reply<R.Value> {
        let stage = try CacheStage.of(request, .cacheOnly, at: core.builder.servers, by: core)
        let url = stage.url
        if stage.http != nil { return try await httpReply(for: request, stage, url: url) }
        guard let plan = stage.plan else { throw .notCached(.notConfigured, url: url) }
        let answer: Answer
        switch await stage.find(for: request, plan, RunControl(tag: nil, of: core), until: nil).verdict {
        case .fresh(let stored, let trace)?: answer = Answer(stored, trace, plan)
        case .stale?: throw .notCached(.expired, url: url)
        case .miss(let reason)?: throw .notCached(reason, url: url)
        case nil: throw .notCached(.unavailable, url: url)
        }
        var times = ProcessingTimes(isMeasured: false)
        return try core.builder.validated(request, answer, url: url, &times)
    }

    /// With RFC 9111: like a run that never uses the network.
    private func httpReply<R: Request>(
        for request: R, _ stage: CacheStage, url: String
    ) async throws(RequestError) -> Reply<R.Value> {
        let control = RunControl(tag: nil, of: core)
        let call = Call(request, nil, at: core.builder.servers, url: url, watch: nil, by: core)
        var stage = stage
        let answer = await stage.answer(call, control)
        core.leave(control)
        var times = ProcessingTimes(isMeasured: false)
        return try core.builder.validated(request, answer, url: url, &times)
    }

    /// Stores a response under a request, according to the request's policy, whatever the origin of the response.
    /// Returns whether it is on disk: `false` also if its body is not in memory, like that of a download or a stream.
    ///
    /// With a time to live, the caching directives in the response's head are ignored. With
    /// ``CachePolicy/http(shared:sensitiveData:write:)`` the response is stored as if the server had sent it now: a
    /// response that must not be stored is not, its fields determine its freshness, and it serves only GET requests
    /// without a body.
    @discardableResult
    public func save<R: Request>(_ response: Response, for request: R) async -> Bool {
        if let cache = core.cache, let terms = core.cachePolicy(of: request).http {
            guard let made = HTTPCacheStage.saved(response, for: request, terms, in: cache, by: core) else {
                return false
            }
            // An entry that is only on disk is read first, so that its other variants are kept.
            let (removals, mark) = (cache.removals(of: made.key), cache.recentStores.next())
            let stored: StoredVariants? =
                if let found = cache.recallEntry(made.key)?.variants {
                    found
                } else {
                    await withCheckedContinuation { continuation in
                        cache.loadEntry(made.key) { entry, _ in continuation.resume(returning: entry?.variants) }
                    }
                }
            return await withCheckedContinuation { continuation in
                cache.changing.withLock { _ in
                    let isUnchanged =
                        cache.removals(of: made.key) == removals
                        && !cache.recentStores.isNoted(made.key, since: mark)
                    let old = (cache.recallEntry(made.key)?.variants ?? (isUnchanged ? stored : nil))?.all ?? []
                    let variant = made.variant
                    let others = old.filter {
                        $0.variance != variant.variance || $0.varying != variant.varying
                    }
                    let all = StoredVariants(
                        [variant] + others, stored: variant.times.response, maxBytes: cache.maxEntryBytes)
                    cache.keep(all, under: made.key, all.entry(isShared: terms.isShared)) {
                        continuation.resume(returning: $0)
                    }
                    cache.recentStores.note(variant, under: made.key, sent: mark)
                }
            }
        }
        guard let cache = core.cache, let (kept, key) = kept(response, for: request) else { return false }
        return await withCheckedContinuation { continuation in
            cache.keep(kept, under: key) { continuation.resume(returning: $0) }
        }
    }

    /// The same, without waiting for the disk.
    package func saveSoon<R: Request>(_ response: Response, for request: R) {
        if let (kept, key) = kept(response, for: request) { core.cache?.keep(kept, under: key) }
    }

    private func kept<R: Request>(_ response: Response, for request: R) -> (KeptResponse, CacheKey)? {
        guard let cache = core.cache, response.result.body.count == response.bodyLength,
            let target = try? core.builder.cacheTarget(request, at: core.builder.servers),
            let plan = CachePlan(core.cachePolicy(of: request), target, in: cache),
            let kept = CacheStage(plan, .reload, url: plan.url, by: core)
                .kept(response, CacheRules(response.result), of: request, plan, at: cache.clock())
        else { return nil }
        return (kept, plan.key)
    }

    /// Removes the entries of a request, and returns when they are removed. Other agents and processes with the same
    /// directory remove them from their memory within milliseconds. The request's policy does not matter, only its key.
    /// Returns `false` if there is no cache, or if its disk failed.
    @discardableResult
    public func remove<R: Request>(_ request: R) async -> Bool {
        guard let cache = core.cache else { return false }
        let servers = core.builder.servers
        var found = (try? core.builder.cacheTarget(request, at: servers))?.key
        if let terms = core.cachePolicy(of: request).http {
            let target = try? core.builder.httpTarget(request, isShared: terms.isShared, at: servers)
            found = target.map { HTTPCacheKey(cache.httpPrefix, terms, $0.secrets).key($0.url) }
        }
        guard let key = found else { return false }
        return await withCheckedContinuation { continuation in
            cache.remove(key) { continuation.resume(returning: $0) }
        }
    }

    /// Removes everything in the directory, including entries of other agents and processes, and returns when it is
    /// removed. Others remove it from their memory within milliseconds.
    @discardableResult
    public func removeAll() async -> Bool {
        guard let cache = core.cache else { return false }
        return await withCheckedContinuation { continuation in
            cache.removeAll { continuation.resume(returning: $0) }
        }
    }

    /// The statistics of the cache; all zero without a cache.
    public var statistics: CacheStatistics {
        get async { await core.cache?.statistics() ?? CacheStatistics() }
    }
}

extension RequestError {
    static func notCached(_ miss: CacheMiss, url: String) -> RequestError {
        RequestError(preparing: .notCached(miss), message: "the cache has no usable response: \(miss)", url: url)
    }
}

extension HTTPCacheStage {
    /// The variant to store for a response that the application supplies, as the response to a GET. `nil` if it must
    /// not be stored.
    static func saved<R: Request>(
        _ response: Response, for request: R, _ terms: CachePolicy.HTTPTerms, in cache: ResponseCache,
        by core: AgentCore
    ) -> (key: CacheKey, variant: StoredVariant)? {
        guard request.prebuiltRequest == nil, request.method == .get, request.body == nil,
            terms.sensitiveData != .none || !core.hasCookies,
            let target = try? core.builder.httpTarget(request, isShared: terms.isShared, at: core.builder.servers)
        else { return nil }
        let (result, now) = (response.result, cache.clock())
        let (headers, builder) = (Headers(result), core.builder)
        let directives = ResponseDirectives(headers)
        let lifetime = Freshness.lifetime(
            status: result.status, headers, directives, isShared: terms.isShared, responseTime: now)
        func sent(_ name: String) -> String? { builder.sentValue(of: name, by: request, isForeign: target.isForeign) }
        let exchange = StoringRules.Exchange(
            method: "GET", url: target.url, request: request.headers, status: result.status, response: headers,
            isAuthorized: sent("Authorization") != nil, isShared: terms.isShared)
        let varying = VaryRules.storedNames(headers, isDecoded: result.isDecoded)
        guard StoringRules.refusal(exchange, directives, lifetime) == nil, result.status != 206,
            result.body.count == response.bodyLength, !core.addsCookies(to: varying),
            result.body.count + Int(clamping: result.headBytesReceived) <= cache.maxEntryBytes,
            let bare = StoredVariant.result(
                status: result.status, httpVersion: result.httpVersion,
                StoringRules.storedFields(headers, directives, isShared: terms.isShared), body: result.body)
        else { return nil }
        let variant = StoredVariant(
            bare,
            StoredVariant.Times(
                request: now, response: now,
                initialAge: Freshness.initialAge(headers, requestTime: now, responseTime: now)),
            isHead: false, isDecoded: result.isDecoded, varying: varying,
            variance: VaryRules.variance(of: varying, sent), isShared: terms.isShared)
        return (HTTPCacheKey(cache.httpPrefix, terms, target.secrets).key(target.url), variant)
    }
}

extension NetworkAgent {
    /// The cache of the agent.
    public var cache: AgentCache { AgentCache(core: core) }

    /// Sends a request with a cache mode that replaces the request's own ``Request/cacheMode``.
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(
        _ request: R, cache mode: CacheMode
    ) async throws(RequestError) -> Reply<R.Value> {
        try await CachedRun.send(request, mode, by: core)
    }

    /// Returns the stored response first and then that of the network: calls `cached` in the caller's task with the
    /// reply from the cache, if there is a fresh one, and then returns or throws the result of the network, which is
    /// stored, too.
    ///
    /// Hooks and observers see only the run, not the stored reply. Write the label `cached:`, because a trailing
    /// closure belongs to ``send(_:uploadProgress:)``.
    @_disfavoredOverload
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(
        _ request: R, cached: @escaping @Sendable (Reply<R.Value>) -> Void
    ) async throws(RequestError) -> Reply<R.Value> {
        try await CachedRun.send(request, .reload, by: core, cached: cached)
    }

    /// Starts a request with a cache mode that replaces the request's own ``Request/cacheMode``.
    @discardableResult
    public func start<R: Request>(
        _ request: R, cache mode: CacheMode, on queue: DispatchQueue? = nil,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        RequestTask(run: RequestRun<R>.start(request, on: queue, .closure(completion), mode: mode, by: core))
    }

    /// Starts a request with a cache mode; the result goes to a delegate.
    @discardableResult
    public func start<R: Request>(
        _ request: R, cache mode: CacheMode, delegate: any RequestDelegate, on queue: DispatchQueue? = nil
    ) -> RequestTask<R.Value> {
        RequestTask(
            run: RequestRun<R>.start(request, on: queue, .delegate(WeakDelegate(delegate)), mode: mode, by: core))
    }

    /// Returns the stored response first and then that of the network: calls `cached` with the reply from the cache, if
    /// there is a fresh one, and then `completion` with the one result of the run, which comes from the network. Both
    /// run on `queue`, in this order.
    ///
    /// Hooks and observers see only the run, not the stored reply. Write the label `cached:`, because a first trailing
    /// closure belongs to ``start(_:on:uploadProgress:completion:)``.
    @_disfavoredOverload
    @discardableResult
    public func start<R: Request>(
        _ request: R, on queue: DispatchQueue? = nil, cached: @escaping @Sendable (Reply<R.Value>) -> Void,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        RequestTask(
            run: RequestRun<R>.start(request, on: queue, .closure(completion), mode: .reload, cached: cached, by: core))
    }
}
