import Dispatch
import FerryTransport
import Glibc
import Synchronization

/// Reads a file ahead of the loop, which never waits for the disk: blocks go from the reader to the loop and back.
///
/// One read is under way at a time, on a queue of Dispatch; the descriptor is closed when it has ended.
final class FileSource: BodySource {
    fileprivate struct Block {
        var bytes: [UInt8]
        var count: Int
    }

    fileprivate struct State {
        /// -1 when it is closed.
        var descriptor: Int32
        /// What is still to be read.
        var unread: Range<UInt64>
        /// What the loop has not been given.
        var left: UInt64
        var ready: [Block] = []
        /// Bytes of the first ready block that the loop has.
        var taken = 0
        var free: [[UInt8]] = []
        var blocks = 0
        var isReading = false
        var isAwaited = false
        var isClosed = false
        var failure: BodyFault?
        var resume: (@Sendable () -> Void)?
    }

    static let blockSize = 256 * 1024
    static let blockCount = 3

    let length: UInt64?
    private let path: String
    private let state: Mutex<State>

    /// Takes over the descriptor.
    init(_ descriptor: Int32, _ range: Range<UInt64>, path: String) {
        self.path = path
        length = UInt64(range.count)
        state = Mutex(State(descriptor: descriptor, unread: range, left: UInt64(range.count)))
    }

    deinit { close() }

    var failure: (any Error)? { state.withLock { $0.failure } }
    var isReading: Bool { state.withLock { $0.isReading } }

    func open(resume: @escaping @Sendable () -> Void) { state.withLock { $0.resume = resume } }

    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        let (fill, reads) = state.withLock { state in
            let fill = state.give(to: space)
            return (fill, state.beginsReading())
        }
        if reads { DispatchQueue.global().async { self.readAhead() } }
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

    /// [a queue of Dispatch] Fills the blocks that are free.
    private func readAhead() {
        while let read = state.withLock({ $0.nextRead() }) {
            var block = read.block
            let outcome = Self.read(read.descriptor, read.range, into: &block)
            let resume = state.withLock { [path] state in
                switch outcome {
                case .success(let count): state.took(Block(bytes: block, count: count), wanted: read.range, path)
                case .failure(let error): state.failure = BodyFault(file: path, errno: error.code)
                }
                return state.resumption()
            }
            resume?()
        }
        if let descriptor = state.withLock({ $0.abandonedDescriptor() }) { Glibc.close(descriptor) }
    }

    private struct SystemError: Error {
        let code: Int32
    }

    /// As many bytes of the range as the file has.
    private static func read(
        _ descriptor: Int32, _ range: Range<UInt64>, into block: inout [UInt8]
    ) -> Result<Int, SystemError> {
        block.withUnsafeMutableBytes { bytes in
            var count = 0
            while count < range.count {
                let got = pread(
                    descriptor, bytes.baseAddress! + count, range.count - count,
                    off_t(range.lowerBound) + off_t(count))
                if got < 0 && errno == EINTR { continue }
                if got < 0 { return .failure(SystemError(code: errno)) }
                if got == 0 { break }
                count += got
            }
            return .success(count)
        }
    }
}

extension FileSource.State {
    /// The next bytes for the loop.
    fileprivate mutating func give(to space: UnsafeMutableRawBufferPointer) -> TransferFill {
        if isClosed { return .failed }
        if left == 0 { return .end }
        guard let block = ready.first else {
            if failure != nil { return .failed }
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

    private var hasWork: Bool {
        !isClosed && failure == nil && !unread.isEmpty && (!free.isEmpty || blocks < FileSource.blockCount)
    }

    fileprivate mutating func beginsReading() -> Bool {
        if isReading || !hasWork { return false }
        isReading = true
        return true
    }

    /// What to read next, and where to; `nil` ends the reading.
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

    /// A file that has become shorter must not end as a message that looks whole.
    fileprivate mutating func took(_ block: FileSource.Block, wanted: Range<UInt64>, _ path: String) {
        if isClosed { return }
        if block.count > 0 { ready.append(block) }
        unread = wanted.lowerBound + UInt64(block.count)..<unread.upperBound
        if block.count < wanted.count {
            failure = BodyFault(message: "\(path) became shorter while it was sent")
        }
    }

    /// How to wake the loop, if it waits.
    fileprivate mutating func resumption() -> (@Sendable () -> Void)? {
        if !isAwaited { return nil }
        isAwaited = false
        return resume
    }

    /// The descriptor, to be closed: nobody wants it, and no read uses it.
    fileprivate mutating func abandonedDescriptor() -> Int32? {
        if !isClosed || isReading || descriptor < 0 { return nil }
        defer { descriptor = -1 }
        return descriptor
    }
}
