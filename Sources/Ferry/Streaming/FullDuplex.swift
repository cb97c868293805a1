import FerryTransport
public import FoundationEssentials
import Synchronization

extension NetworkAgent {
    /// Sends a request whose body is written while its response is read: full duplex.
    ///
    ///     let translation = try await agent.exchange(HTTPRequest(.post, "/translations")) { response, body in
    ///         async let sent: Void = write(lines, to: body)
    ///         var translation: [UInt8] = []
    ///         for try await piece in try await response.body { translation += piece }
    ///         try await sent
    ///         return translation
    ///     }
    ///
    /// The closure runs at once, before the server has responded: it writes by its second argument, and reads by its
    /// first. The exchange lasts as long as the closure. When that returns or throws, what is not yet sent or read is
    /// given up, and nothing of the exchange is left running: a body that was not finished never looks complete to the
    /// server. Cancelling the task, and the deadline of the request, end it at any point.
    ///
    /// Both directions have back pressure: at most 256 KiB are held ahead of the socket, and half a megabyte of the
    /// response. Where the server ends the response first, the reader sees its end, and what is written still goes out
    /// until the server closes the connection; from then on `write` throws `uploadStopped`. It
    /// also does so behind a status of 300 or more. The idle timeout counts when neither side sends anything.
    ///
    /// An exchange uses HTTP/1.1 and Ferry's own engine. One that only libcurl could carry fails with `invalidRequest`.
    ///
    /// The request must have no body of its own. Redirects, retries, adapters and credentials work as for
    /// ``stream(_:onInformational:)`` as long as no byte of the body has left; after that they are `bodyNotReplayable`.
    /// `trailers` names the fields that ``RequestBodyWriter/finish(trailers:)`` may send: see
    /// ``RequestBody/withTrailers(_:_:)``.
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

/// The response of an exchange, which may come while the body of the request is being written.
public struct ExchangeResponse: Sendable {
    private let exchange: RunningExchange

    init(_ exchange: RunningExchange) { self.exchange = exchange }

    /// Status, headers and what was measured so far: waits until they have come. Its own body is empty. A response that
    /// is not accepted throws, with the first 4,096 bytes of its body.
    public var head: Response { get async throws(RequestError) { try await exchange.streamed().head } }

    /// The body, piece by piece: waits until the head has come. To be read once, by one task at a time.
    public var body: ResponseBody { get async throws(RequestError) { try await exchange.streamed().body } }
}

/// An exchange whose closure runs.
final class RunningExchange: Sendable {
    private struct State {
        var task: Task<Result<StreamedResponse, RequestError>, Never>?
        var result: Result<StreamedResponse, RequestError>?
        var url = ""
        var carrier: StreamCarrier?
    }

    let writerBody: WriterBody
    private let core: AgentCore
    private let state = Mutex(State())

    init(_ body: WriterBody, by core: AgentCore) {
        writerBody = body
        self.core = core
    }

    var url: String { state.withLock { $0.url } }

    private var run: StreamRun? { state.withLock { $0.carrier }?.run }

    /// In the caller's task, whose task-local values the run has.
    func start<R: Request>(_ request: R, _ call: Call, by agent: NetworkAgent) {
        let carrier = StreamCarrier(bound: request.maxBodyBytes, writing: writerBody)
        // Then nothing is sent.
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
        case .success:
            // A response that did not come from the network takes nothing.
            if carrier.run?.isWhole != false { writerBody.pipe.stop() }
            writerBody.commit()
        }
    }

