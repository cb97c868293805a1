public import Dispatch
import FerryTransport

extension NetworkAgent {
    /// Downloads a file, and returns when it is whole, on the disk and in its place.
    ///
    ///     let file = try await agent.download(Image(id: "1.jpg"), to: .directory(path)) { print($0.fraction ?? 0) }
    ///
    /// The bytes go to a part file beside the target, with a small file of metadata. A run that is cancelled, fails, or
    /// dies with its process leaves them, and another run of the same request to the same target, by any agent, asks
    /// for the rest (RFC 9110, 14): only where the server has given a strong validator, and only if by its answer the
    /// file is still the same; else it begins anew. What is at the target stays until the new file is complete; in a
    /// directory nothing is replaced.
    ///
    /// Only the statuses 200, 203, 206 and 226 come with a file. Any other one is `invalidStatusCode`, also where the
    /// configuration accepts it, and what is at the target stays; unless the request's own
    /// ``Request/statusValidation`` names it: by ``StatusValidation/codes(_:)``, ``StatusValidation/custom(_:)`` or
    /// ``StatusValidation/any``, or, outside of 200 to 299, by ``StatusValidation/range(_:)``.
    ///
    /// Redirects, retries, adapters, the authenticator and observers have their part in it as in any run; status and
    /// content type are checked, the value and the completion hooks are left out. What is not accepted throws, with the
    /// first 4,096 bytes of its body, and no file is made of it. The body is asked for and kept as it is; where a
    /// server compresses nevertheless, it is decoded, and cannot be resumed. A bound is only the request's own
    /// ``Request/maxBodyBytes``. `Range`, `If-Range` and `Accept-Encoding` are the download's to set.
    ///
    /// Of two runs to one target at once, in any processes, the second fails with `fileIO` and `EBUSY`.
    ///
    /// `progress` is told when it begins, then at most every 100 milliseconds, and at the end, on a serial queue of the
    /// run's own, all of it before this returns; but a run that is cancelled, shut down or timed out does not wait for
    /// a report that blocks. Cancelling the task cancels the run.
    public nonisolated(nonsending) func download<R: Request>(
        _ request: R, to target: DownloadTarget, options: DownloadOptions = DownloadOptions(),
        progress: (@Sendable (DownloadProgress) -> Void)? = nil
    ) async throws(RequestError) -> DownloadedFile {
        try await download(request, core.beginOutgoing(request), to: target, options, progress)
    }

    /// Not on the caller's actor.
    @concurrent
    private func download<R: Request>(
        _ request: R, _ start: OutgoingStart, to target: DownloadTarget, _ options: DownloadOptions,
        _ progress: (@Sendable (DownloadProgress) -> Void)?
    ) async throws(RequestError) -> DownloadedFile {
        let (url, watch) = (start.url, start.watch)
        if case .failure(let error) = start.snapshot { throw core.conclude(request, watch, RequestMetrics(), error) }
        let reports = progress.map { _ in ReportQueue() }
        let download = Download(
            DownloadPlan(request, to: target, options, url: url, by: core.builder),
            DownloadMeter(on: reports?.queue ?? core.callbackQueue, progress.flatMap { reports?.gated($0) }))
        let journey = Journey(tag: request.tag, of: core)
        let itinerary = core.itinerary(of: request, start.snapshot, at: start.servers, url: url, watch: watch)
        let refusal = core.admit(journey, url: url)
        let (answer, file) = await withTaskCancellationHandler {
            if let refusal { return (Answer.refused(refusal), Result<DownloadedFile, RequestError>.failure(refusal)) }
            return await download.carry(itinerary, journey, after: .unsent, by: core)
        } onCancel: {
            journey.end(.cancelled)
        }
        await reports?.drain(endsInTime: file.isEarlyEnd)
        core.note(file, answer, url: url)
        let metrics = RequestMetrics(answer, ProcessingTimes(isMeasured: false))
        switch file {
        case .failure(let error): throw core.conclude(request, watch, metrics, error)
        case .success(let file):
            let outcome = RunOutcome.finished(status: file.status, isFromCache: file.isFromCache)
            watch?.willStop(outcome, metrics)
            watch?.didStop(outcome)
            return file
        }
    }

    /// Starts a download; its result comes by `completion`, once, on `queue`, or on the configuration's callback queue,
    /// and so does its progress. Else as ``download(_:to:options:progress:)``.
    @discardableResult
    public func download<R: Request>(
        _ request: R, to target: DownloadTarget, options: DownloadOptions = DownloadOptions(),
        on queue: DispatchQueue? = nil, progress: (@Sendable (DownloadProgress) -> Void)? = nil,
        completion: @escaping @Sendable (Result<DownloadedFile, RequestError>) -> Void
    ) -> DownloadTask {
        start(request, to: target, options, on: queue, receiver: .closure(completion)) { _ in progress }
    }

    /// Starts a download; result and progress go to `delegate`, on `queue`, or on the configuration's callback queue.
    /// The delegate is held weakly: when it is gone, they go nowhere.
    @discardableResult
    public func download<R: Request>(
        _ request: R, to target: DownloadTarget, options: DownloadOptions = DownloadOptions(),
        delegate: any DownloadDelegate, on queue: DispatchQueue? = nil
    ) -> DownloadTask {
        start(request, to: target, options, on: queue, receiver: .delegate(.init(object: delegate))) { task in
            { [weak delegate] progress in
                if let task = task() { delegate?.downloadProgressed(task, request, progress: progress) }
            }
        }
    }

    private func start<R: Request>(
        _ request: R, to target: DownloadTarget, _ options: DownloadOptions, on queue: DispatchQueue?,
        receiver: DownloadRun<R>.Receiver,
        _ report: (@escaping @Sendable () -> DownloadTask?) -> (@Sendable (DownloadProgress) -> Void)?
    ) -> DownloadTask {
        let queue = queue ?? core.callbackQueue
        let number = core.nextNumber
        let servers = core.builder.servers
        let handle = DownloadHandle()
        let meter = DownloadMeter(on: queue, report { handle.task })
        func made(_ url: String, _ snapshot: RequestSnapshot?, _ journey: Journey?) -> DownloadRun<R> {
            let plan = DownloadPlan(request, to: target, options, url: url, by: core.builder)
            let download = Download(plan, meter)
            let run = DownloadRun(
                request, download, url: url, watch: core.begin(request, url: url, number: number), number: number,
                queue: queue, core: core, journey: journey, servers: servers, snapshot: snapshot, receiver: receiver)
            handle.set(DownloadTask(run: run, download: download))
            return run
        }
        do throws(RequestError) {
            let journey = Journey(tag: request.tag, of: core)
            let snapshot = try core.builder.snapshot(of: request, at: servers)
            let run = made(snapshot.transfer.url, snapshot, journey)
            core.handOver(run, to: journey)
        } catch {
            // The same way as any other result.
            core.refuse(made(error.url, nil, nil), error)
        }
        return handle.made
    }
}

extension Result where Success == DownloadedFile, Failure == RequestError {
    fileprivate var isEarlyEnd: Bool { if case .failure(let error) = self { error.isEarlyEnd } else { false } }
}

extension AgentCore {
    /// The end of a download that failed: tells everybody but the caller.
    fileprivate func conclude<R: Request>(
        _ request: R, _ watch: RunWatch?, _ metrics: RequestMetrics, _ error: RequestError
    ) -> RequestError {
        request.failurePreprocessor(error)
        let outcome = RunOutcome(error)
        watch?.willStop(outcome, metrics)
        request.failureFilter(error)
        watch?.didStop(outcome)
        return error
    }
}
