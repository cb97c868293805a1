import Dispatch
import FerrySynchronization
import FerryTransport
import FoundationEssentials

/// The record of a streamed response: receives the head and the chunks on the event loop's thread, and passes them to
/// the reading task.
///
/// Unread data is bounded: beyond the limit the socket is not read until the reader catches up.
///
/// Sendable like every `Run`; what it adds is constant or behind its lock.
final class StreamRun: Run, @unchecked Sendable {
    /// What the reader gets next.
    enum Piece: Sendable {
        case chunk(Data)
        case end
        case failure(RequestError)
    }

    private struct State {
        /// Until the run has its result, so that who keeps the response does not keep the agent.
        var core: AgentCore?
        var headWaiter: UnsafeContinuation<Answer, Never>?
        var head: Answer?
        var buffered: [UInt8] = []
        var isPaused = false
        /// The number of decoded body bytes so far.
        var received = 0
        /// Only the first bytes are needed, and only if nothing better comes.
        var isShortened = false
        /// How often that has changed.
        var shortenings = 0
        /// The rest is not needed.
        var isAbandoned = false
        /// The number of decoded body bytes since then.
        var drained = 0
        var end: Piece?
        /// Ferry has ended the body.
        var wasCut = false
        var result: TransferResult?
        var reader: UnsafeContinuation<Piece, Never>?
        /// The complete response arrived at once, not from the network.
        var isWhole = false
        var answer: Answer?
        /// When the result arrived.
        var ended: ContinuousClock.Instant?
        /// Wait for the result, not for the pieces.
        var endWaiters: [UnsafeContinuation<Answer, Never>] = []
    }

    private enum Wake {
        case none
        case head(UnsafeContinuation<Answer, Never>, Answer)
        case reader(UnsafeContinuation<Piece, Never>, Piece)
        /// There is more of the body than is needed.
        case tooMuch
    }

    private let stream = Mutex(State())
    var core: AgentCore? { stream.withLock { $0.core } }
    /// The response to `HEAD` has no body.
    private let isHead: Bool

    /// Above this number of unread bytes the socket is not read.
    private static let highWater = 512 * 1024
    /// How many bytes of an unneeded body are read to keep its connection.
    private static let drained: Int64 = 64 * 1024
    /// How long that may take, in seconds.
    private static let drainTime = 1

    /// Receives the number of body bytes written to a file, on the event loop's thread.
    private let countWritten: (@Sendable (UInt64) -> Void)?

    /// `isHeld`: after its head the body waits until it is read or written.
    init(
        _ transfer: borrowing TransferRequest, tag: String?, core: AgentCore, isHeld: Bool = false,
        countWritten: (@Sendable (UInt64) -> Void)? = nil
    ) {
        isHead = transfer.method == "HEAD"
        self.countWritten = countWritten
        super.init(url: transfer.url, tag: tag, watch: nil, goesByQueues: false)
        stream.withLock { ($0.isPaused, $0.core) = (isHeld, core) }
    }

    // MARK: On the event loop's thread

    override func received(head: TransferResult) {
        let waiter = stream.withLock { state -> UnsafeContinuation<Answer, Never>? in
            state.head = .result(head)
            return state.headWaiter.take()
        }
        waiter?.resume(returning: .result(head))
    }

    override func received(chunk: UnsafeRawBufferPointer) -> TransferFlow {
        let (flow, wake) = stream.withLock { state -> (TransferFlow, Wake) in
            state.received += chunk.count
            if state.isAbandoned {
                state.drained += chunk.count
                return state.drained > Self.drained ? (.pause, .tooMuch) : (.proceed, .none)
            }
            if let reader = state.reader.take() { return (.proceed, .reader(reader, .chunk(Data(chunk)))) }
            state.buffered.append(contentsOf: chunk)
            if state.isShortened && state.buffered.count >= RequestError.RejectedResponse.most {
                (state.end, state.wasCut) = (.end, true)
                return (.pause, .tooMuch)
            }
            state.isPaused = state.buffered.count >= Self.highWater
            return (state.isPaused ? .pause : .proceed, .none)
        }
        act(wake)
        return flow
    }

