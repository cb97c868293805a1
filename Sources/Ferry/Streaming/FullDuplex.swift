import FerrySynchronization
import FerryTransport
public import FoundationEssentials

extension NetworkAgent {
    /// Sends a request and writes its body while it reads the response (full duplex).
    ///
    ///     let translation = try await agent.exchange(HTTPRequest(.post, "/translations")) { response, body in
    ///         async let sent: Void = write(lines, to: body)
    ///         var translation: [UInt8] = []
    ///         for try await piece in try await response.body { translation += piece }
    ///         try await sent
    ///         return translation
    ///     }
    ///
    /// The closure runs in the caller's task and starts at once, before the server has responded. It reads the response
    /// from its first argument and writes the body to its second. The exchange ends when the closure returns or throws:
    /// Ferry then drops what is not yet sent or read, and leaves nothing running. Only if the body is finished and the
    /// response has been read does Ferry send the rest of the body first, and waits for that until the idle timeout or
    /// the deadline. The server never sees an unfinished body as a complete one. Cancelling the task ends the exchange
    /// at any point, and so does the request's deadline.
    ///
    /// Both directions have back pressure: Ferry holds at most 256 KiB of the body ahead of the socket, and about half
    /// a megabyte of the response that the reader has not taken. If the server ends the response first, the reader sees
    /// the end, and Ferry continues to send the body until the server closes the connection. After that `write` throws
    /// `uploadStopped`. It also throws this after a response with a status of 300 or above. The idle timeout applies
    /// while neither side sends a byte.
    ///
    /// An exchange uses Ferry's own engine, over HTTP/1.1 or HTTP/2 (RFC 9113): see ``NetworkConfiguration/http2``. If
    /// only libcurl could carry it, it fails with `invalidRequest`: with Digest credentials, for example. For the same
    /// reason no challenge is answered, and no ``CredentialProvider`` is asked: the caller gets the 401, or the failure
    /// of the proxy.
    ///
    /// The request must not have a body of its own, and an adapter must not set another one: either fails with
    /// `invalidRequest(body)`. An adapter may compress the body and add trailers. Redirects, retries, adapters and
    /// credentials work as for ``stream(_:onInformational:)`` until a byte of the body has been sent. After that a
    /// redirect that keeps the body fails with `bodyNotReplayable`, and any other response or failure that would lead
    /// to another attempt is the last. `trailers` has the names of the fields that
    /// ``RequestBodyWriter/finish(trailers:)`` may send; the rules are those of ``RequestBody/withTrailers(_:_:)``.
    ///
    /// Throws what the closure throws. Errors of the exchange itself are thrown by the closure's reader and writer.
    public nonisolated(nonsending) func exchange<R: Request, Value>(
        _ request: R, trailers: [String] = [],
        onInformational: (@Sendable (InformationalResponse) -> Void)? = nil,
        _ body:
            nonisolated(nonsending) (
                _ response: ExchangeResponse, _ body: RequestBodyWriter
            ) async throws -> Value
    ) async throws -> Value {
        let exchange = RunningExchange(WriterBody(trailerNames: trailers), by: core)
        let call = Call(
            beginning: request, carrying: exchange.writerBody, onInformational: onInformational, by: core)
        exchange.start(request, call, by: self)
        return try await withTaskCancellationHandler {
            let result: Result<Value, any Error>
            do {
                result = .success(try await body(ExchangeResponse(exchange), RequestBodyWriter(exchange)))
            } catch {
                result = .failure(error)
            }
            var hasFailed = false
            if case .failure = result { hasFailed = true }
            await exchange.end(hasFailed: hasFailed)
            return try result.get()
        } onCancel: {
            exchange.cancel()
        }
    }
}

/// The response of an exchange. It may arrive while the body of the request is still being written.
public struct ExchangeResponse: Sendable {
    private let exchange: RunningExchange

    init(_ exchange: RunningExchange) { self.exchange = exchange }

    /// The head of the response: its status, its header fields and the metrics so far. Waits until it has arrived.
    ///
    /// Its own `body` is empty; read ``body`` instead. Throws if the exchange fails, and if the response is not
    /// accepted. The error then has the first 4,096 bytes of the body.
    public var head: Response { get async throws(RequestError) { try await exchange.streamed().head } }

    /// The body, as a sequence of pieces. Waits until the head has arrived, and throws as ``head`` does.
    ///
    /// Read it once, in one task at a time.
    public var body: ResponseBody { get async throws(RequestError) { try await exchange.streamed().body } }
}

/// An exchange whose closure is running.
final class RunningExchange: Sendable {
    private struct State {
        /// These three until its end: who keeps the response or the writer does not keep the agent.
        var core: AgentCore?
        var task: Task<Result<StreamedResponse, RequestError>, Never>?
        var carrier: StreamCarrier?
        var result: Result<StreamedResponse, RequestError>?
        var url = ""
        /// The last run of the carrier.
        var lastRun: StreamRun?
    }

