import Cuio
import FerrySynchronization
import FerryTransport
import Glibc

/// Reads a file without blocking the event loop on the disk.
///
/// Data in the page cache is copied directly to the destination (preadv2(2) with `RWF_NOWAIT`). Other data is read
/// ahead on a thread of its device, one read at a time; blocks go from the reader to the loop and back. If the
/// event loop supports it, the system itself sends data from the page cache (sendfile(2)), at three fifths of the cost.
final class FileSource: BodySource {
    fileprivate struct Block {
        var bytes: [UInt8]
        var count: Int
    }

    fileprivate struct State {
        /// `nil` when it is closed. A read that has begun keeps it open.
        var file: ReadableFile?
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

    init(_ file: ReadableFile, _ range: Range<UInt64>, path: String, looksInMemory: Bool = true) {
        self.path = path
        length = UInt64(range.count)
        state = Mutex(
            State(file: file, looksInMemory: looksInMemory, unread: range, left: UInt64(range.count)))
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
        let (fill, file) = state.withLock { [path] state in
            let fill = state.give(to: space, path)
            return (fill, state.readsAhead && state.beginsReading() ? state.file : nil)
        }
        guard let file else { return fill }
        let code = FileThreads.run(for: file.descriptor) { self.readAhead() }
        if code == 0 { return fill }
        // There is no thread to read on.
        state.withLock { [path] state in
            state.failure = BodyFault(file: path, errno: code)
            state.isReading = false
        }
        if case .later = fill { return .failed }
        return fill
    }

    func close() {
        // The file may be closed here, which must not happen under the lock.
        let file = state.withLock { state in
            state.isClosed = true
            state.resume = nil
            state.ready = []
            state.free = []
            return state.file.take()
        }
        withExtendedLifetime(file) {}
    }

    /// [thread of the device] Fills the free blocks.
    private func readAhead() {
        while let read = state.withLock({ $0.nextRead() }) {
            var block = read.block
            let outcome = Self.read(read.file.descriptor, read.range, into: &block)
            let resume = state.withLock { [path] state in
                switch outcome {
                case .success(let count): state.took(Block(bytes: block, count: count), wanted: read.range.count, path)
                case .failure(let code): state.failure = BodyFault(file: path, errno: code)
                }
                return state.resumption()
            }
            resume?()
        }
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
        // The event loop closes its descriptor itself.
        guard let file, file.isLocal, looksInMemory, !isReading, unread.count >= FileSource.leastPiece,
            TransferPiece.isTaken(for: space)
        else { return nil }
        let range = unread.prefix(FileSource.blockSize)
        guard TransferPiece.isInMemory(file.descriptor, range) else { return nil }
        let own = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)
        guard own >= 0 else { return nil }
        return TransferPiece(descriptor: own, offset: Int64(range.lowerBound), length: UInt64(range.count))
    }

    /// How many of the next bytes came from the page cache; `nil` if they have to be read ahead, 0 if there are none.
    ///
    /// It runs under the lock, because it only copies.
    private mutating func readFromMemory(into space: UnsafeMutableRawBufferPointer) -> Int? {
        guard let file, looksInMemory, !isReading else { return nil }
        var vector = iovec(iov_base: space.baseAddress, iov_len: min(space.count, unread.count))
        let got = preadv2(file.descriptor, &vector, 1, off_t(unread.lowerBound), Int32(FERRY_UIO_NOWAIT))
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
    fileprivate mutating func nextRead() -> (file: ReadableFile, range: Range<UInt64>, block: [UInt8])? {
        guard let file, hasWork else {
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
        return (file, unread.lowerBound..<unread.lowerBound + size, block)
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
}

extension BodyFault {
    /// A file that was opened and then could not be sent, with the system's reason, or 0 if the file has become
    /// shorter.
    fileprivate static func sending(_ path: String, errno code: Int32) -> BodyFault {
        code == 0 ? BodyFault(message: "\(path) became shorter during the upload") : BodyFault(file: path, errno: code)
    }
}

/// The files that the body of a run is read from. Each is opened once, so that every attempt sends the same file, and
/// no attempt after the first waits for the file system to open it.
final class BodyFiles: Sendable {
    private struct State {
        /// By the bytes of their paths: strings are equal if they differ only in Unicode normalisation, paths are not.
        var files: [[UInt8]: ReadableFile] = [:]
        var isClosed = false
    }

    private let state: Mutex<State>

    /// The files that `others` has open, and more that are opened here.
    init(sharing others: BodyFiles? = nil) {
        state = Mutex(State(files: others?.state.withLock { $0.files } ?? [:]))
    }

    /// The file, opened now unless it is open.
    func open(_ path: String, isLocal: Bool?) throws(BodyFault) -> ReadableFile {
        let key = Array(path.utf8)
        let (known, isClosed) = state.withLock { ($0.files[key], $0.isClosed) }
        if let known { return known }
        if isClosed { throw BodyFault(file: path, errno: ECANCELED) }
        let file: ReadableFile
        do throws(ReadableFile.Fault) {
            file = try ReadableFile(path, isLocal: isLocal)
        } catch {
            throw BodyFault(file: path, error)
        }
        state.withLock { if !$0.isClosed { $0.files[key] = file } }
        return file
    }

    /// The run has ended.
    func close() {
        let old = state.withLock { state in
            state.isClosed = true
            defer { state.files = [:] }
            return state.files
        }
        // The last reference closes the file, which must not happen under the lock.
        withExtendedLifetime(old) {}
    }

    /// Opens those that are not open yet on threads that no task needs. A run that ends in the meantime does not wait.
    func open(
        _ bodies: [FileBody], for control: RunControl, url: String, until deadline: ContinuousClock.Instant?
    ) async throws(RequestError) {
        for body in bodies where state.withLock({ $0.files[Array(body.path.utf8)] }) == nil {
            let result: Result<Void, BodyFault>
            do throws(RequestError) {
                result = try await control.ask(url, until: deadline) { await self.opened(body) }
            } catch {
                // It need not be opened any more, except by a download that begins anew.
                if control.end != nil || error.code == .timeout(.deadline) { close() }
                throw error
            }
            do throws(BodyFault) { try result.get() } catch { throw RequestError(error, url: url) }
        }
    }

    private func opened(_ body: FileBody) async -> Result<Void, BodyFault> {
        await withCheckedContinuation { continuation in
            let code = FileThreads.run(forFileAt: body.path) {
                let result = Result { () throws(BodyFault) in _ = try self.open(body.path, isLocal: body.isLocal) }
                continuation.resume(returning: result)
            }
            if code == 0 { return }
            let fault = code == ETIMEDOUT ? ReadableFile.Fault.hangs : .system(errno: code)
            continuation.resume(returning: .failure(BodyFault(file: body.path, fault)))
        }
    }
}

extension BodyFault {
    fileprivate init(file path: String, _ fault: ReadableFile.Fault) {
        switch fault {
        case .system(let code): self.init(file: path, errno: code)
        case .notRegular: self.init(message: "\(path) is not a regular file")
        case .noSize: self.init(message: "\(path) has content, but no size; send it as a stream")
        case .hangs: self.init(message: "\(path): its file system does not respond")
        }
    }
}