    override func written(_ count: UInt64) { countWritten?(count) }

    override func answer(_ answer: Answer, into turn: inout [CallbackRun]) {
        var core: AgentCore?
        let (wake, waiters) = stream.withLock { state -> (Wake, [UnsafeContinuation<Answer, Never>]) in
            core = state.core.take()
            state.answer = answer
            if state.ended == nil { state.ended = .now }
            defer { state.endWaiters = [] }
            guard state.head != nil else {
                // It ended before its head, so there is nothing to stream.
                state.head = answer
                state.isWhole = true
                return (state.headWaiter.take().map { .head($0, answer) } ?? .none, state.endWaiters)
            }
            // How the rest of the request ends does not concern the reader.
            let end = state.end ?? self.end(answer)
            state.end = end
            if case .result(let result) = answer, state.result == nil || result.succeeded { state.result = result }
            // Buffered data is read first.
            return (state.reader.take().map { .reader($0, end) } ?? .none, state.endWaiters)
        }
        act(wake)
        for waiter in waiters { waiter.resume(returning: answer) }
        // Not released under the lock.
        withExtendedLifetime(core) {}
    }

    override func answered(_ result: TransferResult) {
        let wake = stream.withLock { state -> Wake in
            guard state.end == nil else { return .none }
            (state.end, state.result, state.ended) = (.end, result, .now)
            return state.reader.take().map { .reader($0, .end) } ?? .none
        }
        act(wake)
    }

    /// Whether the body was read to its end.
    var hasEnded: Bool {
        stream.withLock { state in
            guard case .end? = state.end else { return false }
            return state.buffered.isEmpty
        }
    }

    /// Why it has failed; `nil` if it has not.
    var failure: RequestError? {
        stream.withLock { if case .failure(let error)? = $0.end { error } else { nil } }
    }

    private func end(_ answer: Answer) -> Piece {
        switch answer {
        case .refused(let error): return .failure(error)
        case .result(let result), .arrived(let result, _):
            guard let failure = result.failure else { return .end }
            return .failure(RequestError(failure, of: result, url: url))
        case .unsent: preconditionFailure("a stream that was not sent has no end")
        }
    }

    private func act(_ wake: Wake) {
        switch wake {
        case .none: break
        case .head(let waiter, let answer): waiter.resume(returning: answer)
        case .reader(let reader, let piece): reader.resume(returning: piece)
        case .tooMuch: core?.cancel(self)
        }
    }

    /// The metrics of the whole run, or of the part so far.
    func metrics(_ head: Response) -> RequestMetrics {
        let (result, ended) = stream.withLock { ($0.result ?? head.result, $0.ended) }
        var metrics = RequestMetrics(result, head.origin)
        // The origin ends with the head, but the run does not.
        if let start = head.origin?.start { metrics.total = start.duration(to: ended ?? .now) }
        return metrics
    }

    /// The trailer fields; empty until the body was read to its end.
    var trailers: Headers {
        stream.withLock { $0.buffered.isEmpty ? $0.result : nil }?.trailerFields ?? Headers()
    }

    // MARK: In the reading task

    /// The length of the body according to this head; `nil` if it does not say. With `HEAD`, 204 and 304 there is no
    /// body, whatever the length is.
    func contentLength(_ head: Response) -> Int64? {
        isHead || head.status == 204 || head.status == 304 ? 0 : head.result.contentLength
    }

    /// The head as a result without a body, or the result of a transfer without a head.
    func head() async -> Answer {
        await withUnsafeContinuation { continuation in
            let head = stream.withLock { state -> Answer? in
                if let head = state.head { return head }
                state.headWaiter = continuation
                return nil
            }
            if let head { continuation.resume(returning: head) }
        }
    }

    /// Whether the response arrived completely, including its body.
    var isWhole: Bool { stream.withLock { $0.isWhole } }

    /// The head of its response has arrived, but its end was not reported yet.
    var isUnderWay: Bool { stream.withLock { $0.head != nil && $0.answer == nil } }

