internal import FoundationEssentials

/// What `--baseline` and `--fail-if` ask for.
struct BenchVerdict: Sendable {
    private let thresholds: [BenchThreshold]
    private let baseline: BenchReport?

    init(_ arguments: ParsedArguments) throws {
        thresholds = try arguments.all("fail-if").map { text throws(UsageError) in try BenchThreshold(text) }
        baseline = try arguments.last("baseline").map { path throws(InputError) in try Self.report(at: path) }
        if baseline == nil, let threshold = thresholds.first(where: \.needsBaseline) {
            throw UsageError("--fail-if '\(threshold.text)' needs --baseline")
        }
    }

    init(_ thresholds: [BenchThreshold], baseline: BenchReport?) {
        self.thresholds = thresholds
        self.baseline = baseline
    }

    /// A line for each condition that holds.
    func complaints(about report: BenchReport) -> [String] {
        thresholds.compactMap { $0.verdict(on: report, baseline: baseline) }
    }

    /// Whether it is for the conditions to say how much of a figure is too much.
    func decides(on figure: String) -> Bool { thresholds.contains { $0.figure.name == figure } }

    private static func report(at path: String) throws(InputError) -> BenchReport {
        guard let data = try? Data(contentsOf: URL(filePath: path)) else { throw InputError("\(path): cannot be read") }
        do {
            return try JSONDecoder().decode(BenchReport.self, from: data)
        } catch {
            throw InputError("\(path): is not what ferry bench --json writes")
        }
    }
}