    let writerBody: WriterBody
    private let state: Mutex<State>

    init(_ body: WriterBody, by core: AgentCore) {
        writerBody = body
        state = Mutex(State(core: core))
    }

    var url: String { state.withLock { $0.url } }

    private var run: StreamRun? {
        let (carrier, lastRun) = state.withLock { ($0.carrier, $0.lastRun) }
        return carrier.map(\.run) ?? lastRun
    }

    /// Must be called in the caller's task, because the run inherits its task-local values.
    func start<R: Request>(_ request: R, _ call: Call, by agent: NetworkAgent) {
        let carrier = StreamCarrier(for: request, writing: writerBody, by: agent.core)
        // An unstructured task does not inherit the cancellation. A cancelled caller must send nothing.
        let isCancelled = Task.isCancelled
        state.withLock { state in
            (state.url, state.carrier) = (call.url, carrier)
            state.task = Task {
                if isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
                let result: Result<StreamedResponse, RequestError>
                do throws(RequestError) {
                    result = .success(try await agent.stream(request, call, carrier))
                } catch {
                    result = .failure(error)
                }
                self.settle(result, carrier)
                return result
            }
        }
    }

    private func settle(_ result: Result<StreamedResponse, RequestError>, _ carrier: StreamCarrier) {
        state.withLock { $0.result = result }
        switch result {
        case .failure: writerBody.pipe.close()
        case .success(let response):
            // The transport sends nothing more after such a head. It may be the head of an attempt that is retried, so
            // the body is not stopped before. A response that did not come from the network never takes the body, nor
            // does the target of a redirect that drops it.
            let isRead = carrier.run.map { !$0.isWhole && $0.source != nil } ?? false
            if response.head.status >= 300 || !isRead { writerBody.pipe.stop() }
            writerBody.commit()
        }
    }

    /// Waits for the head of the response. Cancelling the waiting task cancels the exchange.
    func streamed() async throws(RequestError) -> StreamedResponse {
        let (task, result) = state.withLock { ($0.task, $0.result) }
        guard let task else {
            guard let result else { preconditionFailure("an exchange was not started") }
            return try result.get()
        }
        return try await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            cancel()
        }.get()
    }

    /// The error for a writer whose bytes are not taken any more.
    func refusal() async -> RequestError {
        let head: Response
        do throws(RequestError) { head = try await streamed().head } catch { return error }
        if let run, run.source != nil, writerBody.pipe.isClosed {
            // The transfer has ended, but the run may not have its result yet.
            if !run.isWhole { _ = await run.wholeAnswer() }
            if let failure = run.failure { return failure.behind(head) }
        }
        return RequestError(
            .uploadStopped, phase: .body,
            message: "the server has responded with \(head.status) and does not take the rest of the body",
            response: head)
    }

    /// Ends the exchange in any state. May be called on any thread.
    func cancel() {
        let (core, task) = state.withLock { ($0.core, $0.task) }
        task?.cancel()
        if let run, let core { core.cancel(run) }
    }

    /// The closure has returned or thrown. Nothing of the exchange is running when this returns.
    func end(hasFailed: Bool) async {
        let (core, task, hasResult) = state.withLock { ($0.core, $0.task, $0.result != nil) }
        guard let core else { return }
        if !hasResult { cancel() }
        if case .success(let response)? = await task?.value {
            // Read first: the cancellation below would look like the cause.
            let failure = run?.failure
            if let run {
                if hasFailed || !run.hasEnded || !writerBody.isFinished { core.cancel(run) }
                if !run.isWhole { _ = await run.wholeAnswer() }
            }
            response.body.conclude(failure, isCancelled: hasFailed)
        }
        let carrier = state.withLock { $0.carrier }
        await carrier?.endRests(by: core)
        writerBody.pipe.close()
        state.withLock { state in
            if case .success? = state.result { state.lastRun = carrier?.run }
            (state.core, state.task, state.carrier) = (nil, nil, nil)
        }
    }
}

/// The writer of an exchange's request body. One task at a time may use it.
public struct RequestBodyWriter: Sendable {
    private let exchange: RunningExchange

    init(_ exchange: RunningExchange) { self.exchange = exchange }

