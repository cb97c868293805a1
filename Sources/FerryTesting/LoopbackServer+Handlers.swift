internal import CLoopback

extension LoopbackServer {
    /// What answers requests: called in a task of its own, with the whole body.
    public typealias Handler = @Sendable (LoopbackRequest) async -> LoopbackResponse

    /// Answers requests of this method and path by a closure.
    ///
    /// The latest handler that fits is asked. Requests that arrive after this returns find it.
    ///
    /// - Parameters:
    ///   - method: `GET`, …; nil for every one.
    ///   - path: The path without a query; one that ends in `*` is a prefix.
    public func handle(_ method: String? = nil, _ path: String, _ handler: @escaping Handler) {
        let number = callbacks.add(handler)
        if let method {
            loopback_handle(handle.pointer, number, method, path)
        } else {
            loopback_handle(handle.pointer, number, nil, path)
        }
    }
}
