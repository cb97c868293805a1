internal import Ferry
internal import FerryMeasurement
internal import FoundationEssentials
internal import Synchronization

/// Takes down every result. In stripes, each with a lock of its own, as many tasks end at once.
final class BenchRecorder: Sendable {
    private final class Stripe: Sendable {
        let totals = Mutex(BenchTotals())
    }

    private let stripes: [Stripe]
    private let bodies: BodyCheck

    init(_ bodies: BodyCheck) {
        self.bodies = bodies
        stripes = (0..<max(1, ProcessInfo.processInfo.activeProcessorCount)).map { _ in Stripe() }
    }

    /// The sum of all stripes.
    var total: BenchTotals {
        var sum = BenchTotals()
        for stripe in stripes { stripe.totals.withLock { sum.add($0) } }
        return sum
    }

    func record(_ response: Response, nanoseconds: UInt64, sender: Int) {
        let isRight = bodies.isRight(response)
        let metrics = response.metrics
        change(sender) { totals in
            totals.latencies.record(nanoseconds)
            totals.bytes += UInt64(response.bodyLength)
            totals.statuses[response.status, default: 0] += 1
            if !isRight { totals.wrongBodies += 1 }
            totals.phases.add(metrics)
        }
    }

    func record(_ error: RequestError, sender: Int) {
        change(sender) { totals in
            totals.failed += 1
            totals.errors.record(error.code, error.message)
            if let status = error.response?.status { totals.statuses[status, default: 0] += 1 }
        }
    }

    func recordUnanswered(_ nanoseconds: UInt64, sender: Int) {
        change(sender) { $0.unanswered.record(nanoseconds) }
    }

    func recordLateness(_ nanoseconds: UInt64, sender: Int) {
        change(sender) { $0.lateness.record(nanoseconds) }
    }

    func recordDecoding(_ time: Duration) {
        change(0) { $0.phases.record(.decode, time) }
    }

    func recordUnsent(sender: Int) {
        change(sender) { totals in
            totals.failed += 1
            totals.unsent += 1
        }
    }

    private func change(_ sender: Int, _ change: (inout BenchTotals) -> Void) {
        stripes[sender % stripes.count].totals.withLock { change(&$0) }
    }
}

/// Takes down how long the checking of bodies takes, which is known only to an observer.
struct DecodingObserver: RequestObserver {
    let recorder: BenchRecorder

    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        if let time = metrics.processing { recorder.recordDecoding(time) }
    }
}
