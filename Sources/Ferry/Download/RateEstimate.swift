/// Bytes a second over the last seconds, from counts that come now and then.
struct RateEstimate: Sendable {
    private struct Sample {
        var time: UInt64
        var count: Int64
    }

    private var samples: [Sample] = []

    /// Nanoseconds that are looked back over, and between two counts that are kept.
    static let window: UInt64 = 5_000_000_000
    static let spacing: UInt64 = 100_000_000

    /// Begins anew: what was counted before was no progress.
    mutating func begin(_ count: Int64, now: UInt64) { samples = [Sample(time: now, count: count)] }

    mutating func count(_ count: Int64, now: UInt64) {
        guard let last = samples.last else { return begin(count, now: now) }
        if now < last.time + Self.spacing { return }
        samples.append(Sample(time: now, count: count))
        while samples.count > 2, samples[1].time + Self.window <= now { samples.removeFirst() }
    }

    /// With so many bytes at this moment.
    func rate(_ count: Int64, now: UInt64) -> Double {
        guard let first = samples.first, now > first.time else { return 0 }
        return Double(max(count - first.count, 0)) * 1e9 / Double(now - first.time)
    }
}
