public import Dispatch
import FerryTransport

extension NetworkAgent {
    /// Downloads a file, and returns when the complete file is on disk and in its place.
    ///
    ///     let file = try await agent.download(Image(id: "1.jpg"), to: .directory(path)) { print($0.fraction ?? 0) }
    ///
    /// The bytes go to a partial file beside the target, with a small metadata file. A run that is cancelled, fails, or
    /// dies with its process leaves both, and another run of the same request to the same target, by any agent,
    /// requests the rest (RFC 9110, 14). It resumes only if the server sent a strong validator, and if according to the
    /// response the file is still the same; otherwise it restarts. An existing file at the target stays until the new
    /// file is complete. In a directory no existing file is replaced.
    ///
    /// Only the statuses 200, 203, 206 and 226 come with a file. Any other status is `invalidStatusCode`, even if the
    /// configuration accepts it, and the target stays unchanged. The request's own ``Request/statusValidation`` can
    /// accept further statuses if it names them: with ``StatusValidation/codes(_:)``, ``StatusValidation/custom(_:)``
    /// or ``StatusValidation/any``, or, outside of 200 to 299, with ``StatusValidation/range(_:)``.
    ///
    /// Redirects, retries, adapters, the authenticator and observers work as in any run. Status and content type are
    /// checked; the value and ``Request/completionPreprocessor(_:)`` are not used, and
    /// ``Request/failurePreprocessor(_:)`` and ``Request/willDeliver(_:)`` are called only with an error. A response
    /// that is not accepted throws an error with the first 4,096 bytes of its body, and creates no file. The body is
    /// requested without compression and stored unchanged; if a server compresses nevertheless, the body is decoded and
    /// cannot be resumed. The size is limited only by the request's own ``Request/maxBodyBytes``. The download itself
    /// sets `Range`, `If-Range` and `Accept-Encoding`, and with ``DownloadOptions/skipsUnchanged`` `If-None-Match` and
    /// `If-Modified-Since`.
    ///
    /// If two runs, in any processes, download to the same target at once, the second one fails with `fileIO` and
    /// `EBUSY`.
    ///
    /// `progress` is called at the start, then at most every 100 milliseconds, and at the end, on a serial queue of the
    /// run. All reports are made before this returns. A run that is cancelled, shut down or timed out does not wait for
    /// a report that blocks. Cancelling the task cancels the run.
    public nonisolated(nonsending) func download<R: Request>(
        _ request: R, to target: DownloadTarget, options: DownloadOptions = DownloadOptions(),
        progress: (@Sendable (DownloadProgress) -> Void)? = nil
    ) async throws(RequestError) -> DownloadedFile {
        try await download(request, Call(beginning: request, by: core), to: target, options, progress)
    }

    /// Not on the caller's actor.
    @concurrent
    private func download<R: Request>(
        _ request: R, _ call: Call, to target: DownloadTarget, _ options: DownloadOptions,
        _ progress: (@Sendable (DownloadProgress) -> Void)?
    ) async throws(RequestError) -> DownloadedFile {
        let reports = progress.map { _ in ReportQueue() }
        let download = Download(
            DownloadPlan(
                request, to: target, options, method: call.info.method?.rawValue, url: call.url, by: core.builder),
            DownloadMeter(on: reports?.queue ?? core.callbackQueue, progress.flatMap { reports?.gated($0) }))
        let control = RunControl(tag: call.tag, of: core)
        let (answer, file) = await withTaskCancellationHandler {
            if let refusal = call.refusal ?? core.admit(control, url: call.url) {
                return (Answer.refused(refusal), Result<DownloadedFile, RequestError>.failure(refusal))
            }
            return await download.carry(call, control, after: .unsent, by: core)
        } onCancel: {
            control.end(.cancelled)
        }
        await reports?.drain(endsInTime: file.isEarlyEnd)
        RunEnd.process(request, file, answer, url: call.url, call.watch, by: core)
        let metrics = RequestMetrics(answer, ProcessingTimes(isMeasured: false))
        RunEnd.deliver(request, file, call.watch, metrics)
        return try file.get()
    }

    /// Starts a download. `completion` is called once with the result, and `progress` with the progress, on `queue`, or
    /// on the configuration's callback queue. Otherwise like ``download(_:to:options:progress:)``.
    @discardableResult
    public func download<R: Request>(
        _ request: R, to target: DownloadTarget, options: DownloadOptions = DownloadOptions(),
        on queue: DispatchQueue? = nil, progress: (@Sendable (DownloadProgress) -> Void)? = nil,
        completion: @escaping @Sendable (Result<DownloadedFile, RequestError>) -> Void
    ) -> DownloadTask {
        start(request, to: target, options, on: queue, receiver: .closure(completion)) { _ in progress }
    }

