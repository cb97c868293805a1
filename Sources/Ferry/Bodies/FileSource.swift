import Cuio
import FerryTransport
import Glibc
import Synchronization

/// Reads a file without blocking the event loop on the disk.
///
/// Data in the page cache is copied directly to the destination (preadv2(2) with `RWF_NOWAIT`). Other data is read
/// ahead on a thread of its device, one read at a time; blocks travel from the reader to the loop and back. The
/// descriptor is closed when no read uses it. If the event loop supports it, the system itself sends data from the page
/// cache (sendfile(2)), at three fifths of the cost.
final class FileSource: BodySource {
    fileprivate struct Block {
        var bytes: [UInt8]
        var count: Int
    }

    fileprivate struct State {
        /// -1 when it is closed.
        var descriptor: Int32
        /// Whether reading from the page cache is worth a try.
        var looksInMemory: Bool
        /// The range that has not been read yet.
        var unread: Range<UInt64>
        /// The number of bytes that have not been given to the event loop yet.
        var left: UInt64
        var ready: [Block] = []
        /// The number of bytes of the first ready block that the event loop has taken.
        var taken = 0
        var free: [[UInt8]] = []
        var blocks = 0
        var isReading = false
        var isAwaited = false
        var isClosed = false
        /// Whether the event loop has a piece that may be unsent. It asks for more only after sending it.
        var lendsPiece = false
        var failure: BodyFault?
        var resume: (@Sendable () -> Void)?
    }

    static let blockSize = 256 * 1024
    static let blockCount = 3
    /// Smaller amounts are sent faster by copying.
    static let leastPiece = 64 * 1024

    let length: UInt64?
    private let path: String
    private let state: Mutex<State>

    /// Takes ownership of the descriptor.
    init(_ descriptor: Int32, _ range: Range<UInt64>, path: String, looksInMemory: Bool = true) {
        self.path = path
        length = UInt64(range.count)
        state = Mutex(
            State(
                descriptor: descriptor, looksInMemory: looksInMemory, unread: range, left: UInt64(range.count)))
    }

    deinit { close() }

    func failure(sending errno: Int32) -> (any Error)? {
        state.withLock { state in
            state.failure ?? (state.lendsPiece ? .sending(path, errno: errno) : nil)
        }
    }

    var isReading: Bool { state.withLock { $0.isReading } }

    func open(resume: @escaping @Sendable () -> Void) { state.withLock { $0.resume = resume } }

    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        let (fill, descriptor) = state.withLock { [path] state in
            let fill = state.give(to: space, path)
            return (fill, state.readsAhead && state.beginsReading() ? state.descriptor : nil)
        }
        // Nobody closes the descriptor while it counts as being read.
        guard let descriptor else { return fill }
        let code = FileThreads.run(for: descriptor) { self.readAhead() }
        if code == 0 { return fill }
        stopReading(errno: code)
        if case .later = fill { return .failed }
        return fill
    }

    func close() {
        let descriptor = state.withLock { state in
            state.isClosed = true
            state.resume = nil
            state.ready = []
            state.free = []
            return state.abandonedDescriptor()
        }
        if let descriptor { Glibc.close(descriptor) }
    }

    /// There is no thread to read on.
    private func stopReading(errno: Int32) {
        let descriptor = state.withLock { [path] state in
            state.failure = BodyFault(file: path, errno: errno)
            state.isReading = false
            return state.abandonedDescriptor()
        }
        if let descriptor { Glibc.close(descriptor) }
    }

    /// [thread of the device] Fills the free blocks.
    private func readAhead() {
        while let read = state.withLock({ $0.nextRead() }) {
            var block = read.block
            let outcome = Self.read(read.descriptor, read.range, into: &block)
            let resume = state.withLock { [path] state in
                switch outcome {
                case .success(let count): state.took(Block(bytes: block, count: count), wanted: read.range.count, path)
                case .failure(let code): state.failure = BodyFault(file: path, errno: code)
                }
                return state.resumption()
            }
            resume?()
        }
        if let descriptor = state.withLock({ $0.abandonedDescriptor() }) { Glibc.close(descriptor) }
    }

    private enum Outcome {
        case success(Int)
        case failure(errno: Int32)
    }

    /// Reads the bytes of the range, or as many as the file has.
    private static func read(_ descriptor: Int32, _ range: Range<UInt64>, into block: inout [UInt8]) -> Outcome {
        block.withUnsafeMutableBytes { bytes in
            var count = 0
            while count < range.count {
                let got = pread(
                    descriptor, bytes.baseAddress! + count, range.count - count,
                    off_t(range.lowerBound) + off_t(count))
                if got < 0 && errno == EINTR { continue }
                if got < 0 { return .failure(errno: errno) }
                if got == 0 { break }
                count += got
            }
            return .success(count)
        }
    }
}

