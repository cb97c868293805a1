import FerryTransport
import FoundationEssentials
import Synchronization

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

    var failure: (any Error)? { nil }

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
