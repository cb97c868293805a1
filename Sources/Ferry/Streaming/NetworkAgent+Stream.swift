import FerrySynchronization
import FerryTransport

extension NetworkAgent {
    /// Sends a request, and returns when the head of its response has arrived. The body is transferred as it is read.
    ///
    ///     let export = try await agent.stream(Export())
    ///     for try await piece in export.body { try file.write(contentsOf: piece) }
    ///
    /// Redirects, retries and adapters are handled before it returns. Status and content type are checked; the
    /// request's `Value` and ``Request/completionPreprocessor(_:)`` are not used. A response that is not accepted
    /// throws an error with the first 4,096 bytes of its body. The size of the body is limited only by the request's
    /// own ``Request/maxBodyBytes``. Cancelling the task that waits or reads cancels the run. A body that is not read
    /// to its end counts as cancelled. Observers are notified of the end when the body has ended.
    /// ``Request/failurePreprocessor(_:)`` and ``Request/willDeliver(_:)`` are called only with an error, also if the
    /// body fails.
    ///
    /// `onInformational` is called for each informational response (`103 Early Hints`) when it arrives, on the event
    /// loop's thread, so it must not block. See ``RequestObserver/informational(_:_:)``.
    public nonisolated(nonsending) func stream<R: Request>(
        _ request: R, onInformational: (@Sendable (InformationalResponse) -> Void)? = nil
    ) async throws(RequestError) -> StreamedResponse {
        try await stream(request, Call(beginning: request, onInformational: onInformational, by: core))
    }

    func stream<R: Request>(_ request: R, _ call: Call) async throws(RequestError) -> StreamedResponse {
        return try await stream(request, call, StreamCarrier(for: request, by: core))
    }

    /// Not on the caller's actor.
    @concurrent
    func stream<R: Request>(
        _ request: R, _ call: Call, _ carrier: StreamCarrier
    ) async throws(RequestError) -> StreamedResponse {
        let control = RunControl(tag: call.tag, of: core)
        let answer = await withTaskCancellationHandler {
            if let refusal = call.refusal ?? core.admit(control, url: call.url) { return Answer.refused(refusal) }
            return await Exchange.run(call, control, after: .unsent, carrier, by: core)
        } onCancel: {
            control.end(.cancelled)
        }
        var times = ProcessingTimes(isMeasured: false)
        var metrics = RequestMetrics(answer, times)
        do throws(RequestError) {
            let head = try core.builder.response(of: answer, url: call.url)
            // A stub for the network delivers complete responses.
            let run = carrier.run.flatMap { $0.isWhole ? nil : $0 }
            let source: BodyReader.Source = run.map { .run($0) } ?? .whole(head.body)
            do throws(RequestError) {
                let length = run.map { $0.contentLength(head) } ?? Int64(clamping: head.result.bodyLength)
                try core.builder.checkHead(head, bodyLength: length, of: request)
            } catch {
                guard let run else { throw error }
                let explained = await run.explained(error, head)
                metrics = run.metrics(head)
                throw explained
            }
            core.health.succeeded(head)
            return StreamedResponse(
                head: head,
                body: ResponseBody(
                    BodyReader(
                        source, head: head, of: request, call.watch, endsItself: !carrier.isDuplex, by: core)))
        } catch {
            RunEnd.failed(request, error, answer, url: call.url, call.watch, by: core, &times)
            RunEnd.deliver(call.watch, RunOutcome(error), metrics) { request.willDeliver(error) }
            throw error
        }
    }
}

extension StreamRun {
    /// The error of a response that was not accepted, with the first bytes of its body; or the error with which the run
    /// was ended in the meantime.
    func explained(_ error: RequestError, _ head: Response) async -> RequestError {
        var (body, isCut): ([UInt8], Bool) = ([], true)
        // An endless body of small pieces does not delay the error.
        endReading(after: 2)
        reading: while body.count < RequestError.RejectedResponse.most {
            switch await next() {
            case .chunk(let data): body += data
            case .end:
                isCut = wasCut
                break reading
            case .failure(let fault):
                if fault.isOwnEnd { return fault.behind(head) }
                break reading
            }
        }
        abandon(expecting: head.result.contentLength)
        return RequestError(error.code, message: error.message, response: head, body: body, isCut: isCut)
    }
}

extension RequestError {
    /// Whether the run was ended, rather than the server or the network having failed.
    fileprivate var isOwnEnd: Bool { [.cancelled, .shutdown, .timeout(.deadline)].contains(code) }

