/// Counts durations in buckets that grow with the value: whole nanoseconds below 256 ns, above that within 0.8 %.
///
/// Every power of two is divided into 128 equal buckets. So recording is a shift and an addition, a percentile needs
/// one pass, and the size depends on the range of the values, not on their number: 1 KB for each doubling between the
/// smallest and the largest. Histograms can be added and subtracted without loss.
public struct Histogram: Sendable, Equatable {
    /// The number of buckets for a power of two, as a power of two.
    private static let precision = 7

    /// The buckets from the first to the last that was ever hit.
    private var counts: [UInt64] = []
    private var first = 0
    /// The number of recorded values.
    public private(set) var count: UInt64 = 0
    /// The largest recorded value, exact; 0 if there is none.
    public private(set) var maximum: UInt64 = 0
    /// The smallest recorded value, exact; 0 if there is none.
    public private(set) var minimum: UInt64 = 0
    private var sum: Double = 0

    /// Makes an empty histogram.
    public init() {}

    /// Records one duration in nanoseconds.
    public mutating func record(_ value: UInt64) {
        let bucket = Self.bucket(of: value)
        reach(bucket, bucket)
        counts[bucket - first] += 1
        minimum = count == 0 ? value : min(minimum, value)
        maximum = max(maximum, value)
        count += 1
        sum += Double(value)
    }

    /// Adds all the values of another histogram.
    public mutating func add(_ other: Histogram) {
        if other.count == 0 { return }
        reach(other.first, other.first + other.counts.count - 1)
        for (index, number) in other.counts.enumerated() { counts[other.first - first + index] += number }
        minimum = count == 0 ? other.minimum : min(minimum, other.minimum)
        maximum = max(maximum, other.maximum)
        count += other.count
        sum += other.sum
    }

    /// The values recorded since `earlier`, a state of the same histogram.
    ///
    /// Its smallest and largest value are only accurate to their buckets.
    public func since(_ earlier: Histogram) -> Histogram {
        var left = counts
        for (index, number) in earlier.counts.enumerated() { left[earlier.first - first + index] -= number }
        var made = Histogram()
        guard let low = left.firstIndex(where: { $0 > 0 }), let high = left.lastIndex(where: { $0 > 0 }) else {
            return made
        }
        made.counts = Array(left[low...high])
        made.first = first + low
        made.count = count - earlier.count
        made.sum = sum - earlier.sum
        made.minimum = max(minimum, Self.lowerEnd(of: first + low))
        made.maximum = min(maximum, Self.upperEnd(of: first + high))
        return made
    }

    /// Whether the other can be an earlier state of the same histogram.
    public func contains(_ other: Histogram) -> Bool {
        if other.counts.isEmpty { return true }
        let place = other.first - first
        guard place >= 0, place + other.counts.count <= counts.count else { return false }
        return zip(counts[place...], other.counts).allSatisfy { $0 >= $1 }
    }

    /// The arithmetic mean; 0 if nothing was recorded.
    public var mean: Double {
        count == 0 ? 0 : sum / Double(count)
    }

    /// The value that `percent` of the recorded values do not exceed; 0 if nothing was recorded.
    ///
    /// It is the upper end of the value's bucket, but never more than the maximum.
    public func percentile(_ percent: Double) -> UInt64 {
        if count == 0 { return 0 }
        let rank = max(1, (Double(count) * min(max(percent, 0), 100) / 100).rounded(.up))
        var seen: UInt64 = 0
        for index in counts.indices {
            seen += counts[index]
            if Double(seen) >= rank { return max(minimum, min(maximum, Self.upperEnd(of: first + index))) }
        }
        return maximum
    }

    /// A range of values in nanoseconds, including both ends, and the number of values in it.
    public struct Bar: Sendable, Equatable {
        /// The smallest value of the range.
        public let lower: UInt64
        /// The largest value of the range.
        public let upper: UInt64
        /// The number of values.
        public let count: UInt64
    }

