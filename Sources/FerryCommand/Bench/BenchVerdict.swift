internal import FoundationEssentials

/// What `--baseline` and `--fail-if` ask for.
struct BenchVerdict: Sendable {
    let thresholds: [BenchThreshold]
    private let baseline: BenchReport?

    init(_ arguments: ParsedArguments) throws {
        let thresholds = try arguments.all("fail-if").map { text throws(UsageError) in try BenchThreshold(text) }
        let baseline = try arguments.last("baseline").map { path throws(InputError) in
            try BenchBaseline.report(at: path)
        }
        for threshold in thresholds where threshold.needsBaseline {
            guard let baseline else { throw UsageError("--fail-if '\(threshold.text)' needs --baseline") }
            // Any part of nothing is nothing: the condition would hold always, or never.
            if baseline.value(of: threshold.figure) == 0 {
                throw UsageError("--fail-if '\(threshold.text)': \(threshold.figure.name) is 0 in the baseline")
            }
        }
        self.init(thresholds, baseline: baseline)
    }

    init(_ thresholds: [BenchThreshold], baseline: BenchReport?) {
        self.thresholds = thresholds
        self.baseline = baseline
    }

    /// What came of each condition, and a warning where the baseline is of something else.
    func judge(_ report: inout BenchReport) {
        if let baseline, let warning = BenchBaseline.warning(report, baseline) { report.warnings.append(warning) }
        if !thresholds.isEmpty { report.checks = thresholds.compactMap { $0.check(report, baseline: baseline) } }
    }

    /// Whether it is for the conditions to say how much of a figure is too much.
    func decides(on figure: String) -> Bool { thresholds.contains { $0.figure.name == figure } }
}
