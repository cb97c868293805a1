import Synchronization

/// A histogram under construction, by many threads at once and without a lock.
final class LatencyRecorder: Sendable {
    // Behind the buckets.
    private static let sum = LatencyHistogram.bucketCount
    private static let maximum = LatencyHistogram.bucketCount + 1

    private let words = AtomicArray(count: LatencyHistogram.bucketCount + 2)

    func record(_ duration: Duration) {
        let value = UInt64(clamping: duration.microsecondsRoundedUp)
        words[LatencyHistogram.bucket(of: value)].add(1, ordering: .relaxed)
        words[Self.sum].add(value, ordering: .relaxed)
        // Rarely a new maximum: a look first keeps the line shared.
        if words[Self.maximum].load(ordering: .relaxed) < value { words[Self.maximum].max(value, ordering: .relaxed) }
    }

    var histogram: LatencyHistogram {
        LatencyHistogram(
            counts: (0..<LatencyHistogram.bucketCount).map { words[$0].load(ordering: .relaxed) },
            microseconds: words[Self.sum].load(ordering: .relaxed),
            maximum: words[Self.maximum].load(ordering: .relaxed))
    }
}

extension Duration {
    fileprivate var microsecondsRoundedUp: Int64 {
        let whole = microseconds
        return whole < .max && self > .microseconds(whole) ? whole + 1 : whole
    }
}