    /// An error in the body after this head, with the earlier attempts added.
    func behind(_ head: Response) -> RequestError { head.origin.map { after($0.earlier, $0.redirects) } ?? self }
}

/// Carries the transfers of a run whose response arrives in two parts: the head, which determines whether it is the
/// last, and then the body.
protocol BodyCarrier: AnyObject, Sendable {
    /// The body that is written while the response is read; `nil` without one.
    var writerBody: WriterBody? { get }

    /// Whether a request that is prepared again begins at the URL of the run if the target of a redirect no longer
    /// serves it.
    var beginsAtOrigin: Bool { get }

    /// The credentials that it shares with the other workers of a download; `nil` if there are no others.
    var grants: SharedGrants? { get }

    /// Returns when the next request of the run may be prepared and sent, and whether this had to wait.
    @discardableResult
    func awaitTurn(
        _ control: RunControl, until deadline: ContinuousClock.Instant?, _ url: String
    ) async throws(RequestError) -> Bool

    /// Creates the run of one transfer, and sets the transfer up for it.
    func run(for built: inout BuiltRequest, tag: String?, core: AgentCore) -> StreamRun

    /// The run continues, and does not need this body.
    func goOn(from result: TransferResult)

    /// The response was refused. While the run waits for a token or a credential, it must not hold its transfer.
    func waits(after head: Response)

    /// The wait was in vain: the run keeps the response.
    func keepsResponse()

    /// The head is that of the last response: does what is necessary before it is delivered.
    func take(_ head: Response, of control: RunControl, by core: AgentCore) async throws(RequestError) -> TakenBody
}

extension BodyCarrier {
    var writerBody: WriterBody? { nil }

    var beginsAtOrigin: Bool { false }

    var grants: SharedGrants? { nil }

    func awaitTurn(
        _ control: RunControl, until deadline: ContinuousClock.Instant?, _ url: String
    ) async throws(RequestError) -> Bool { false }
}

/// What happened to a body.
enum TakenBody: Sendable {
    /// It is left for the receiver of the response.
    case left
    /// It arrived, or broke off: the result of the whole transfer.
    case ended(TransferResult)
    /// The request is to be sent again.
    case again
}

/// Carries the transfers of a run whose last response is streamed.
final class StreamCarrier: BodyCarrier {
    private let current = Mutex<StreamRun?>(nil)
    /// The transfers of an exchange whose response was not the last. Short rests of their bodies may still be read.
    private let left = Mutex<[StreamRun]>([])
    private let bound: Int?
    let writerBody: WriterBody?
    /// Whether the run accepts a response.
    private let accepts: @Sendable (Response) -> Bool

    /// Without a limit of the request itself there is none, because the body is not held in memory.
    convenience init<R: Request>(for request: R, writing body: WriterBody? = nil, by core: AgentCore) {
        self.init(bound: request.maxBodyBytes, writing: body) { [core] head in
            (try? core.builder.checkHead(head, bodyLength: head.result.contentLength, of: request)) != nil
        }
    }

    init(bound: Int?, writing body: WriterBody? = nil, accepts: @escaping @Sendable (Response) -> Bool = { _ in true })
    {
        self.bound = bound
        writerBody = body
        self.accepts = accepts
    }

    var isDuplex: Bool { writerBody != nil }

    /// The run whose head arrived last.
    var run: StreamRun? { current.withLock { $0 } }

    func run(for built: inout BuiltRequest, tag: String?, core: AgentCore) -> StreamRun {
        built.transfer.responseBody = .stream
        built.transfer.isDuplex = isDuplex
        built.transfer.maxBodyBytes = UInt64(bound ?? 0)
        let run = StreamRun(built.transfer, tag: tag, core: core)
        current.withLock { $0 = run }
        return run
    }

    func goOn(from result: TransferResult) {
        guard let run = current.withLock({ $0.take() }) else { return }
        run.abandon(expecting: result.contentLength)
        if isDuplex { left.withLock { $0.append(run) } }
    }

    func waits(after head: Response) { if !accepts(head) { run?.shorten() } }
    func keepsResponse() { run?.lengthen() }

    /// Ends what is still read of responses that nobody needs.
    func endRests(by core: AgentCore) async {
        for run in left.withLock({ $0 }) + [run].compactMap({ $0 }) where run.isUnderWay {
            core.cancel(run)
            _ = await run.wholeAnswer()
        }
    }

    func take(_ head: Response, of control: RunControl, by core: AgentCore) async throws(RequestError) -> TakenBody {
        .left
    }
}
