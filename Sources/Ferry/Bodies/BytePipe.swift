import FerrySynchronization
import FerryTransport
import FoundationEssentials

/// A bounded pipe of bytes from a task, which waits while the pipe is full, to the event loop, which never waits.
///
/// If a length is announced, both ends enforce it. The last byte is not sent before the writer has finished, so that a
/// body that turns out to be too long never reaches the server as a complete request.
final class BytePipe: Sendable {
    static let capacity = 256 * 1024

    fileprivate enum End {
        case open
        case finished
        case failed(any Error)
        /// No more bytes are accepted; those in the pipe can still be read.
        case stopped
        case closed
    }

    fileprivate struct State {
        /// A ring of `capacity` bytes, allocated with the first write.
        var ring: [UInt8] = []
        var first = 0
        var count = 0
        var written: UInt64 = 0
        var end = End.open
        var writer: UnsafeContinuation<Void, Never>?
        var isAwaited = false
        var resume: (@Sendable () -> Void)?
    }

    private let announced: UInt64?
    private let state = Mutex(State())

    init(announced: UInt64?) { self.announced = announced }

    var failure: (any Error)? {
        state.withLock { state in
            if case .failed(let error) = state.end { error } else { nil }
        }
    }

    var isClosed: Bool {
        state.withLock { state in
            switch state.end {
            case .failed, .closed: true
            case .open, .finished, .stopped: false
            }
        }
    }

    // MARK: Reading end, for the event loop

    func open(resume: @escaping @Sendable () -> Void) { state.withLock { $0.resume = resume } }

    func read(into space: UnsafeMutableRawBufferPointer) -> TransferFill {
        let (fill, writer) = state.withLock { state in
            let fill = state.give(to: space, announced)
            return (fill, state.count <= Self.capacity / 2 ? state.writer.take() : nil)
        }
        writer?.resume()
        return fill
    }

    /// Closes the reading end. A waiting writer continues and gets `CancellationError`.
    func close() {
        let writer = state.withLock { state in
            if case .failed = state.end {} else { state.end = .closed }
            state.resume = nil
            state.ring = []
            state.count = 0
            return state.writer.take()
        }
        writer?.resume()
    }

    /// Accepts no more bytes. A waiting writer continues, and its `write` throws.
    func stop() {
        let writer = state.withLock { state in
            if case .open = state.end { state.end = .stopped }
            return state.writer.take()
        }
        writer?.resume()
    }

    // MARK: Writing end

    /// Writes all bytes, as space becomes free. Throws `CancellationError` if the reading end is closed.
    func write(_ bytes: borrowing some ContiguousBytes) async throws {
        var done = 0
        while true {
            let (isTaken, isAll) = bytes.withUnsafeBytes { bytes in
                let count = put(UnsafeRawBufferPointer(rebasing: bytes[done...]))
                done += count ?? 0
                return (count != nil, done == bytes.count)
            }
            if !isTaken { throw CancellationError() }
            if isAll { return }
            await room()
        }
    }

    /// Ends the body.
    func finish() {
        end { [announced] written in
            if let announced, written < announced {
                return .failed(
                    BodyFault(message: "the stream ended after \(written) of \(announced) announced bytes"))
            }
            return .finished
        }
    }

    /// Ends the body with an error; bytes that were not read yet are not sent.
    func fail(_ error: any Error) {
        end { _ in .failed(error) }
    }

    private func end(_ decide: (UInt64) -> End) {
        state.withLock { state in
            if case .open = state.end { state.end = decide(state.written) }
            return state.resumption()
        }?()
    }

    /// The number of bytes that fitted; `nil` if the reading end is closed.
    private func put(_ bytes: UnsafeRawBufferPointer) -> Int? {
        let (count, resume) = state.withLock { state in
            let count = state.take(bytes, announced)
            return (count, state.resumption())
        }
        resume?()
        return count
    }

    private func room() async {
        await withUnsafeContinuation { continuation in
            let isThere = state.withLock { state in
                guard case .open = state.end, state.count == Self.capacity else { return true }
                precondition(state.writer == nil, "a body is written by one task at a time")
                state.writer = continuation
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}

extension BytePipe.State {
    fileprivate mutating func take(_ bytes: UnsafeRawBufferPointer, _ announced: UInt64?) -> Int? {
        guard case .open = end else { return nil }
        if let announced, announced - written < bytes.count {
            end = .failed(BodyFault(message: "the stream has more than the \(announced) announced bytes"))
            return nil
        }
        if ring.isEmpty, !bytes.isEmpty {
            // Not initialised: pages that are never written cost nothing.
            ring = [UInt8](unsafeUninitializedCapacity: BytePipe.capacity) { $1 = BytePipe.capacity }
        }
        let size = min(bytes.count, ring.count - count)
        if size == 0 { return 0 }
        let start = (first + count) % ring.count
        let straight = min(size, ring.count - start)
        ring.withUnsafeMutableBytes { ring in
            UnsafeMutableRawBufferPointer(rebasing: ring[start...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<straight]))
            ring.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[straight..<size]))
        }
        count += size
        written += UInt64(size)
        return size
    }

    fileprivate mutating func give(to space: UnsafeMutableRawBufferPointer, _ announced: UInt64?) -> TransferFill {
        var available = count
        switch end {
        case .failed, .closed: return .failed
        case .finished: if count == 0 { return .end }
        case .open, .stopped: if written == announced, count > 0 { available -= 1 }
        }
        if available == 0 {
            isAwaited = true
            return .later
        }
        let size = min(available, space.count)
        let straight = min(size, ring.count - first)
        ring.withUnsafeBytes { ring in
            space.copyMemory(from: UnsafeRawBufferPointer(rebasing: ring[first..<first + straight]))
            UnsafeMutableRawBufferPointer(rebasing: space[straight...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: ring[..<(size - straight)]))
        }
        count -= size
        // Restart at the beginning if possible, so that a slow writer uses few pages.
        first = count == 0 ? 0 : (first + size) % ring.count
        return .bytes(size)
    }

    /// How to wake the event loop, if it waits.
    fileprivate mutating func resumption() -> (@Sendable () -> Void)? {
        if !isAwaited { return nil }
        isAwaited = false
        return resume
    }
}
