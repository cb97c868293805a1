/// How long runs took: counts in buckets that grow with the value, each a sixteenth of a power of two wide, so that a
/// percentile is at most 6.25 % too high. A fixed 4.3 KB, however much is recorded.
public struct LatencyHistogram: Sendable, Hashable {
    /// Buckets to a power of two, as a power of two.
    private static let precision = 4
    /// What takes longer, 19 hours, is counted as this.
    private static let limit: UInt64 = 1 << 36
    static let bucketCount = bucket(of: limit) + 1

    private let counts: [UInt64]

    /// Values recorded.
    public let count: UInt64
    /// All of them added up.
    public let sum: Duration
    /// The largest.
    public let maximum: Duration

    init(counts: [UInt64], microseconds sum: UInt64, maximum: UInt64) {
        self.counts = counts
        count = counts.reduce(0, &+)
        self.sum = .microseconds(Int64(clamping: sum))
        self.maximum = .microseconds(Int64(clamping: maximum))
    }

    /// The arithmetic mean; zero when nothing was recorded.
    public var mean: Duration { count == 0 ? .zero : sum / Int(clamping: count) }

    /// What `percent` of the values do not exceed; zero when nothing was recorded.
    public func percentile(_ percent: Double) -> Duration {
        if count == 0 { return .zero }
        let rank = max(1, (Double(count) * min(max(percent, 0), 100) / 100).rounded(.up))
        var seen: UInt64 = 0
        for bucket in counts.indices {
            seen += counts[bucket]
            if Double(seen) >= rank { return min(maximum, .microseconds(Int64(Self.upperEnd(of: bucket)))) }
        }
        return maximum
    }

    /// How many values are not above `microseconds`, which must be a power of two.
    func count(atMost microseconds: UInt64) -> UInt64 {
        counts[...Self.bucket(of: microseconds)].reduce(0, &+)
    }

    /// Values up to 2^(precision + 1) have a bucket each; above that the upper end is the last that belongs to one.
    static func bucket(of microseconds: UInt64) -> Int {
        let value = min(max(microseconds, 1), limit) - 1
        let exponent = max(0, UInt64.bitWidth - value.leadingZeroBitCount - precision - 1)
        return (exponent << precision) + Int(value >> UInt64(exponent))
    }

    static func upperEnd(of bucket: Int) -> UInt64 {
        let exponent = max(0, (bucket >> precision) - 1)
        let mantissa = UInt64(bucket - (exponent << precision))
        return (mantissa + 1) << UInt64(exponent)
    }
}
