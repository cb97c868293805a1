import Dispatch
import FerrySynchronization
import FerryTransport
import FoundationEssentials

/// Provides the bytes of a request body, piece by piece as the socket accepts them. Each attempt has its own source.
///
/// A source is cheap until the first call: a run in the queue has read nothing yet.
protocol BodySource: AnyObject, Sendable {
    /// The number of bytes; `nil` if it is not known in advance.
    var length: UInt64? { get }

    /// The reason why `fill` returned `failed`, or why the loop could not send the last piece: then `errno` is the
    /// system's error, or 0 if the file no longer has these bytes.
    func failure(sending errno: Int32) -> (any Error)?

    /// Called once, before the first `fill`. After a `later`, call `resume` to make the loop ask again. It may be
    /// called on any thread, and once too often.
    func open(resume: @escaping @Sendable () -> Void)

    /// [event loop] Writes the next bytes into `space`, which is not empty. Never blocks.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill

    /// Whether the application may wait, before it gives more bytes, until the server has responded to those that it
    /// has given. A file does not wait for anyone.
    var mayWaitForServer: Bool { get }

    /// [event loop] The trailer fields as lines. Requested after the end, and only if the body has announced some.
    var trailers: [UInt8] { get }

    /// The attempt is over, although its transfer may still be under way: what was not read is free for the next one.
    /// Any thread, any number of times.
    func giveWay()

    /// Called when the attempt has ended for any reason: stops reading and closes what is open. Any thread, any number
    /// of times.
    func close()
}

/// A body that creates a new source for each attempt, so that it can be sent again.
protocol PulledBody: Sendable {
    /// Whether another source can be created.
    var isReplayable: Bool { get }

    /// The names of the trailer fields that may follow it.
    var trailerNames: [String] { get }

    /// The files that it reads.
    var files: [FileBody] { get }

    /// Creates a source, in the caller's thread. Opens files unless they are among those that the run has open. Throws
    /// if the body cannot be sent at all.
    func makeSource(from files: BodyFiles) throws(BodyFault) -> any BodySource
}

extension PulledBody {
    var isReplayable: Bool { true }
    var trailerNames: [String] { [] }
    var files: [FileBody] { [] }

    func makeSource() throws(BodyFault) -> any BodySource { try makeSource(from: BodyFiles()) }
}

extension BodySource {
    var mayWaitForServer: Bool { false }
    var trailers: [UInt8] { [] }

    func giveWay() {}

    /// The reason why `fill` returned `failed`.
    var failure: (any Error)? { failure(sending: 0) }

    /// All bytes of a source that has them in memory.
    var wholeInMemory: [UInt8] {
        let size = Int(length ?? 0)
        return [UInt8](unsafeUninitializedCapacity: size) { space, filled in
            let space = UnsafeMutableRawBufferPointer(space)
            while filled < size,
                case .bytes(let count) = fill(UnsafeMutableRawBufferPointer(rebasing: space[filled..<size]))
            {
                filled += count
            }
        }
    }
}

/// Bytes in memory. They are shared, not copied.
struct MemoryBody<Bytes: ContiguousBytes & Sendable>: PulledBody {
    let bytes: Bytes

    func makeSource(from files: BodyFiles) -> any BodySource { MemorySource(bytes) }
}

/// Provides bytes from memory.
final class MemorySource<Bytes: ContiguousBytes & Sendable>: BodySource {
    let length: UInt64?
    private let bytes: Bytes
    /// Only the event loop reads and advances it.
    private let given = Atomic<Int>(0)

    init(_ bytes: Bytes) {
        self.bytes = bytes
        length = bytes.withUnsafeBytes { UInt64($0.count) }
    }

    func failure(sending errno: Int32) -> (any Error)? { nil }

    func open(resume: @escaping @Sendable () -> Void) {}

    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        let from = given.load(ordering: .relaxed)
        let count = bytes.withUnsafeBytes { bytes in
            let piece = bytes[from..<min(bytes.count, from + space.count)]
            space.copyMemory(from: UnsafeRawBufferPointer(rebasing: piece))
            return piece.count
        }
        if count == 0 { return .end }
        given.store(from + count, ordering: .relaxed)
        return .bytes(count)
    }

    func close() {}
}

/// Writes a sequence into a pipe in a task, which starts when bytes are first requested.
final class StreamSource: BodySource {
    /// Writes the whole sequence into the pipe.
    typealias Pump = @Sendable (BytePipe) async throws -> Void

    private enum Life {
        case unread
        case pumping(Task<Void, Never>)
        case closed
    }

    let length: UInt64?
    private let pipe: BytePipe
    private let pump: Pump
    private let whenDecided: (@Sendable (_ isRead: Bool) -> Void)?
    private let life = Mutex(Life.unread)

    /// `whenDecided` is called when bytes are first requested, or if the source ends before that.
    init(length: UInt64?, whenDecided: (@Sendable (_ isRead: Bool) -> Void)? = nil, _ pump: @escaping Pump) {
        self.length = length
        self.pump = pump
        self.whenDecided = whenDecided
        pipe = BytePipe(announced: length)
    }

    deinit { close() }

    func failure(sending errno: Int32) -> (any Error)? { pipe.failure }

    var mayWaitForServer: Bool { true }

