import FerryTransport
import Synchronization

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

    var failure: (any Error)? { sources.lazy.compactMap(\.failure).first }

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
