internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// Hands out the requests of the closed model one by one, so that all senders are at work until the last.
final class BenchTickets: Sendable {
    private let left: Atomic<Int>
    private let end: UInt64

    init(start: UInt64, requests: Int?, duration: Duration?) {
        left = Atomic(requests ?? .max)
        end = duration.map { start + UInt64($0.microseconds) * 1000 } ?? .max
    }

    /// Whether there is one more to send.
    func take() -> Bool {
        left.wrappingSubtract(1, ordering: .relaxed).newValue >= 0 && (end == .max || monotonicNanoseconds() < end)
    }
}
