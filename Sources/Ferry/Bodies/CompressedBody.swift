import Dispatch
import FerryTransport
import FoundationEssentials
import Synchronization

extension RequestBody {
    /// A content coding (RFC 9110, 8.4.1) in which a body can be sent.
    public struct Coding: Sendable, Hashable {
        let coding: BodyEncoder.Coding

        /// RFC 1952. Most servers that undo any coding undo this one.
        public static let gzip = Coding(coding: .gzip)
        /// RFC 8878. Several times faster than gzip, with results of about the same size.
        public static let zstd = Coding(coding: .zstd)

        /// Its name in `Content-Encoding`.
        var name: String { coding == .gzip ? "gzip" : "zstd" }
    }

    /// The same body, compressed, with `Content-Encoding`.
    ///
    /// HTTP has no way to ask whether a server undoes a coding: one that does not answers with 415 or misreads the
    /// body. A body in memory is compressed once for each run, on the thread that starts it; every attempt sends the
    /// same bytes. A file, a stream or a form is compressed as it is read, with less than 1 MiB of memory for gzip and
    /// about 4 MiB for zstd. It is sent in chunks, as its length is not known beforehand. Progress counts the
    /// compressed bytes.
    ///
    /// If the request has a `Content-Encoding` field of another value, the run fails with `invalidRequest(.body)`.
    public func compressed(_ coding: Coding = .gzip) -> RequestBody {
        var body = self
        body.coding = coding
        return body
    }
}

/// Compresses what another source gives, on a queue of Dispatch and never on the loop's thread.
///
/// One block is compressed at a time, and no more than one lies ready: memory is bounded however large the body is. A
/// source that fails never leads to the end of the compressed body.
final class CompressingSource: BodySource {
    private struct State {
        /// What the loop has not been given begins at `taken`.
        var ready: [UInt8] = []
        var taken = 0
        var isWorking = false
        /// The inner source has more, or an end, since it said `later`.
        var hasMore = false
        var isAwaited = false
        var hasEnded = false
        var hasFailed = false
        /// Why the encoder failed; the inner source tells of its own failures.
        var fault: BodyFault?
        var isClosed = false
        var resume: (@Sendable () -> Void)?

        var isDone: Bool { hasEnded || hasFailed || isClosed }
    }

    /// What the worker alone uses. The lock is never waited for, as there is one worker at a time.
    private struct Work: ~Copyable {
        var encoder: BodyEncoder?
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

    func close() {
        state.withLock { state in
            state.isClosed = true
            state.resume = nil
            state.ready = []
            state.taken = 0
        }
        inner.close()
    }

    /// Whether there is something to do, and nobody who does it.
    private static func begins(_ state: inout State) -> Bool {
        if state.isWorking || state.isDone || !state.ready.isEmpty { return false }
        state.isWorking = true
        return true
    }

    private func startWork() { DispatchQueue.global().async { self.compress() } }

    /// The inner source can be asked again.
    private func resumeWork() {
        let begins = state.withLock { state in
            state.hasMore = true
            return Self.begins(&state)
        }
        if begins { startWork() }
    }

    /// [a queue of Dispatch] Compresses until a block lies ready, or the inner source has nothing now.
    private func compress() {
        while true {
            state.withLock { $0.hasMore = false }
            let step = work.withLock { next(&$0) }
            let (goesOn, resume) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
                switch step {
                case .output(let bytes, let isEnd):
                    if !state.isClosed { state.ready += bytes }
                    state.hasEnded = isEnd
                    state.isWorking = !state.isDone && state.ready.count < Self.blockSize
                case .later: state.isWorking = state.hasMore && !state.isDone
                case .failed(let fault):
                    (state.hasFailed, state.fault, state.isWorking) = (true, fault, false)
                }
                guard state.isAwaited, !state.ready.isEmpty || state.isDone else { return (state.isWorking, nil) }
                state.isAwaited = false
                return (state.isWorking, state.resume)
            }
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
        case .later: return .later
        // Pieces of files are lent to the loop's own space only.
        case .piece, .failed: return .failed(nil)
        }
        let block = work.block
        let isDone = block.withUnsafeBytes { block in
            work.encoder?.encode(UnsafeRawBufferPointer(rebasing: block[..<count]), isLast: isEnd, to: &made)
        }
        return isDone == true ? .output(made, isEnd: isEnd) : .failed(.noMemory)
    }
}

extension BodyFault {
    fileprivate static let noMemory = BodyFault(message: "there is no memory to compress the body")
}

extension BuiltRequest {
    /// Compresses a body that lies in memory.
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
