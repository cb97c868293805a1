public import Dispatch
import FerryCache
import FerryTransport
import Synchronization

/// What an agent keeps of answers: to be read, written and removed by hand, and counted.
///
/// Nothing of it waits for the network, and nothing blocks a thread.
public struct AgentCache: Sendable {
    let core: AgentCore

    /// The reply that is kept for a request, without starting it: checked and made into its value as that of a run, but
    /// without hooks and observers. Fails with `notCached`, which says why, or as the checks do.
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

    /// By RFC 9111: as a run that never asks the network.
    private func httpReply<R: Request>(
        for request: R, _ stage: CacheStage, url: String
    ) async throws(RequestError) -> Reply<R.Value> {
        let control = RunControl(tag: nil, of: core)
        let call = Call(request, nil, at: core.builder.servers, url: url, watch: nil, by: core)
        let answer = await stage.answer(call, control)
        core.leave(control)
        var times = ProcessingTimes(isMeasured: false)
        return try core.builder.validated(request, answer, url: url, &times)
    }

    /// Keeps a response as the answer of a request, by that one's policy, whoever it came from. Returns whether it is
    /// on the disk: false also for one whose body is not in memory, as that of a download or a stream.
    ///
    /// With a policy that has a lifetime, what the response's head says of keeping it is not asked. With
    /// ``CachePolicy/http(shared:sensitiveData:write:)`` it is stored as if the server had sent it now: what must not
    /// be stored is not, its fields say how long it is fresh, and only a GET without a body can be answered by it.
    @discardableResult
    public func save<R: Request>(_ response: Response, for request: R) async -> Bool {
        if let cache = core.cache, let terms = core.cachePolicy(of: request).http {
            guard let made = HTTPCacheStage.saved(response, for: request, terms, in: cache, by: core) else {
                return false
            }
            // What is on the disk only is read first: other variants of it stay.
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
                    let old = (cache.recallEntry(made.key)?.variants ?? stored)?.all ?? []
                    let variant = made.variant
                    let others = old.filter {
                        $0.variance != variant.variance || $0.varying != variant.varying
                    }
                    let all = StoredVariants(
                        [variant] + others, stored: variant.times.response, maxBytes: cache.maxEntryBytes)
                    cache.keep(all, under: made.key, all.entry(isShared: terms.isShared)) {
                        continuation.resume(returning: $0)
                    }
                }
            }
        }
        guard let cache = core.cache, let (kept, key) = kept(response, for: request) else { return false }
        return await withCheckedContinuation { continuation in
            cache.keep(kept, under: key) { continuation.resume(returning: $0) }
        }
    }

    /// Likewise, and does not wait for the disk.
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

    /// Removes what is kept for a request, and returns when it is gone; from the memory of other agents and processes
    /// with the same directory it goes within milliseconds. The policy does not matter, the key does. False when there
    /// is no cache, or its disk failed.
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

    /// Removes everything in the directory, what other agents and processes have there included, and returns when it is
    /// gone; from their memory it goes within milliseconds.
    @discardableResult
    public func removeAll() async -> Bool {
        guard let cache = core.cache else { return false }
        return await withCheckedContinuation { continuation in
            cache.removeAll { continuation.resume(returning: $0) }
        }
    }

    /// How much there is, and what was done; all zero without a cache.
    public var statistics: CacheStatistics {
        get async { await core.cache?.statistics() ?? CacheStatistics() }
    }
}

extension RequestError {
    static func notCached(_ miss: CacheMiss, url: String) -> RequestError {
        RequestError(preparing: .notCached(miss), message: "the cache has no usable response: \(miss)", url: url)
    }
}

extension NetworkAgent {
    /// What the agent keeps of answers.
    public var cache: AgentCache { AgentCache(core: core) }

    /// Sends a request, and uses the cache as `mode` says instead of the request's own ``Request/cacheMode``.
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(
        _ request: R, cache mode: CacheMode
    ) async throws(RequestError) -> Reply<R.Value> {
        try await CachedRun.send(request, mode, by: core)
    }

    /// The kept answer and then the network's: calls `cached` with the reply from the cache, if there is one that is
    /// fresh, in the caller's task, and returns or throws what the network brings, which is kept in turn.
    ///
    /// The hooks and observers see the run, not what comes before it. The label has to be written: a trailing closure
    /// is ``send(_:uploadProgress:)``'s.
    @_disfavoredOverload
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(
        _ request: R, cached: @escaping @Sendable (Reply<R.Value>) -> Void
    ) async throws(RequestError) -> Reply<R.Value> {
        try await CachedRun.send(request, .reload, by: core, cached: cached)
    }

    /// Starts a request, and uses the cache as `mode` says instead of the request's own ``Request/cacheMode``.
    @discardableResult
    public func start<R: Request>(
        _ request: R, cache mode: CacheMode, on queue: DispatchQueue? = nil,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        RequestTask(run: RequestRun<R>.start(request, on: queue, .closure(completion), mode: mode, by: core))
    }

    /// Likewise; the result goes to a delegate.
    @discardableResult
    public func start<R: Request>(
        _ request: R, cache mode: CacheMode, delegate: any RequestDelegate, on queue: DispatchQueue? = nil
    ) -> RequestTask<R.Value> {
        RequestTask(
            run: RequestRun<R>.start(request, on: queue, .delegate(WeakDelegate(delegate)), mode: mode, by: core))
    }

    /// The kept answer and then the network's: calls `cached` with the reply from the cache, if there is one that is
    /// fresh, and then `completion` with the run's one result, which is the network's. Both come on `queue`, in this
    /// order.
    ///
    /// The hooks and observers see the run, not what comes before it. The label has to be written: a first trailing
    /// closure is ``start(_:on:uploadProgress:completion:)``'s.
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