    /// Starts a download. Result and progress go to `delegate`, on `queue`, or on the configuration's callback queue.
    /// The delegate is held weakly: if it no longer exists, they are discarded.
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
        func made(_ url: String, _ snapshot: RequestSnapshot?, _ control: RunControl?) -> DownloadRun<R> {
            let method = snapshot?.transfer.method
            let plan = DownloadPlan(request, to: target, options, method: method, url: url, by: core.builder)
            let download = Download(plan, meter)
            let run = DownloadRun(
                request, download, url: url, number: number, queue: queue, core: core, control: control,
                servers: servers, snapshot: snapshot, receiver: receiver)
            handle.set(DownloadTask(run: run, download: download))
            return run
        }
        do throws(RequestError) {
            let control = RunControl(tag: request.tag, of: core)
            let snapshot = try core.builder.snapshot(of: request, at: servers)
            try core.builder.checkMayUseNetwork(request, url: snapshot.transfer.url)
            let run = made(snapshot.transfer.url, snapshot, control)
            run.begin(by: core)
            core.handOver(run, to: control)
        } catch {
            // Delivered like any other result.
            core.refuse(made(error.url, nil, nil), error)
        }
        return handle.made
    }
}

extension Result where Success == DownloadedFile, Failure == RequestError {
    fileprivate var isEarlyEnd: Bool { if case .failure(let error) = self { error.isEarlyEnd } else { false } }
}

/// The run of one download whose result goes to a closure or a delegate.
///
/// `file` is written by the task that carries it and on the processing queue, and later read on the callback queue.
final class DownloadRun<R: Request>: CallbackRun, @unchecked Sendable {
    enum Receiver {
        case closure(@Sendable (Result<DownloadedFile, RequestError>) -> Void)
        case delegate(WeakDelegate)
    }

    struct WeakDelegate {
        weak let object: (any DownloadDelegate)?
    }

    /// Until the result is delivered: the request may keep the task, which keeps this.
    private var held: R?
    private let servers: Servers
    /// The request as read at the start, until the result is delivered; `nil` if it cannot be sent.
    private var snapshot: RequestSnapshot?
    private let download: Download
    private var receiver: Receiver?
    private var file: Result<DownloadedFile, RequestError>?
    /// The record of the run until it is carried. It is made in the caller's thread, where all settings are read.
    private var begun: Call?

    init(
        _ request: R, _ download: Download, url: String, number: UInt64, queue: DispatchQueue, core: AgentCore,
        control: RunControl?, servers: Servers, snapshot: RequestSnapshot?, receiver: Receiver
    ) {
        held = request
        self.download = download
        self.servers = servers
        self.snapshot = snapshot
        self.receiver = receiver
        super.init(
            url: url, tag: request.tag,
            watch: RunWatch.begin(
                request, method: snapshot?.transfer.method, url: url, number: number, by: core),
            number: number, queue: queue, core: core, control: control)
    }

    private var request: R {
        guard let held else { preconditionFailure("a download goes on after its result was delivered") }
        return held
    }

    /// [caller's thread] Makes the record of a run that is not refused.
    func begin(by core: AgentCore) {
        begun = Call(
            request, snapshot.map { .success($0) }, at: servers, url: url, watch: watch, of: self, number: number,
            since: start, by: core)
    }

    override func call(after answer: Answer, _ core: AgentCore) -> Call? {
        guard case .unsent = answer else { return nil }
        return begun.take()
    }

    override func carry(
        _ call: Call, _ control: RunControl, after answer: Answer, by core: AgentCore
    ) async -> Answer {
        let (answer, file) = await download.carry(call, control, after: answer, by: core)
        self.file = file
        return answer
    }

    override func finish(_ answer: Answer, _ core: AgentCore) {
        if file == nil, case .refused(let error) = answer { file = .failure(error) }
        // A run that was refused before it started has not ended it.
        download.meter.end()
        snapshot?.files?.close()
        guard let file else { preconditionFailure("a download ended without a file or an error") }
        RunEnd.process(request, file, answer, url: url, watch, by: core)
        figures = FinalMetrics(answer, ProcessingTimes(isMeasured: false))
    }

    override func fail(_ error: RequestError, _ answer: Answer) {
        download.meter.end()
        snapshot?.files?.close()
        request.failurePreprocessor(error)
        file = .failure(error)
    }

    override var end: RunState { file.map { RunState($0) } ?? .failed }

    override var cancellation: RequestError {
        switch file {
        case .success(let file): .cancelled(file.response.result, url: url, origin: file.response.origin)
        case .failure(let error): error.cancelled
        case nil: super.cancellation
        }
    }

    override func callBack() {
        begun = nil
        guard let receiver = receiver.take(), let file = file.take() else { return }
        let request = request
        (held, snapshot) = (nil, nil)
        download.plan.forgetRequest()
        download.grants.forget()
        RunEnd.deliver(request, file, watch, figures?.value ?? RequestMetrics()) {
            switch receiver {
            case .closure(let closure): closure(file)
            case .delegate(let delegate):
                if let object = delegate.object { tell(object, request, file) }
            }
        }
        download.meter.forget()
    }

    private func tell(_ delegate: any DownloadDelegate, _ request: R, _ file: Result<DownloadedFile, RequestError>) {
        let task = DownloadTask(run: self, download: download)
        switch file {
        case .success(let file): delegate.downloadFinished(task, request, file: file)
        case .failure(let error): delegate.downloadFailed(task, request, error: error)
        }
    }
}