    /// The response, when its head has come. Cancelling the task that waits cancels the exchange.
    func streamed() async throws(RequestError) -> StreamedResponse {
        guard let task = state.withLock({ $0.task }) else { preconditionFailure("an exchange was not started") }
        return try await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            cancel()
        }.get()
    }

    /// Why the writer's bytes are not wanted.
    func refusal() async -> RequestError {
        let head: Response
        do throws(RequestError) { head = try await streamed().head } catch { return error }
        if let run, run.source != nil, writerBody.pipe.isClosed {
            // Its transfer has ended; of what it has died the run is told next.
            if !run.isWhole { _ = await run.wholeAnswer() }
            if let failure = run.failure { return failure.behind(head) }
        }
        return RequestError(
            .uploadStopped, phase: .body,
            message: "the server has responded with \(head.status) and does not take the rest of the body",
            response: head)
    }

    /// Ends it, whatever it does. Any thread.
    func cancel() {
        state.withLock { $0.task }?.cancel()
        if let run { core.cancel(run) }
    }

    /// The closure is over: nothing is left running when this returns.
    func end(hasFailed: Bool) async {
        let (task, hasResult) = state.withLock { ($0.task, $0.result != nil) }
        if !hasResult { cancel() }
        if case .success(let response)? = await task?.value {
            // What it is ended with next is not what has failed.
            let failure = run?.failure
            if let run {
                if hasFailed || !run.hasEnded || !writerBody.isFinished { core.cancel(run) }
                if !run.isWhole { _ = await run.wholeAnswer() }
            }
            response.body.conclude(failure, isCancelled: hasFailed)
        }
        writerBody.pipe.close()
    }
}

/// Writes the body of an exchange's request, piece by piece. By one task at a time.
public struct RequestBodyWriter: Sendable {
    private let exchange: RunningExchange

    init(_ exchange: RunningExchange) { self.exchange = exchange }

    /// Writes a piece: returns when it has found room among the 256 KiB that are held ahead of the socket.
    ///
    /// A server that reads slowly slows the writer down. Throws `uploadStopped` when the server has responded and does
    /// not take the rest, and the error of the exchange when that has failed. Cancelling the task that waits cancels
    /// the exchange.
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

    /// Writes text as UTF-8, likewise.
    public nonisolated(nonsending) func write(_ text: String) async throws(RequestError) {
        try await write(Array(text.utf8))
    }

    /// The body is complete. Does not wait for it to leave.
    ///
    /// `trailers` follow it (RFC 9110, 6.5): their names must have been announced when the exchange began, and a value
    /// must not contain a line break. Otherwise the exchange fails with `uploadSource`.
    public func finish(trailers: Headers = Headers()) throws(RequestError) {
        try exchange.writerBody.finish(trailers, url: exchange.url)
    }
}

/// The body that a ``RequestBodyWriter`` writes. It is there once: another attempt gets it as long as nothing of it was
/// read.
final class WriterBody: PulledBody {
    private struct State {
        /// The attempt that it belongs to.
        var attempt = 0
        var wasRead = false
        /// The attempt has ended.
        var isLeft = false
        /// The head of the response was delivered: no other attempt follows.
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

    func makeSource() throws(BodyFault) -> any BodySource {
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
            preparing: .invalidRequest(.body), message: "the body of the exchange was finished before", url: url)
    }

    /// What one attempt reads of it.
    private final class Source: BodySource {
        private let body: WriterBody
        private let attempt: Int

        init(_ body: WriterBody, _ attempt: Int) {
            self.body = body
            self.attempt = attempt
        }

        deinit { close() }

        var length: UInt64? { nil }

        func failure(sending errno: Int32) -> (any Error)? { body.pipe.failure }

        func open(resume: @escaping @Sendable () -> Void) { body.pipe.open(resume: resume) }

        func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
            guard body.isCurrent(attempt) else { return .failed }
            let fill = body.pipe.read(into: space)
            switch fill {
            case .bytes, .end: body.noteReading()
            case .piece, .later, .failed: break
            }
            return fill
        }

        var trailers: [UInt8] { body.state.withLock { $0.trailers } }

        func close() { body.left(by: attempt) }
    }

    private func isCurrent(_ attempt: Int) -> Bool { state.withLock { $0.attempt == attempt } }

    private func noteReading() { state.withLock { $0.wasRead = true } }

    /// The attempt has ended. No other attempt can send what this one has begun to read.
    private func left(by attempt: Int) {
        let isOver = state.withLock { state in
            if state.attempt != attempt { return false }
            state.isLeft = true
            return state.wasRead || state.isCommitted
        }
        if isOver { pipe.close() }
    }

    /// The response has arrived, so the attempt is the last one: when it ends, nothing reads the body any more.
    func commit() {
        let isOver = state.withLock { state in
            state.isCommitted = true
            return state.isLeft
        }
        if isOver { pipe.close() }
    }
}
