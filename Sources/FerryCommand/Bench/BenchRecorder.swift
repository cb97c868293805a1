internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// Counts every result, in a stripe for each loop. Only that loop's thread writes to its stripe, so the lock is free
/// except while the totals are read.
final class BenchRecorder: Sendable {
    private final class Stripe: Sendable {
        let totals = Mutex(BenchTotals())
    }

    private let stripes: [Stripe]
    private let bodies: BodyCheck

    init(_ bodies: BodyCheck, loops: Int = 1) {
        self.bodies = bodies
        stripes = (0..<max(1, loops)).map { _ in Stripe() }
    }

    /// The sum of all stripes.
    var total: BenchTotals {
        var sum = BenchTotals()
        // Under the lock it is only retained; the loop copies what it changes next.
        for stripe in stripes { sum.add(stripe.totals.withLock { $0 }) }
        return sum
    }

    func record(_ response: Response, nanoseconds: UInt64, stripe: Int) {
        let isRight = bodies.isRight(response)
        let metrics = response.metrics
        change(stripe) { totals in
            totals.latencies.record(nanoseconds)
            totals.bytes += UInt64(response.bodyLength)
            totals.statuses[response.status, default: 0] += 1
            if !isRight { totals.wrongBodies += 1 }
            totals.engines.record(metrics.engine)
            totals.phases.add(metrics)
        }
    }

    func record(_ error: RequestError, stripe: Int) {
        change(stripe) { totals in
            totals.failed += 1
            totals.errors.record(error.code, error.message)
            if let status = error.response?.status { totals.statuses[status, default: 0] += 1 }
        }
    }

    func recordUnanswered(_ nanoseconds: UInt64, stripe: Int) {
        change(stripe) { $0.unanswered.record(nanoseconds) }
    }

    func recordLateness(_ nanoseconds: UInt64, stripe: Int) {
        change(stripe) { $0.lateness.record(nanoseconds) }
    }

    func recordLag(_ nanoseconds: UInt64, stripe: Int) {
        change(stripe) { $0.lag.record(nanoseconds) }
    }

    func recordDecoding(_ time: Duration) {
        change(0) { $0.phases.record(.decode, time) }
    }

    func recordUnsent(stripe: Int) {
        change(stripe) { totals in
            totals.failed += 1
            totals.unsent += 1
        }
    }

    private func change(_ stripe: Int, _ change: (inout BenchTotals) -> Void) {
        stripes[stripe % stripes.count].totals.withLock { change(&$0) }
    }
}

/// Takes down how long the checking of bodies takes, which is known only to an observer.
struct DecodingObserver: RequestObserver {
    let recorder: BenchRecorder

    func metrics(_ run: RunInfo, _ metrics: RequestMetrics) {
        if let time = metrics.processing { recorder.recordDecoding(time) }
    }
}
