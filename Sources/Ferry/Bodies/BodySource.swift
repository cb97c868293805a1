import Dispatch
import FerryTransport
import FoundationEssentials
import Synchronization

/// The bytes of a request's body, given out piece by piece as the socket takes them. One object for each attempt.
///
/// Cheap until it is first asked: a run that waits in the queue has read nothing yet.
protocol BodySource: AnyObject, Sendable {
    /// How many bytes there will be; `nil` when that is not known beforehand.
    var length: UInt64? { get }

    /// Why `fill` said `failed`, or why the loop could not send the last piece: with the `errno` of that, or 0 when
    /// the file has no such bytes any more.
    func failure(sending errno: Int32) -> (any Error)?

    /// Called once, before the first `fill`. After a `later`, `resume` makes the loop ask again; it may be called on
    /// any thread, and once too often.
    func open(resume: @escaping @Sendable () -> Void)

    /// [loop's thread] Puts the next bytes into `space`, which is not empty. Never blocks.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill

    /// The attempt has ended, whatever way: nothing is read any more, and what was open is closed. Any thread, any
    /// number of times.
    func close()
}

/// A body that sources are made from: a new one for each attempt, so that it can be sent again.
protocol PulledBody: Sendable {
    /// Whether another source can be made of it.
    var isReplayable: Bool { get }

    /// Makes a source, in the caller's thread. What cannot be sent at all is found out here.
    func makeSource() throws(BodyFault) -> any BodySource
}

extension PulledBody {
    var isReplayable: Bool { true }
}

extension BodySource {
    /// Why `fill` said `failed`.
    var failure: (any Error)? { failure(sending: 0) }

    /// All bytes of a source that has them at hand.
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

/// Bytes that lie in memory; they are shared, not copied.
struct MemoryBody<Bytes: ContiguousBytes & Sendable>: PulledBody {
    let bytes: Bytes

    func makeSource() -> any BodySource { MemorySource(bytes) }
}

/// Gives out bytes that lie in memory.
final class MemorySource<Bytes: ContiguousBytes & Sendable>: BodySource {
    let length: UInt64?
    private let bytes: Bytes
    /// Only the loop's thread asks and moves it.
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

/// Pumps a sequence into a pipe by a task, from the first time that bytes are wanted.
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
    private let whenUnread: (@Sendable () -> Void)?
    private let life = Mutex(Life.unread)

    /// `whenUnread` is called when it ends without having been asked for a byte.
    init(length: UInt64?, whenUnread: (@Sendable () -> Void)? = nil, _ pump: @escaping Pump) {
        self.length = length
        self.pump = pump
        self.whenUnread = whenUnread
        pipe = BytePipe(announced: length)
    }

    deinit { close() }

    func failure(sending errno: Int32) -> (any Error)? { pipe.failure }

    func open(resume: @escaping @Sendable () -> Void) { pipe.open(resume: resume) }

    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        life.withLock { life in
            guard case .unread = life else { return }
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

    func close() {
        let before = life.withLock { life in
            defer { life = .closed }
            return life
        }
        pipe.close()
        switch before {
        case .unread: whenUnread?()
        case .pumping(let task): task.cancel()
        case .closed: break
        }
    }

    /// More than a length on the wire can be.
    static func check(_ length: UInt64?) throws(BodyFault) {
        if let length, length > UInt64(Int64.max) {
            throw BodyFault(code: .invalidRequest(.body), message: "no body has \(length) bytes")
        }
    }
}

/// Sources one after another, as one.
final class SourceSequence: BodySource {
    let length: UInt64?
    private let sources: [any BodySource]
    /// Only the loop's thread asks and moves it.
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

    /// As much as there is, also from several: the heads of parts are small, and a piece of their own each would cost a
    /// packet.
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

    func close() {
        for source in sources { source.close() }
    }

    /// `nil` when one of them is not known.
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
    /// Has the body pulled from a new source. `whole` is the body as an adapter may see it.
    mutating func pull(_ body: some PulledBody, of whole: RequestBody) throws(RequestError) {
        pulled = whole
        guard opensBody else {
            transfer.body = .pull(length: nil)
            return
        }
        do throws(BodyFault) {
            var source = try body.makeSource()
            if let coding = whole.coding { source = CompressingSource(source, coding) }
            transfer.body = .pull(length: source.length)
            self.source = source
        } catch {
            throw RequestError(error, url: transfer.url)
        }
    }
}

extension TransferRequest.Body {
    var isNone: Bool { if case .none = self { true } else { false } }

    /// `nil` where it is not known beforehand; nothing is 0 long.
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
    /// `nil` where there is nothing to count and nobody to tell.
    convenience init?(of transfer: borrowing TransferRequest, on queue: DispatchQueue, _ report: Report?) {
        if report == nil && transfer.body.length == 0 { return nil }
        self.init(on: queue, report)
    }
}
