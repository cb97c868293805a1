/// Counts durations in buckets that grow with the value: whole nanoseconds below 256 ns, above that within 0.8 %.
///
/// Every power of two is divided into 128 equal buckets, so recording is a shift and an addition, a percentile needs one
/// pass, and the size does not depend on how many values were recorded. Two histograms add up without loss.
public struct Histogram: Sendable, Equatable {
    /// Buckets to a power of two, as a power of two.
    private static let precision = 7
    private static let bucketCount = bucket(of: .max) + 1

    private var counts: [UInt64]
    /// Values recorded.
    public private(set) var count: UInt64 = 0
    /// The largest value recorded, exact; 0 when there is none.
    public private(set) var maximum: UInt64 = 0
    /// The smallest value recorded, exact; 0 when there is none.
    public private(set) var minimum: UInt64 = 0
    private var sum: Double = 0

    /// An empty histogram, about 60 KB.
    public init() {
        counts = Array(repeating: 0, count: Self.bucketCount)
    }

    /// Records one duration in nanoseconds.
    public mutating func record(_ value: UInt64) {
        counts[Self.bucket(of: value)] += 1
        minimum = count == 0 ? value : min(minimum, value)
        maximum = max(maximum, value)
        count += 1
        sum += Double(value)
    }

    /// Adds all the values of another histogram.
    public mutating func add(_ other: Histogram) {
        if other.count == 0 { return }
        for bucket in counts.indices where other.counts[bucket] != 0 {
            counts[bucket] += other.counts[bucket]
        }
        minimum = count == 0 ? other.minimum : min(minimum, other.minimum)
        maximum = max(maximum, other.maximum)
        count += other.count
        sum += other.sum
    }

    /// The arithmetic mean; 0 when nothing was recorded.
    public var mean: Double {
        count == 0 ? 0 : sum / Double(count)
    }

    /// The value that `percent` of the recorded values do not exceed; 0 when nothing was recorded.
    ///
    /// It is the upper end of the value's bucket, and never more than the maximum.
    public func percentile(_ percent: Double) -> UInt64 {
        if count == 0 { return 0 }
        let rank = max(1, (Double(count) * min(max(percent, 0), 100) / 100).rounded(.up))
        var seen: UInt64 = 0
        for bucket in counts.indices {
            seen += counts[bucket]
            if Double(seen) >= rank { return max(minimum, min(maximum, Self.upperEnd(of: bucket))) }
        }
        return maximum
    }

    /// Values below 2^(precision + 1) have a bucket each; the mantissa of larger ones keeps `precision` bits.
    private static func bucket(of value: UInt64) -> Int {
        let exponent = max(0, UInt64.bitWidth - value.leadingZeroBitCount - precision - 1)
        return (exponent << precision) + Int(value >> UInt64(exponent))
    }

    private static func upperEnd(of bucket: Int) -> UInt64 {
        let exponent = max(0, (bucket >> precision) - 1)
        let mantissa = UInt64(bucket - (exponent << precision))
        return (mantissa << UInt64(exponent)) + ((1 << UInt64(exponent)) - 1)
    }
}