extension FileSource.State {
    /// Provides the next bytes for the event loop.
    fileprivate mutating func give(to space: UnsafeMutableRawBufferPointer, _ path: String) -> TransferFill {
        if isClosed { return .failed }
        lendsPiece = false
        if left == 0 { return .end }
        guard let block = ready.first else {
            if failure != nil { return .failed }
            if let piece = piece(for: space) {
                advance(by: Int(piece.length), isWhole: true, path)
                left -= piece.length
                lendsPiece = true
                return .piece(piece)
            }
            if let count = readFromMemory(into: space) {
                advance(by: count, isWhole: count > 0, path)
                left -= UInt64(count)
                return count > 0 ? .bytes(count) : .failed
            }
            isAwaited = true
            return .later
        }
        let count = min(space.count, block.count - taken)
        block.bytes.withUnsafeBytes { bytes in
            space.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[taken..<taken + count]))
        }
        taken += count
        left -= UInt64(count)
        if taken == block.count {
            free.append(ready.removeFirst().bytes)
            taken = 0
        }
        return .bytes(count)
    }

    /// The next bytes as a piece of the file, if the event loop can send it without a copy and without waiting for the
    /// disk.
    ///
    /// It has its own descriptor, because this one may be closed before the piece is sent.
    private func piece(for space: UnsafeMutableRawBufferPointer) -> TransferPiece? {
        guard looksInMemory, !isReading, unread.count >= FileSource.leastPiece, TransferPiece.isTaken(for: space) else {
            return nil
        }
        let range = unread.prefix(FileSource.blockSize)
        guard TransferPiece.isInMemory(descriptor, range) else { return nil }
        let own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard own >= 0 else { return nil }
        return TransferPiece(descriptor: own, offset: Int64(range.lowerBound), length: UInt64(range.count))
    }

    /// How many of the next bytes came from the page cache; `nil` if they have to be read ahead, 0 if there are none.
    ///
    /// It runs under the lock, so that nobody closes the descriptor in the meantime; it only copies.
    private mutating func readFromMemory(into space: UnsafeMutableRawBufferPointer) -> Int? {
        guard looksInMemory, !isReading else { return nil }
        var vector = iovec(iov_base: space.baseAddress, iov_len: min(space.count, unread.count))
        let got = preadv2(descriptor, &vector, 1, off_t(unread.lowerBound), Int32(FERRY_UIO_NOWAIT))
        if got >= 0 { return got }
        // Some file systems do not support this.
        if errno != EAGAIN { looksInMemory = false }
        return nil
    }

    /// Whether to read from the disk: the event loop waits for data, or has waited before.
    fileprivate var readsAhead: Bool { isAwaited || blocks > 0 }

    private var hasWork: Bool {
        !isClosed && failure == nil && !unread.isEmpty && (!free.isEmpty || blocks < FileSource.blockCount)
    }

    fileprivate mutating func beginsReading() -> Bool {
        if isReading || !hasWork { return false }
        isReading = true
        return true
    }

    /// The next read and its destination; `nil` ends the reading.
    fileprivate mutating func nextRead() -> (descriptor: Int32, range: Range<UInt64>, block: [UInt8])? {
        guard hasWork else {
            isReading = false
            return nil
        }
        let size = min(UInt64(FileSource.blockSize), unread.upperBound - unread.lowerBound)
        let block: [UInt8]
        if let used = free.popLast() {
            block = used
        } else {
            blocks += 1
            block = [UInt8](repeating: 0, count: Int(size))
        }
        return (descriptor, unread.lowerBound..<unread.lowerBound + size, block)
    }

    fileprivate mutating func took(_ block: FileSource.Block, wanted: Int, _ path: String) {
        if isClosed { return }
        if block.count > 0 { ready.append(block) }
        advance(by: block.count, isWhole: block.count == wanted, path)
    }

    /// A file that has become shorter must not end as a complete request.
    private mutating func advance(by count: Int, isWhole: Bool, _ path: String) {
        unread = unread.lowerBound + UInt64(count)..<unread.upperBound
        if !isWhole { failure = .sending(path, errno: 0) }
    }

    /// How to wake the event loop, if it waits.
    fileprivate mutating func resumption() -> (@Sendable () -> Void)? {
        if !isAwaited { return nil }
        isAwaited = false
        return resume
    }

    /// The descriptor, to be closed because the body has ended and no read uses it.
    fileprivate mutating func abandonedDescriptor() -> Int32? {
        if !isClosed || isReading || descriptor < 0 { return nil }
        defer { descriptor = -1 }
        return descriptor
    }
}

extension BodyFault {
    /// A file that was opened and then could not be sent, with the system's reason, or 0 if the file has become
    /// shorter.
    fileprivate static func sending(_ path: String, errno code: Int32) -> BodyFault {
        code == 0 ? BodyFault(message: "\(path) became shorter during the upload") : BodyFault(file: path, errno: code)
    }
}
