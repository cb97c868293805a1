internal import Ferry
internal import FerryMeasurement
internal import Synchronization

/// Takes down how plans went.
final class PlanBenchRecorder: Sendable {
    private let state: Mutex<PlanBenchTotals>
    private let places: [String: Int]

    init(_ plan: Plan) {
        var steps: [PlanBenchTotals.Step] = []
        var places: [String: Int] = [:]
        for name in plan.root.names where places[name] == nil {
            places[name] = steps.count
            steps.append(PlanBenchTotals.Step(name: name))
        }
        self.places = places
        state = Mutex(PlanBenchTotals(steps: steps))
    }

    var totals: PlanBenchTotals { state.withLock { $0 } }

    func record(_ report: PlanReport, wasCutOff: Bool) {
        state.withLock { totals in
            if wasCutOff { return totals.unfinished.record(report.nanoseconds) }
            if report.isOK { totals.latencies.record(report.nanoseconds) } else { totals.failed += 1 }
            if totals.firstFailure == .success { totals.firstFailure = report.exitCode }
            if !report.isOK { totals.errors.record(report) }
            for row in report.rows {
                guard let place = places[row.name] else { continue }
                switch row.state {
                case .finished: totals.steps[place].latencies.record(row.nanoseconds)
                case .failed: totals.steps[place].failed += 1
                case .skipped, .running, .cancelled: break
                }
            }
        }
    }
}

extension BenchErrors {
    /// Those of all requests that failed, or what ended the run where none did.
    fileprivate mutating func record(_ report: PlanReport) {
        let failed = report.rows.filter { $0.state == .failed }
        for row in failed {
            if let code = row.code { record(code, row.message ?? "") }
        }
        if failed.isEmpty, let fault = report.fault { record(fault.code, fault.message) }
    }
}
