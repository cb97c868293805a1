import Dispatch
import FerryTransport

/// The run of one download whose result goes to a closure or a delegate.
///
/// `file` and `figures` are written by the task that carries it and on the processing queue, and read on the callback
/// queue, one after another.
final class DownloadRun<R: Request>: CallbackRun, @unchecked Sendable {
    enum Receiver {
        case closure(@Sendable (Result<DownloadedFile, RequestError>) -> Void)
        case delegate(WeakDelegate)
    }

    struct WeakDelegate {
        weak var object: (any DownloadDelegate)?
    }

    private let request: R
    private let servers: Servers
    /// The request as it was at the start; `nil` of one that cannot be sent.
    private let snapshot: RequestSnapshot?
    private let download: Download
    private var receiver: Receiver?
    private var figures: RequestMetrics?
    private var file: Result<DownloadedFile, RequestError>?

    init(
        _ request: R, _ download: Download, url: String, watch: RunWatch?, number: UInt64, queue: DispatchQueue,
        core: AgentCore, journey: Journey?, servers: Servers, snapshot: RequestSnapshot?, receiver: Receiver
    ) {
        self.request = request
        self.download = download
        self.servers = servers
        self.snapshot = snapshot
        self.receiver = receiver
        super.init(
            url: url, tag: request.tag, watch: watch, number: number, queue: queue, core: core, journey: journey)
    }

    override func itinerary(after answer: Answer, _ core: AgentCore) -> Itinerary? {
        guard case .unsent = answer else { return nil }
        return core.itinerary(
            of: request, snapshot.map { .success($0) }, at: servers, url: url, watch: watch, number: number,
            since: start)
    }

    override func carry(
        _ itinerary: Itinerary, _ journey: Journey, after answer: Answer, by core: AgentCore
    ) async -> Answer {
        let (answer, file) = await download.carry(itinerary, journey, after: answer, by: core)
        self.file = file
        return answer
    }

    override func finish(_ answer: Answer, _ core: AgentCore) {
        if file == nil, case .refused(let error) = answer { file = .failure(error) }
        // One that was refused before it began has not ended it.
        download.meter.end()
        guard let file else { preconditionFailure("a download ended without a file or an error") }
        core.note(file, answer, url: url)
        figures = RequestMetrics(answer, ProcessingTimes(isMeasured: false))
        if case .failure(let error) = file { request.failurePreprocessor(error) }
    }

    override func fail(_ error: RequestError, _ answer: Answer) {
        if figures == nil { figures = RequestMetrics(answer, ProcessingTimes(isMeasured: false)) }
        download.meter.end()
        request.failurePreprocessor(error)
        file = .failure(error)
    }

    override var end: RunState { file.map { RunState($0) } ?? .failed }

    override var measured: RequestMetrics? { figures }

    override var cancellation: RequestError {
        switch file {
        case .success(let file): .cancelled(file.response.result, url: url, trail: file.response.trail)
        case .failure(let error): error.cancelled
        case nil: super.cancellation
        }
    }

    override func callBack() {
        guard let receiver = receiver.take(), let file = file.take() else { return }
        let outcome = RunOutcome(file)
        watch?.willStop(outcome, figures ?? RequestMetrics())
        if case .failure(let error) = file { request.failureFilter(error) }
        switch receiver {
        case .closure(let closure): closure(file)
        case .delegate(let delegate):
            if let object = delegate.object { tell(object, file) }
        }
        watch?.didStop(outcome)
    }

    private func tell(_ delegate: any DownloadDelegate, _ file: Result<DownloadedFile, RequestError>) {
        let task = DownloadTask(run: self, download: download)
        switch file {
        case .success(let file): delegate.downloadFinished(task, request, file: file)
        case .failure(let error): delegate.downloadFailed(task, request, error: error)
        }
    }
}

extension RunOutcome {
    init(_ file: Result<DownloadedFile, RequestError>) {
        switch file {
        case .success(let file): self = .finished(status: file.status, isFromCache: file.isFromCache)
        case .failure(let error): self.init(error)
        }
    }
}

extension AgentCore {
    /// Notes how the host of a download does.
    func note(_ file: Result<DownloadedFile, RequestError>, _ answer: Answer, url: String) {
        switch file {
        case .success(let file): if file.response.isFromServer { health.succeeded(file.response.url) }
        case .failure(let error): note(error, answer, url: url)
        }
    }
}