    func open(resume: @escaping @Sendable () -> Void) { pipe.open(resume: resume) }

    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        life.withLock { life in
            guard case .unread = life else { return }
            whenDecided?(true)
            life = .pumping(
                Task { [pipe, pump] in
                    do {
                        try await pump(pipe)
                        pipe.finish()
                    } catch {
                        pipe.fail(error)
                    }
                })
        }
        return pipe.read(into: space)
    }

    func giveWay() {
        // Another attempt has a sequence of its own.
        guard let whenDecided else { return }
        let isUnread = life.withLock { life in
            guard case .unread = life else { return false }
            life = .closed
            whenDecided(false)
            return true
        }
        if isUnread { pipe.fail(CancellationError()) }
    }

    func close() {
        let before = life.withLock { life in
            defer { life = .closed }
            if case .unread = life { whenDecided?(false) }
            return life
        }
        pipe.close()
        switch before {
        // Not here, on the event loop's thread: the handlers of a cancellation are application code.
        case .pumping(let task): DispatchQueue.global().async { task.cancel() }
        case .unread, .closed: break
        }
    }

    /// Refuses a length that exceeds what HTTP can express.
    static func check(_ length: UInt64?) throws(BodyFault) {
        if let length, length > UInt64(Int64.max) {
            throw BodyFault(code: .invalidRequest(.body), message: "\(length) bytes is not a valid length of a body")
        }
    }
}

/// Several sources, one after another.
final class SourceSequence: BodySource {
    let length: UInt64?
    private let sources: [any BodySource]
    /// Only the event loop reads and advances it.
    private let current = Atomic<Int>(0)

    init(_ sources: [any BodySource]) {
        self.sources = sources
        length = Self.sum(sources.lazy.map(\.length))
    }

    func failure(sending errno: Int32) -> (any Error)? {
        sources.lazy.compactMap { $0.failure(sending: errno) }.first
    }

    func open(resume: @escaping @Sendable () -> Void) {
        for source in sources { source.open(resume: resume) }
    }

    var mayWaitForServer: Bool { sources.contains(where: \.mayWaitForServer) }

    /// Fills the space from several sources if possible: the heads of parts are small, and a piece for each would cost
    /// a packet.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        var filled = 0
        var index = current.load(ordering: .relaxed)
        defer { current.store(index, ordering: .relaxed) }
        while index < sources.count, filled < space.count {
            switch sources[index].fill(UnsafeMutableRawBufferPointer(rebasing: space[filled...])) {
            case .bytes(let count): filled += count
            case .piece(let piece): return .piece(piece)  // only for a space that is empty
            case .end:
                sources[index].close()
                index += 1
            case .later: return filled > 0 ? .bytes(filled) : .later
            case .failed: return .failed
            }
        }
        return filled > 0 ? .bytes(filled) : .end
    }

    func giveWay() {
        for source in sources { source.giveWay() }
    }

    func close() {
        for source in sources { source.close() }
    }

    /// `nil` if one of the lengths is unknown.
    private static func sum(_ lengths: some Sequence<UInt64?>) -> UInt64? {
        var sum: UInt64 = 0
        for length in lengths {
            guard let length else { return nil }
            let (next, isOver) = sum.addingReportingOverflow(length)
            if isOver || next > UInt64(Int64.max) { return nil }
            sum = next
        }
        return sum
    }
}

extension BuiltRequest {
    /// Makes the transfer read the body from a new source. `whole` is the body that an adapter may see.
    mutating func pull(_ body: some PulledBody, of whole: RequestBody) throws(RequestError) {
        pulled = whole
        if let fault = TrailerRules.fault(in: body.trailerNames) {
            throw RequestError(preparing: .invalidRequest(.headerName), message: fault, url: transfer.url)
        }
        transfer.sendsTrailers = !body.trailerNames.isEmpty
        let files = files ?? BodyFiles()
        self.files = files
        guard opensBody, !defersFiles || body.files.isEmpty else {
            transfer.body = .pull(length: nil)
            return
        }
        do throws(BodyFault) {
            var source = try body.makeSource(from: files)
            if let coding = whole.coding { source = CompressingSource(source, coding) }
            // Only a chunked body can have trailers.
            transfer.body = .pull(length: transfer.sendsTrailers ? nil : source.length)
            self.source = source
        } catch {
            throw RequestError(error, url: transfer.url)
        }
    }
}

extension BuiltRequest {
    /// Makes the transfer send what the writer writes, while the response is read.
    mutating func carry(_ body: WriterBody) throws(RequestError) {
        guard transfer.body.length == 0 else {
            throw RequestError(
                preparing: .invalidRequest(.body), message: "the request of an exchange must not have a body",
                url: transfer.url)
        }
        if transfer.method == "HEAD" { throw .bodyOfHead(url: transfer.url) }
        try pull(body, of: RequestBody(content: .pulled(body), contentType: nil))
        if !body.trailerNames.isEmpty {
            transfer.headers.append("Trailer", body.trailerNames.joined(separator: ", "))
        }
    }
}

extension TransferRequest.Body {
    var isNone: Bool { if case .none = self { true } else { false } }

    /// `nil` if it is not known in advance; 0 without a body.
    var length: UInt64? {
        switch self {
        case .none: 0
        case .bytes(let bytes): UInt64(bytes.count)
        case .data(let data): UInt64(data.count)
        case .pull(let length): length
        }
    }
}

extension UploadMeter {
    /// `nil` if there is nothing to count or no report to make.
    convenience init?(of transfer: borrowing TransferRequest, on queue: DispatchQueue, _ report: Report?) {
        if report == nil && transfer.body.length == 0 { return nil }
        self.init(on: queue, report)
    }
}
