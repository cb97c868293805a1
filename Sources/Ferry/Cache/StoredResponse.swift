import FerryCache
import FerryTransport
import Synchronization

/// An answer that is kept, as the memory holds it: hits share its head and body.
final class StoredResponse: Sendable {
    let result: TransferResult
    let marks: CacheEntry.Marks
    let attributes: CacheAttributes
    /// When the store was told of a use.
    private let touched: Atomic<CacheTime>

    init(_ result: TransferResult, _ marks: CacheEntry.Marks, _ attributes: CacheAttributes) {
        // It is counted by its body and head; what a run reads out of it is that run's to hold.
        result.keepNothing()
        self.result = result
        self.marks = marks
        self.attributes = attributes
        touched = Atomic(marks.stored)
    }

    /// `nil` when a part of it is not what it should be.
    convenience init?(_ entry: CacheEntry) {
        guard let attributes = entry.withAttributes({ CacheAttributes($0) }),
            let result = entry.withHead({ head in
                entry.withBody { try? TransferResult(id: 1, head: head, body: $0) }
            })
        else { return nil }
        self.init(result, entry.marks, attributes)
    }

    /// Bytes that it takes, about.
    var count: Int { Int(clamping: result.bodyLength) + Int(clamping: result.headBytesReceived) + 1024 }

    /// Whether the store is to be told of a use; once for a while.
    func isUsed(at now: CacheTime) -> Bool {
        let last = touched.load(ordering: .relaxed)
        let (age, overflow) = now.subtractingReportingOverflow(last)
        if !overflow && age.magnitude < UInt64(Self.touchTime) { return false }
        return touched.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
    }

    /// A minute, in microseconds.
    private static let touchTime: Int64 = 60_000_000
}
