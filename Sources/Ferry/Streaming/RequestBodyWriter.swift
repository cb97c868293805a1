import FerryTransport
public import FoundationEssentials
import Synchronization

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
