internal import CLoopback

extension LoopbackServer {
    /// What answers requests: called in a task of its own, with the whole body.
    public typealias Handler = @Sendable (LoopbackRequest) async -> LoopbackResponse

    /// Answers requests of this method and path by a closure.
    ///
    /// The latest handler that fits is asked. Requests that arrive after this returns find it.
    ///
    /// - Parameters:
    ///   - method: `GET`, …, in the case of the wire.
    ///   - path: The path without a query; one that ends in `*` is a prefix.
    ///   - handler: Its answer may come at any time; one for a client that has left is nothing.
    public func handle(_ method: String, _ path: String, _ handler: @escaping Handler) {
        loopback_handle(handle.pointer, callbacks.add(handler), method, path)
    }

    /// Answers requests of any method and this path by a closure.
    public func handle(_ path: String, _ handler: @escaping Handler) {
        loopback_handle(handle.pointer, callbacks.add(handler), nil, path)
    }
}
