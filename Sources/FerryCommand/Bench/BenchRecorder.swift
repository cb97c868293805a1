internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// What was seen so far.
struct BenchTotals: Sendable {
    var latencies = Histogram()
    var errors: [String: UInt64] = [:]
    var failed: UInt64 = 0
    var bytes: UInt64 = 0
    var wrongBodies: UInt64 = 0
    var phases = BenchPhases()

    var ok: UInt64 { latencies.count }

    mutating func add(_ other: BenchTotals) {
        latencies.add(other.latencies)
        errors.merge(other.errors, uniquingKeysWith: +)
        failed += other.failed
        bytes += other.bytes
        wrongBodies += other.wrongBodies
        phases.add(other.phases)
    }
}

/// Takes down every result. In stripes, each with a lock of its own, as many tasks end at once.
final class BenchRecorder: Sendable {
    private final class Stripe: Sendable {
        let totals = Mutex(BenchTotals())
    }

    private let stripes: [Stripe]
    /// Length and sample of the first body; all the others should be like it.
    private let first = Mutex<BodySample?>(nil)

    init(stripes count: Int) {
        stripes = (0..<max(1, count)).map { _ in Stripe() }
    }

    /// The sum of all stripes.
    var total: BenchTotals {
        var sum = BenchTotals()
        for stripe in stripes { stripe.totals.withLock { sum.add($0) } }
        return sum
    }

    func record(_ response: Response, nanoseconds: UInt64, sender: Int) {
        let sample = response.withBytes(BodySample.init)
        let isLikeFirst = first.withLock { first in
            if first == nil { first = sample }
            return first == sample
        }
        let metrics = response.metrics
        stripes[sender % stripes.count].totals.withLock { totals in
            totals.latencies.record(nanoseconds)
            totals.bytes += UInt64(sample.length)
            if !isLikeFirst { totals.wrongBodies += 1 }
            totals.phases.add(metrics)
        }
    }

    func record(_ error: RequestError, sender: Int) {
        stripes[sender % stripes.count].totals.withLock { totals in
            totals.failed += 1
            totals.errors[error.code.name, default: 0] += 1
        }
    }
}

/// A cheap look at a body: its length, and a sum over at most 64 of its words and its last byte.
struct BodySample: Equatable, Sendable {
    let length: Int
    private let sum: UInt64

    init(_ bytes: UnsafeRawBufferPointer) {
        length = bytes.count
        var sum: UInt64 = 14_695_981_039_346_656_037
        let words = bytes.count / 8
        for index in stride(from: 0, to: words, by: max(1, words / 64)) {
            sum = (sum ^ bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self)) &* 1_099_511_628_211
        }
        for byte in bytes.suffix(bytes.count < 8 ? bytes.count : 1) {
            sum = (sum ^ UInt64(byte)) &* 1_099_511_628_211
        }
        self.sum = sum
    }
}

/// Sums of the times within the runs, in microseconds; a phase counts only where it happened.
struct BenchPhases: Sendable {
    private var sums = [Double](repeating: 0, count: names.count)
    private var counts = [Double](repeating: 0, count: names.count)

    static let names = ["queue", "name", "connect", "tls", "first_byte", "total"]

    mutating func add(_ metrics: RequestMetrics) {
        let times = [
            metrics.queue, metrics.nameLookup, metrics.connect, metrics.tls, metrics.firstByte, metrics.total,
        ]
        for (phase, time) in times.enumerated() {
            guard let time else { continue }
            sums[phase] += Double(microseconds(time))
            counts[phase] += 1
        }
    }

    mutating func add(_ other: BenchPhases) {
        for phase in sums.indices {
            sums[phase] += other.sums[phase]
            counts[phase] += other.counts[phase]
        }
    }

    /// The mean of each phase; 0 for what never happened.
    var means: [(name: String, microseconds: Double)] {
        Self.names.indices.map { (Self.names[$0], counts[$0] > 0 ? sums[$0] / counts[$0] : 0) }
    }
}
