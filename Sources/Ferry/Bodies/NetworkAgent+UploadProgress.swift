public import Dispatch

extension NetworkAgent {
    /// Starts a request and tells how its body leaves: when it begins, then at most every 50 milliseconds, and when all
    /// of it was handed to the network. Everything comes on `queue`, the result last.
    @discardableResult
    public func start<R: Request>(
        _ request: R, on queue: DispatchQueue? = nil,
        uploadProgress: @escaping @Sendable (TransferProgress) -> Void,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        start(request, on: queue, receiver: .closure(completion), progress: uploadProgress)
    }
}

extension RequestTask {
    /// How much of its body has been handed to the network; `nil` when it has none, or an empty one.
    public var uploadProgress: TransferProgress? { run.meter?.progress }
}
