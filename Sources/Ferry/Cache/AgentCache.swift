public import Dispatch
import FerryCache
import FerrySynchronization
import FerryTransport

/// The cache of an agent: read, write and remove entries directly, and get the statistics.
///
/// None of the methods blocks a thread, and none waits for the network unless an adapter does.
public struct AgentCache: Sendable {
    let core: AgentCore

    /// The stored reply for a request, without a run. It is validated and its value is created as in a run, but hooks
    /// and observers are not called. Fails with `notCached`, which has the reason, or with the error of the validation.
    public func reply<R: Request>(for request: R) async throws(RequestError) -> Reply<R.Value> {
        let servers = core.builder.servers
        let stage = try CacheStage.of(request, .cacheOnly, at: servers, by: core)
        let url = stage.url
        if stage.http != nil {
            let snapshot = stage.snapshot(of: request, at: servers)
            let call = Call(request, snapshot, at: servers, url: url, watch: nil, by: core)
            return try await httpReply(for: request, stage, call)
        }
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
        for request: R, _ stage: CacheStage, _ call: Call
    ) async throws(RequestError) -> Reply<R.Value> {
        let control = RunControl(tag: nil, of: core)
        var stage = stage
        let answer = await stage.answer(call, control)
        core.leave(control)
        var times = ProcessingTimes(isMeasured: false)
        return try core.builder.validated(request, answer, url: call.url, &times)
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
            guard let stage = await httpStage(of: request, terms, in: cache, opensBody: true),
                let variant = stage.saved(response)
            else { return false }
            let key = stage.key
            // An entry that is only on disk is read first, so that its other variants are kept.
            let (removals, mark) = (cache.removals(of: key), cache.recentStores.next())
            let stored: StoredVariants? =
                if let found = cache.recallEntry(key)?.variants {
                    found
                } else {
                    await withCheckedContinuation { continuation in
                        cache.loadEntry(key) { entry, _ in continuation.resume(returning: entry?.variants) }
                    }
                }
            return await withCheckedContinuation { continuation in
                cache.changing.withLock { _ in
                    let isUnchanged =
                        cache.removals(of: key) == removals
                        && !cache.recentStores.isNoted(key, since: mark)
                    let old = (cache.recallEntry(key)?.variants ?? (isUnchanged ? stored : nil))?.all ?? []
                    let others = old.filter {
                        $0.variance != variant.variance || $0.varying != variant.varying
                    }
                    let all = StoredVariants(
                        [variant] + others, stored: variant.times.response, maxBytes: cache.maxEntryBytes)
                    cache.keep(all, under: key, all.entry(isShared: terms.isShared)) {
                        continuation.resume(returning: $0)
                    }
                    cache.recentStores.note(variant, under: key, sent: mark)
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
            let kept = CacheStage(plan, .reload, url: plan.url, target.reading, by: core)
                .kept(response, CacheRules(response.result), of: request, plan, at: cache.clock())
        else { return nil }
        return (kept, plan.key)
    }

    /// How the HTTP cache sees a request as it would be sent now, with the token that there is: adapters and the
    /// authenticator may change its URL and its credentials. `nil` if an adapter fails.
    private func httpStage<R: Request>(
        of request: R, _ terms: CachePolicy.HTTPTerms, in cache: ResponseCache, opensBody: Bool
    ) async -> HTTPCacheStage? {
        let servers = core.builder.servers
        guard let target = try? core.httpTarget(of: request, terms, at: servers, in: cache),
            let snapshot = try? core.builder.snapshot(of: request, at: servers, after: target.reading)
        else { return nil }
        var call = Call(request, .success(snapshot), at: servers, url: target.url, watch: nil, by: core)
        call.http = HTTPCachePlan(terms, .cacheOnly, target)
        return await Exchange.cacheStage(of: call, RunControl(tag: nil, of: core), opensBody: opensBody, by: core)
    }

    /// Removes the entries of a request, and returns when they are removed. Other agents and processes with the same
    /// directory remove them from their memory within milliseconds. A response that this agent has requested before
    /// is not stored, and later runs do not share its transfer. The request's policy does not matter, only its key.
    /// With ``CachePolicy/http(shared:sensitiveData:write:)``, adapters and the authenticator take part like in a run.
    /// Returns `false` if there is no cache, if its disk failed, or if an adapter failed.
    @discardableResult
    public func remove<R: Request>(_ request: R) async -> Bool {
        guard let cache = core.cache else { return false }
        let (keys, areComplete) = await keys(of: request, in: cache)
        var isDone = areComplete
        for key in keys {
            let isRemoved = await withCheckedContinuation { continuation in
                cache.invalidate(key) { continuation.resume(returning: $0) }
            }
            isDone = isDone && isRemoved
        }
        return isDone
    }

    /// The keys under which responses to the request may be stored, and whether these are all.
    private func keys<R: Request>(
        of request: R, in cache: ResponseCache
    ) async -> (keys: Set<CacheKey>, areComplete: Bool) {
        let servers = core.builder.servers
        guard let terms = core.cachePolicy(of: request).http else {
            guard let key = (try? core.builder.cacheTarget(request, at: servers))?.key else { return ([], false) }
            return ([key], true)
        }
        if let plain = (try? core.httpTarget(of: request, terms, at: servers, in: cache))?.key {
            return ([plain], true)
        }
        var keys: Set<CacheKey> = []
        if request.prebuiltRequest == nil,
            let found = try? core.builder.httpTarget(request, isShared: terms.isShared, at: servers)
        {
            let isPublicOnly = found.reading.isPublicOnly
            keys.insert(
                HTTPCacheKey(cache.httpPrefix, isPublicOnly: isPublicOnly, terms, found.secrets).key(found.url))
        }
        guard let stage = await httpStage(of: request, terms, in: cache, opensBody: false) else { return (keys, false) }
        keys.insert(stage.key)
        return (keys, true)
    }

    /// Removes everything in the directory, including entries of other agents and processes, and returns when it is
    /// removed. Others remove it from their memory within milliseconds. A response that this agent has requested before
    /// is not stored, and later runs do not share its transfer. Returns `false` if there is no cache, or if its store
    /// failed.
    @discardableResult
    public func removeAll() async -> Bool {
        guard let cache = core.cache else { return false }
        return await withCheckedContinuation { continuation in
            cache.invalidateAll { continuation.resume(returning: $0) }
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

extension Exchange {
    /// How the HTTP cache sees the request as adapters and the authenticator would send it now, with the token that
    /// there is. `nil` if it cannot be prepared. The key needs no body, which may have been read or removed by now.
    fileprivate static func cacheStage(
        of call: Call, _ control: RunControl, opensBody: Bool, by core: AgentCore
    ) async -> HTTPCacheStage? {
        core.enter(control)
        defer { core.leave(control) }
        var exchange = Exchange(core, call, control, nil, after: .unsent)
        exchange.refreshesToken = false
        do throws(RequestError) {
            var leg = try await exchange.prepared()
            if !opensBody { (leg.body, exchange.hasAlteredBody) = (nil, true) }
            exchange.url = try core.builder.checked(leg.url)
            try await exchange.openFiles(of: leg)
            return exchange.cacheStage(for: try exchange.built(leg))
        } catch {
            return nil
        }
    }
}

extension HTTPCacheStage {
    /// The variant to store for a response that the application supplies, as the response to this GET. `nil` if it must
    /// not be stored.
    fileprivate func saved(_ response: Response) -> StoredVariant? {
        let (result, now, isShared) = (response.result, cache.clock(), plan.terms.isShared)
        let headers = Headers(result)
        let directives = ResponseDirectives(headers)
        let lifetime = Freshness.lifetime(
            status: result.status, headers, directives, isShared: isShared, responseTime: now)
        let exchange = StoringRules.Exchange(
            method: sent.method, url: sent.url, request: sent.fields, status: result.status, response: headers,
            isAuthorized: sent.fields.contains("Authorization"), isShared: isShared)
        let varying = VaryRules.storedNames(headers, isDecoded: result.isDecoded)
        guard sent.method == "GET", !sent.hasBody, !isOwnerUnknown,
            StoringRules.refusal(exchange, directives, lifetime) == nil, result.status != 206,
            result.body.count == response.bodyLength, !core.addsCookies(to: varying),
            plan.terms.sensitiveData != .none
                || !varying.contains(where: { name in sent.added.contains { equalNames($0, name) } }),
            result.body.count + Int(clamping: result.headBytesReceived) <= cache.maxEntryBytes,
            let bare = StoredVariant.result(
                status: result.status, httpVersion: result.httpVersion,
                StoringRules.storedFields(headers, directives, isShared: isShared), body: result.body)
        else { return nil }
        return StoredVariant(
            bare,
            StoredVariant.Times(
                request: now, response: now,
                initialAge: Freshness.initialAge(headers, requestTime: now, responseTime: now)),
            isHead: false, isDecoded: result.isDecoded, varying: varying, variance: variance(varying),
            isShared: isShared)
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
    /// Hooks and observers see only the run, not the stored reply. With
    /// ``CachePolicy/http(shared:sensitiveData:write:)``, adapters are called for both, and with interceptors `cached`
    /// is not called. Write the label `cached:`, because a trailing closure belongs to ``send(_:uploadProgress:)``.
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
    /// Hooks and observers see only the run, not the stored reply; for adapters and interceptors see
    /// ``send(_:cached:)``. Write the label `cached:`, because a first trailing closure belongs to
    /// ``start(_:on:uploadProgress:completion:)``.
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
