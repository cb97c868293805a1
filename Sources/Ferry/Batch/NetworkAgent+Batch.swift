extension NetworkAgent {
    /// Sends several at once and waits for their values, a tuple in the order given. The first failure cancels the rest
    /// and is thrown. The same as sending a ``BatchRequest``.
    @discardableResult
    public nonisolated(nonsending) func send<each Item: Runnable>(
        batch items: repeat each Item, atMost limit: Int = .max
    ) async throws(RequestError) -> (repeat (each Item).Value) {
        try await send(BatchRequest(repeat each items, atMost: limit))
    }

    /// Sends several at once and waits for their values, in the order given. The first failure cancels the rest.
    @discardableResult
    public nonisolated(nonsending) func send<Item: Runnable>(
        batch items: [Item], _ mode: FailFast = .failFast, atMost limit: Int = .max
    ) async throws(RequestError) -> [Item.Value] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }

    /// Sends several at once and waits for the result of each, in the order given.
    @discardableResult
    public nonisolated(nonsending) func send<Item: Runnable>(
        batch items: [Item], _ mode: CollectAll, atMost limit: Int = .max
    ) async throws(RequestError) -> [Result<Item.Value, RequestError>] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }

    /// Sends several of different types, with values of one type.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func send<Element: Sendable>(
        batch items: [any Runnable<Element>], _ mode: FailFast = .failFast, atMost limit: Int = .max
    ) async throws(RequestError) -> [Element] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }

    /// Sends several of different types, with values of one type, and waits for the result of each.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func send<Element: Sendable>(
        batch items: [any Runnable<Element>], _ mode: CollectAll, atMost limit: Int = .max
    ) async throws(RequestError) -> [Result<Element, RequestError>] {
        try await send(BatchRequest(items, mode, atMost: limit))
    }
}
