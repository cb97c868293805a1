public import Dispatch

extension NetworkAgent {
    /// What the agent keeps of answers.
    public var cache: AgentCache { AgentCache(core: core) }

    /// Sends a request, and uses the cache as `mode` says instead of the request's own ``Request/cacheMode``.
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(
        _ request: R, cache mode: CacheMode
    ) async throws(RequestError) -> Reply<R.Value> {
        try await core.send(request, by: mode)
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
        try await core.send(request, by: .reload, cached: cached)
    }

    /// Starts a request, and uses the cache as `mode` says instead of the request's own ``Request/cacheMode``.
    @discardableResult
    public func start<R: Request>(
        _ request: R, cache mode: CacheMode, on queue: DispatchQueue? = nil,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        start(request, on: queue, receiver: .closure(completion), mode: mode)
    }

    /// Likewise; the result goes to a delegate.
    @discardableResult
    public func start<R: Request>(
        _ request: R, cache mode: CacheMode, delegate: any RequestDelegate, on queue: DispatchQueue? = nil
    ) -> RequestTask<R.Value> {
        start(request, on: queue, receiver: .delegate(.init(object: delegate)), mode: mode)
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
        start(request, on: queue, receiver: .closure(completion), mode: .reload, cached: cached)
    }
}