    /// Writes a piece of the body. Returns when all of it is in the buffer of 256 KiB ahead of the socket.
    ///
    /// A server that reads slowly slows the writer down. Throws `uploadStopped` if the server has responded and does
    /// not take the rest, the error of the exchange if the exchange has failed, and `invalidRequest` after
    /// ``finish(trailers:)``. Cancelling the waiting task cancels the exchange.
    public nonisolated(nonsending) func write(_ bytes: some ContiguousBytes) async throws(RequestError) {
        let body = exchange.writerBody
        if body.isFinished { throw body.finishedTwice(exchange.url) }
        let isTaken = await withTaskCancellationHandler {
            do {
                try await body.pipe.write(bytes)
                return true
            } catch {
                return false
            }
        } onCancel: { [exchange] in
            exchange.cancel()
        }
        if !isTaken { throw await exchange.refusal() }
    }

    /// Writes a piece of text as UTF-8. It waits and throws like the other `write`.
    public nonisolated(nonsending) func write(_ text: String) async throws(RequestError) {
        try await write(Array(text.utf8))
    }

    /// Ends the body. Does not wait until the rest of it has been sent.
    ///
    /// `trailers` are sent after the body (RFC 9110, 6.5). Their names must have been announced when the exchange
    /// began, and a value must not contain control characters except tabs; otherwise the exchange fails with
    /// `uploadSource`. Throws `invalidRequest` if the body is already finished.
    public func finish(trailers: Headers = Headers()) throws(RequestError) {
        try exchange.writerBody.finish(trailers, url: exchange.url)
    }
}

/// The body that a ``RequestBodyWriter`` writes. It exists once, so another attempt can have it only if nothing of it
/// was read.
final class WriterBody: PulledBody {
    private struct State {
        /// The number of the attempt that may read the body.
        var attempt = 0
        var wasRead = false
        /// That attempt has ended.
        var isLeft = false
        /// The head of the response was delivered, so no other attempt follows.
        var isCommitted = false
        var isFinished = false
        var trailers: [UInt8] = []
    }

    let pipe = BytePipe(announced: nil)
    let trailerNames: [String]
    private let state = Mutex(State())

    init(trailerNames: [String]) { self.trailerNames = trailerNames }

    var isReplayable: Bool { state.withLock { !$0.wasRead } }

    var isFinished: Bool { state.withLock { $0.isFinished } }

    func makeSource(from files: BodyFiles) throws(BodyFault) -> any BodySource {
        let attempt = state.withLock { state -> Int? in
            if state.wasRead { return nil }
            state.attempt += 1
            state.isLeft = false
            return state.attempt
        }
        guard let attempt else {
            throw BodyFault(code: .bodyNotReplayable, message: "the body of an exchange can be sent once only")
        }
        return Source(self, attempt)
    }

    func finish(_ trailers: Headers, url: String) throws(RequestError) {
        let lines: [UInt8]
        do throws(BodyFault) {
            lines = try TrailerRules.lines(of: trailers, announced: trailerNames)
        } catch {
            pipe.fail(error)
            throw RequestError(error, url: url)
        }
        let isFirst = state.withLock { state in
            if state.isFinished { return false }
            (state.isFinished, state.trailers) = (true, lines)
            return true
        }
        if !isFirst { throw finishedTwice(url) }
        pipe.finish()
    }

    func finishedTwice(_ url: String) -> RequestError {
        RequestError(
            preparing: .invalidRequest(.body), message: "the body of the exchange is already finished", url: url)
    }

    /// The body as one attempt reads it.
    private final class Source: BodySource {
        private let body: WriterBody
        private let attempt: Int

        init(_ body: WriterBody, _ attempt: Int) {
            self.body = body
            self.attempt = attempt
        }

        deinit { close() }

        var length: UInt64? { nil }
        var mayWaitForServer: Bool { true }

        func failure(sending errno: Int32) -> (any Error)? { body.pipe.failure }

        func open(resume: @escaping @Sendable () -> Void) { body.pipe.open(resume: resume) }

        func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
            body.fill(space, for: attempt)
        }

        var trailers: [UInt8] { body.state.withLock { $0.trailers } }

        func close() { body.left(by: attempt) }
    }

    /// In one step: another attempt must not begin between the look at the attempt and the read.
    private func fill(_ space: UnsafeMutableRawBufferPointer, for attempt: Int) -> TransferFill {
        state.withLock { state in
            guard state.attempt == attempt, !state.isLeft else { return .failed }
            let fill = pipe.read(into: space)
            switch fill {
            case .bytes, .end: state.wasRead = true
            case .piece, .later, .failed: break
            }
            return fill
        }
    }

    /// An attempt has ended. If it has read anything, no other attempt can send the body.
    private func left(by attempt: Int) {
        let isOver = state.withLock { state in
            if state.attempt != attempt { return false }
            state.isLeft = true
            return state.wasRead || state.isCommitted
        }
        if isOver { pipe.close() }
    }

    /// The response has arrived, so this attempt is the last one. When it ends, nothing reads the body any more.
    func commit() {
        let isOver = state.withLock { state in
            state.isCommitted = true
            return state.isLeft
        }
        if isOver { pipe.close() }
    }
}
