public import Dispatch

extension NetworkAgent {
    /// Starts a request and tells how its body leaves: when it begins, then at most every 50 milliseconds, and when all
    /// of it was handed to the network. It begins again where the body is sent again, and stays as it is behind a
    /// redirect that takes the body off. What the cache answers sends nothing, and tells nothing; nor is the transfer
    /// shared where the request ``Request/coalesces``. Everything comes on `queue`, the result last.
    @discardableResult
    public func start<R: Request>(
        _ request: R, on queue: DispatchQueue? = nil,
        uploadProgress: @escaping @Sendable (TransferProgress) -> Void,
        completion: @escaping @Sendable (Result<Reply<R.Value>, RequestError>) -> Void
    ) -> RequestTask<R.Value> {
        start(request, on: queue, receiver: .closure(completion), progress: uploadProgress)
    }

    /// Sends a request and waits for its reply, and tells how its body leaves: when it begins, then at most every 50
    /// milliseconds, and when all of it was handed to the network. That comes on a serial queue of the run's own, all
    /// of it before this returns; but a run that is cancelled, shut down or timed out does not wait for a report that
    /// blocks.
    @discardableResult
    public nonisolated(nonsending) func send<R: Request>(
        _ request: R, uploadProgress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(RequestError) -> Reply<R.Value> {
        let reports = ReportQueue()
        let run = core.startAwaited(request, progress: (reports.queue, reports.gated(uploadProgress)))
        var answer = await core.answer(to: run)
        if !core.isEnd(answer, of: run, request) { answer = await core.goOn(request, run, after: answer) }
        await reports.drain(endsInTime: answer.isEarlyEnd)
        return try await core.concludeOffActor(request, answer, of: run)
    }
}

extension RequestTask {
    /// How much of its body has been handed to the network; `nil` when it has none, or an empty one, or may share the
    /// transfer with others.
    public var uploadProgress: TransferProgress? { run.meter?.progress }
}
