internal import FerryMeasurement

/// What was seen so far.
struct BenchTotals: Sendable {
    /// Of answers that were accepted; in the open model from when the request was due.
    var latencies = Histogram()
    /// How long after its time a request of the open model was sent.
    var lateness = Histogram()
    var phases = BenchPhases()
    /// How often which status came, accepted or not.
    var statuses: [Int: UInt64] = [:]
    var errors = BenchErrors()
    var failed: UInt64 = 0
    /// Requests of the open model that were given up because too many others had no answer yet; they count as failed.
    var unsent: UInt64 = 0
    /// How long those had waited that ctrl-C has cut off, counted like latencies; neither ok nor failed.
    var unanswered = Histogram()
    var bytes: UInt64 = 0
    var wrongBodies: UInt64 = 0

    var ok: UInt64 { latencies.count }

    /// The open model asks how long whoever came had to wait. Those cut off had to wait that long at least: without
    /// them the slowest would be missing, and most so where somebody ends the load because nothing is answered any
    /// more.
    func latencies(of model: BenchPlan.Model) -> Histogram {
        guard case .open = model else { return latencies }
        var all = latencies
        all.add(unanswered)
        return all
    }

    mutating func add(_ other: BenchTotals) {
        latencies.add(other.latencies)
        lateness.add(other.lateness)
        phases.add(other.phases)
        statuses.merge(other.statuses, uniquingKeysWith: +)
        errors.add(other.errors)
        failed += other.failed
        unsent += other.unsent
        unanswered.add(other.unanswered)
        bytes += other.bytes
        wrongBodies += other.wrongBodies
    }
}
