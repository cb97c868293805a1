import Dispatch
import FerrySynchronization
import FerryTransport
import FoundationEssentials

extension RequestBody {
    /// A content coding (RFC 9110, 8.4.1) for the body of a request.
    public struct Coding: Sendable, Hashable {
        let coding: BodyEncoder.Coding

        /// gzip (RFC 1952). Most servers that decode request bodies support it.
        public static let gzip = Coding(coding: .gzip)
        /// zstd (RFC 8878). It is several times faster than gzip, with results of about the same size.
        public static let zstd = Coding(coding: .zstd)

        /// The name of the coding in `Content-Encoding`.
        var name: String { coding == .gzip ? "gzip" : "zstd" }
    }

    /// Returns the same body, to be sent compressed and with `Content-Encoding`. The default is gzip.
    ///
    /// Use it only with servers that decode request bodies, because HTTP has no way to ask. Other servers respond with
    /// 415 or misread the body.
    ///
    /// Ferry compresses a body in memory once for each run, on the thread that starts the run, and every attempt sends
    /// the same bytes. It compresses a file, a stream or a form while it reads it, with less than 1 MiB of memory for
    /// gzip and about 4 MiB for zstd, and sends it in chunks, because its length is not known in advance. Progress
    /// counts the compressed bytes.
    ///
    /// If the request has a `Content-Encoding` field of another value, the run fails with `invalidRequest(body)`.
    public func compressed(_ coding: Coding = .gzip) -> RequestBody {
        var body = self
        body.coding = coding
        return body
    }
}

/// A source that compresses another source, on a Dispatch queue and never on the event loop's thread.
///
/// It compresses one block at a time and holds at most one that is ready, so its memory does not grow with the body. If
/// the inner source fails, the compressed body has no end either, so the server never sees it as complete.
///
/// When a stream has no bytes at the moment, everything so far is sent, because the application may wait for the
/// server's response to it. A file is not flushed: it would be larger, and differ with the times of its reads.
final class CompressingSource: BodySource {
    private struct State {
        /// Compressed bytes. Those before `taken` have been passed to the event loop.
        var ready: [UInt8] = []
        var taken = 0
        var isWorking = false
        /// The inner source has called `resume` since it was last read.
        var hasMore = false
        var isAwaited = false
        var hasEnded = false
        var hasFailed = false
        /// Why the encoder failed. The inner source reports its own failures.
        var fault: BodyFault?
        var isClosed = false
        var resume: (@Sendable () -> Void)?

        var isDone: Bool { hasEnded || hasFailed || isClosed }
    }

    /// The state of the worker. Nobody ever waits for its lock, because there is one worker at a time.
    private struct Work: ~Copyable {
        var encoder: BodyEncoder?
        /// Whether the encoder may hold bytes that the server cannot decode yet.
        var isUnflushed = false
        var block: [UInt8] = []
    }

    private enum Step {
        case output([UInt8], isEnd: Bool)
        case later
        case failed(BodyFault?)
    }

    private static let blockSize = 64 * 1024

    let length: UInt64? = nil
    private let inner: any BodySource
    private let coding: RequestBody.Coding
    private let state = Mutex(State())
    private let work = Mutex(Work())

    init(_ inner: any BodySource, _ coding: RequestBody.Coding) {
        self.inner = inner
        self.coding = coding
    }

    deinit { close() }

    func failure(sending errno: Int32) -> (any Error)? {
        state.withLock { $0.fault } ?? inner.failure(sending: errno)
    }

    /// Trailers are not compressed.
    var trailers: [UInt8] { inner.trailers }

