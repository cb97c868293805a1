internal import Ferry
internal import FerryMeasurement

/// What was seen so far.
struct BenchTotals: Sendable {
    /// Of answers that were accepted; in the open model from when the request was due.
    var latencies = Histogram()
    /// How long after its time a request of the open model was sent.
    var lateness = Histogram()
    /// How long after its time a loop's clock called: what an answer waits, too, before it is seen.
    var lag = Histogram()
    var phases = BenchPhases()
    /// How often which status came, accepted or not.
    var statuses: [Int: UInt64] = [:]
    /// What carried the answers that were accepted.
    var engines = Engines()
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
        lag.add(other.lag)
        phases.add(other.phases)
        statuses.merge(other.statuses, uniquingKeysWith: +)
        engines.add(other.engines)
        errors.add(other.errors)
        failed += other.failed
        unsent += other.unsent
        unanswered.add(other.unanswered)
        bytes += other.bytes
        wrongBodies += other.wrongBodies
    }

    /// Answers by what carried them.
    struct Engines: Sendable, Equatable {
        var http1: UInt64 = 0
        var libcurl: UInt64 = 0

        mutating func record(_ engine: RequestMetrics.Engine?) {
            switch engine {
            case .http1: http1 += 1
            case .libcurl: libcurl += 1
            case nil: break
            }
        }

        mutating func add(_ other: Engines) {
            http1 += other.http1
            libcurl += other.libcurl
        }

        /// By the names of the command line's JSON; those that carried nothing are left out.
        var named: [String: UInt64] {
            ["http1": http1, "libcurl": libcurl].filter { $0.value > 0 }
        }
    }
}