    /// The whole distribution in wider buckets, `perDoubling` to a power of two (1, 2, 4 … 128), from the first to the
    /// last that is not empty. Below 256 ns a power of two may have fewer buckets.
    public func bars(perDoubling: Int) -> [Bar] {
        let width = (1 << Self.precision) / max(1, min(perDoubling, 1 << Self.precision))
        var bars: [Bar] = []
        var bucket = first / width * width
        while bucket < first + counts.count {
            let part = max(bucket, first)..<min(bucket + width, first + counts.count)
            let count = counts[(part.lowerBound - first)..<(part.upperBound - first)].reduce(0, +)
            bars.append(
                Bar(lower: Self.lowerEnd(of: bucket), upper: Self.upperEnd(of: bucket + width - 1), count: count))
            bucket += width
        }
        return bars
    }

    /// Makes room for the buckets from `low` to `high`.
    private mutating func reach(_ low: Int, _ high: Int) {
        if counts.isEmpty { first = low }
        if low < first {
            counts.insert(contentsOf: repeatElement(0, count: first - low), at: 0)
            first = low
        }
        let missing = high - first - counts.count + 1
        if missing > 0 { counts.append(contentsOf: repeatElement(0, count: missing)) }
    }

    /// Values below 2^(precision + 1) have a bucket each; of larger ones the upper `precision` bits count.
    private static func bucket(of value: UInt64) -> Int {
        let exponent = max(0, UInt64.bitWidth - value.leadingZeroBitCount - precision - 1)
        return (exponent << precision) + Int(value >> UInt64(exponent))
    }

    private static func lowerEnd(of bucket: Int) -> UInt64 {
        bucket == 0 ? 0 : upperEnd(of: bucket - 1) + 1
    }

    private static func upperEnd(of bucket: Int) -> UInt64 {
        let exponent = max(0, (bucket >> precision) - 1)
        let mantissa = UInt64(bucket - (exponent << precision))
        return (mantissa << UInt64(exponent)) + ((1 << UInt64(exponent)) - 1)
    }
}

/// For histograms that are sent to another process: all of it, without loss.
extension Histogram: Codable {
    private enum CodingKeys: String, CodingKey { case first, counts, minimum, maximum, sum }

    /// Histograms with more values are refused, so that no sum of a few thousand of them overflows.
    public static let mostDecodable: UInt64 = 1 << 48

    /// Writes the buckets from the first that was ever hit to the last.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(first, forKey: .first)
        try container.encode(counts, forKey: .counts)
        try container.encode(minimum, forKey: .minimum)
        try container.encode(maximum, forKey: .maximum)
        try container.encode(sum, forKey: .sum)
    }

    /// Throws a `DecodingError` for anything that recorded values cannot have made.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        first = try container.decode(Int.self, forKey: .first)
        counts = try container.decode([UInt64].self, forKey: .counts)
        minimum = try container.decode(UInt64.self, forKey: .minimum)
        maximum = try container.decode(UInt64.self, forKey: .maximum)
        sum = try container.decode(Double.self, forKey: .sum)
        let last = Self.bucket(of: .max)
        guard (0...last).contains(first), counts.count <= last + 1 - first else { throw Self.unsound(decoder) }
        for number in counts {
            guard number <= Self.mostDecodable - count else { throw Self.unsound(decoder) }
            count += number
        }
        guard isSound else { throw Self.unsound(decoder) }
    }

    private var isSound: Bool {
        guard sum.isFinite, sum >= 0, minimum <= maximum else { return false }
        guard let low = counts.firstIndex(where: { $0 > 0 }), let high = counts.lastIndex(where: { $0 > 0 }) else {
            return minimum == 0 && maximum == 0
        }
        return Self.bucket(of: minimum) == first + low && Self.bucket(of: maximum) == first + high
    }

    private static func unsound(_ decoder: any Decoder) -> DecodingError {
        .dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "no histogram has these buckets"))
    }
}