    func open(resume: @escaping @Sendable () -> Void) {
        state.withLock { $0.resume = resume }
        inner.open { [weak self] in self?.resumeWork() }
    }

    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        let (fill, begins) = state.withLock { state -> (TransferFill, Bool) in
            if state.isClosed { return (.failed, false) }
            let count = min(space.count, state.ready.count - state.taken)
            if count > 0 {
                state.ready.withUnsafeBytes { ready in
                    space.copyMemory(from: UnsafeRawBufferPointer(rebasing: ready[state.taken..<state.taken + count]))
                }
                state.taken += count
                if state.taken == state.ready.count {
                    state.ready.removeAll(keepingCapacity: true)
                    state.taken = 0
                }
                return (.bytes(count), Self.begins(&state))
            }
            if state.hasFailed { return (.failed, false) }
            if state.hasEnded { return (.end, false) }
            state.isAwaited = true
            return (.later, Self.begins(&state))
        }
        if begins { startWork() }
        return fill
    }

    func giveWay() { inner.giveWay() }

    func close() {
        let isIdle = state.withLock { state in
            state.isClosed = true
            state.resume = nil
            state.ready = []
            state.taken = 0
            return !state.isWorking
        }
        if isIdle { releaseEncoder() }
        inner.close()
    }

    /// Called when no worker can begin any more. The application may keep the handle of the run, and with it this
    /// source, for long.
    private func releaseEncoder() {
        work.withLock { work in
            work.encoder = nil
            work.block = []
        }
    }

    /// Whether it has the memory of an encoder.
    var hasEncoder: Bool { work.withLock { $0.encoder != nil } }

    /// Whether there is work and no worker. Then the caller must start one.
    private static func begins(_ state: inout State) -> Bool {
        if state.isWorking || state.isDone || !state.ready.isEmpty { return false }
        state.isWorking = true
        return true
    }

    private func startWork() { DispatchQueue.global().async { self.compress() } }

    /// The inner source can be read again.
    private func resumeWork() {
        let begins = state.withLock { state in
            state.hasMore = true
            return Self.begins(&state)
        }
        if begins { startWork() }
    }

    /// [Dispatch queue] Compresses until a block is ready, or until the inner source has no bytes at the moment.
    private func compress() {
        while true {
            state.withLock { $0.hasMore = false }
            let step = work.withLock { next(&$0) }
            let (goesOn, isOver, resume) = state.withLock { state -> (Bool, Bool, (@Sendable () -> Void)?) in
                switch step {
                case .output(let bytes, let isEnd):
                    if !state.isClosed { state.ready += bytes }
                    state.hasEnded = isEnd
                    state.isWorking = !state.isDone && state.ready.count < Self.blockSize
                case .later: state.isWorking = state.hasMore && !state.isDone
                case .failed(let fault):
                    (state.hasFailed, state.fault, state.isWorking) = (true, fault, false)
                }
                let isOver = !state.isWorking && state.isDone
                guard state.isAwaited, !state.ready.isEmpty || state.isDone else {
                    return (state.isWorking, isOver, nil)
                }
                state.isAwaited = false
                return (state.isWorking, isOver, state.resume)
            }
            if isOver { releaseEncoder() }
            resume?()
            if !goesOn { return }
        }
    }

    private func next(_ work: inout Work) -> Step {
        if work.encoder == nil {
            work.encoder = BodyEncoder(coding.coding)
            work.block = [UInt8](repeating: 0, count: Self.blockSize)
        }
        var made: [UInt8] = []
        let (count, isEnd): (Int, Bool)
        switch work.block.withUnsafeMutableBytes(inner.fill) {
        case .bytes(let filled): (count, isEnd) = (filled, false)
        case .end: (count, isEnd) = (0, true)
        case .later:
            guard work.isUnflushed else { return .later }
            work.isUnflushed = false
            return work.encoder?.flush(to: &made) == true ? .output(made, isEnd: false) : .failed(.noMemory)
        // A source gives pieces of files only to the event loop's own buffer.
        case .piece, .failed: return .failed(nil)
        }
        work.isUnflushed = inner.mayWaitForServer
        let block = work.block
        let isDone = block.withUnsafeBytes { block in
            work.encoder?.encode(UnsafeRawBufferPointer(rebasing: block[..<count]), isLast: isEnd, to: &made)
        }
        return isDone == true ? .output(made, isEnd: isEnd) : .failed(.noMemory)
    }
}

extension BodyFault {
    fileprivate static let noMemory = BodyFault(message: "not enough memory to compress the body")
}

extension BuiltRequest {
    /// Compresses a body that is in memory. A streamed body is left as it is.
    mutating func compress(_ coding: RequestBody.Coding) throws(RequestError) {
        var made: [UInt8] = []
        var encoder = BodyEncoder(coding.coding)
        let isDone: Bool?
        switch transfer.body {
        case .none, .pull: return
        case .bytes(let bytes): isDone = bytes.withUnsafeBytes { encoder?.encode($0, isLast: true, to: &made) }
        case .data(let data): isDone = data.withUnsafeBytes { encoder?.encode($0, isLast: true, to: &made) }
        }
        guard isDone == true else { throw RequestError(BodyFault.noMemory, url: transfer.url) }
        transfer.body = .bytes(made)
    }
}