    /// The complete result of a run whose body goes to a file, or whose request may end after its response.
    func wholeAnswer() async -> Answer {
        await withUnsafeContinuation { continuation in
            let answer = stream.withLock { state -> Answer? in
                if let answer = state.answer { return answer }
                state.endWaiters.append(continuation)
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    /// The next piece. One reader at a time.
    nonisolated(nonsending) func next() async -> Piece {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { take(by: $0) }
        } onCancel: {
            core?.cancel(self)
        }
    }

    private func take(by continuation: UnsafeContinuation<Piece, Never>) {
        let (piece, resumes) = stream.withLock { state -> (Piece?, Bool) in
            if !state.buffered.isEmpty {
                let chunk = Data(state.buffered)
                state.buffered.removeAll(keepingCapacity: false)
                defer { state.isPaused = false }
                return (.chunk(chunk), state.isPaused)
            }
            if let end = state.end { return (end, false) }
            precondition(state.reader == nil, "a body is read by one task at a time")
            state.reader = continuation
            // It was held.
            defer { state.isPaused = false }
            return (nil, state.isPaused)
        }
        if resumes { core?.transport.resume(id) }
        if let piece { continuation.resume(returning: piece) }
    }

    /// The response was refused, and is needed only if no other follows: reads what an error shows of its body, and
    /// ends the transfer. What comes first, such as a new token, may need its place among the active transfers.
    func shorten() {
        let (number, resumes) = stream.withLock { state in
            state.isShortened = true
            state.shortenings += 1
            defer { state.isPaused = false }
            return (state.shortenings, state.isPaused && state.answer == nil)
        }
        guard let core else { return }
        if resumes { core.transport.resume(id) }
        core.timerQueue.asyncAfter(deadline: .now() + .seconds(Self.drainTime)) { [weak self] in
            self?.cut(number)
        }
    }

    /// The response is needed after all: what is still to come of it is read, too.
    func lengthen() {
        stream.withLock { state in
            state.isShortened = false
            state.shortenings += 1
        }
    }

    /// Ends a shortened body whose first bytes take too long.
    private func cut(_ number: Int) {
        cut { $0.isShortened && $0.shortenings == number }
    }

    /// Ends the body after these seconds, as if it had ended by itself, unless it was abandoned before.
    func endReading(after seconds: Int) {
        core?.timerQueue.asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in
            self?.cut { !$0.isAbandoned }
        }
    }

    private func cut(if isWanted: (State) -> Bool) {
        let isCut = stream.withLock { state in
            guard state.end == nil, isWanted(state) else { return false }
            (state.end, state.wasCut) = (.end, true)
            return true
        }
        if isCut { core?.cancel(self) }
    }

    /// Whether Ferry has ended the body.
    var wasCut: Bool { stream.withLock { $0.wasCut } }

    /// The rest is not needed. A short rest is read, to keep the connection; otherwise the connection is closed.
    ///
    /// `length` is the announced length of the whole body. `isEncoded` means that it is not the length of the delivered
    /// body: then the rest is also limited as it is decoded.
    func abandon(expecting length: Int64?, isEncoded: Bool = false) {
        source?.giveWay()
        let (isOver, isUnsent, wasPaused, received) = stream.withLock { state -> (Bool, Bool, Bool, Int) in
            state.isAbandoned = true
            state.buffered = []
            defer { state.isPaused = false }
            return (state.end != nil, state.answer == nil, state.isPaused, state.received)
        }
        // Without it the run has its result.
        guard let core else { return }
        // The response of an exchange has ended, but its request may wait for a writer that will not come.
        if isOver { return isUnsent ? core.cancel(self) : () }
        let rest = length.map { isEncoded ? $0 : $0 - Int64(received) }
        guard let rest, rest <= Self.drained else { return core.cancel(self) }
        if wasPaused { core.transport.resume(id) }
        // A slow server is not worth its place among the active transfers.
        core.timerQueue.asyncAfter(deadline: .now() + .seconds(Self.drainTime)) { [weak self] in
            if let self { self.core?.cancel(self) }
        }
    }
}
