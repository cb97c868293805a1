internal import FerryMeasurement

/// What was seen of plans so far.
struct PlanBenchTotals: Sendable {
    struct Step: Sendable {
        let name: String
        var latencies = Histogram()
        var failed: UInt64 = 0
    }

    var latencies = Histogram()
    var failed: UInt64 = 0
    /// How long those had run that ctrl-C has cut off; neither ok nor failed.
    var unfinished = Histogram()
    /// One for each request of the plan, however often it runs in it.
    var steps: [Step]
    var firstFailure = ExitCode.success
    /// Of requests, and of what ended a run without being one's fault.
    var errors = BenchErrors()
}
