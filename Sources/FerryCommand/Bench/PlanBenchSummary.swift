internal import Ferry
internal import FerryMeasurement

/// The figures of a load of plans.
struct PlanBenchSummary: Sendable {
    let name: String
    var warmUp = Duration.zero
    let totals: PlanBenchTotals
    /// The figures of whole runs over time.
    var windows: [BenchWindow] = []
    let nanoseconds: UInt64
    let usage: ProcessUsage
    /// The results of `--fail-if`; `nil` without conditions.
    private(set) var checks: [BenchCheck]?

    var runs: UInt64 { totals.latencies.count + totals.failed }
    var accepted: UInt64 { totals.steps.reduce(0) { $0 + $1.latencies.count } }
    var attempts: UInt64 { totals.steps.reduce(accepted) { $0 + $1.failed } }
    var seconds: Double { Double(nanoseconds) / 1e9 }

    func rate(_ count: UInt64) -> Double { seconds > 0 ? Double(count) / seconds : 0 }

    /// Checks the conditions of `--fail-if`.
    mutating func judge(by verdict: BenchVerdict) {
        if !verdict.thresholds.isEmpty { checks = verdict.thresholds.compactMap { $0.check(self) } }
    }

    /// The exit code of the first failed run, unless conditions say how many runs may fail.
    func exitCode(_ verdict: BenchVerdict) -> ExitCode {
        if (checks ?? []).contains(where: { $0.verdict == .failed }) { return .validationFailed }
        return totals.failed == 0 || verdict.decides(on: "failed") ? .success : totals.firstFailure
    }

    /// The table for the terminal: a line for the plan and one for each request. On a narrow terminal, long names are
    /// cut and some percentiles are left out.
    func table(columns: Int) -> String {
        let names = ([name] + totals.steps.map(\.name)).map { TerminalText.cut(Main.oneLine($0), to: columns * 3 / 10) }
        let width = max(4, names.map(TerminalText.width).max() ?? 0)
        // The last column stays free: some terminals wrap as soon as it is written to.
        let room = (columns - 1 - 2 - width - 2 * Self.countWidth) / Self.timeWidth
        let shown = Set(["max", "p50", "p99", "p90", "p95", "p75", "p99.9"].prefix(room))
        let percents = BenchReport.percents.filter { shown.contains($0.name) }
        func line(_ name: String, _ counts: [String], _ times: [String]) -> String {
            let cells =
                counts.map { $0.aligned(right: Self.countWidth) } + times.map { $0.aligned(right: Self.timeWidth) }
            return "  " + name + blanks(width - TerminalText.width(name)) + cells.joined() + "\n"
        }
        func line(_ name: String, _ latencies: Histogram, _ failed: UInt64) -> String {
            let times = percents.map { latencies.percentile($0.percent) } + [latencies.maximum]
            // Without responses there is no latency, and 0 would look like a good one.
            return line(
                name, [grouped(latencies.count + failed), grouped(failed)],
                times.map { latencies.count == 0 ? "–" : durationText(nanoseconds: $0) })
        }
        let cutOff = totals.unfinished
        let warning =
            cutOff.count == 0
            ? ""
            : "  \(grouped(cutOff.count)) more were interrupted, the oldest after "
                + "\(durationText(nanoseconds: cutOff.maximum)); the figures do not include them\n"
        let warmedUp = warmUp > .zero ? ", after \(fixed(Double(warmUp.microseconds) / 1e6, 1)) s of warm-up" : ""
        let cpu = (usage.user + usage.system) / Double(max(1, attempts))
        return line("", ["runs", "failed"], percents.map(\.name) + ["max"])
            + Console.bold(line(names[0], totals.latencies, totals.failed))
            + zip(names.dropFirst(), totals.steps).map { line($0, $1.latencies, $1.failed) }.joined()
            + "  \(grouped(runs)) plans in \(fixed(seconds, 2)) s\(warmedUp): \(fixed(rate(totals.latencies.count), 1)) "
            + "ok per second, \(fixed(cpu, 1)) µs of CPU per request\n"
            + BenchTable.errors(totals.errors.named, totals.errors.samples, columns)
            + BenchTable.checks(checks, columns) + warning
    }

    private static let countWidth = 10
    private static let timeWidth = 9

    /// The report as one line of JSON with sorted members, as described by `Schemas/plan-bench-report.schema.json`.
    var json: String { jsonLine(self) }
}

extension PlanBenchSummary: Encodable {
    private enum Key: String, CodingKey {
        case version, plan, runs, ok, failed, unfinished, requests, errors, seconds, steps, rps, checks
        case warmUp = "warm_up_s"
        case errorMessages = "error_messages"
        case attemptsPerSecond = "attempts_per_second"
        case latency = "latency_us"
        case cpu = "cpu_us_per_request"
    }

    private struct Step: Encodable {
        let name: String
        let ok: UInt64
        let failed: UInt64
        // swift-format-ignore: AlwaysUseLowerCamelCase
        let latency_us: [String: Double]
    }

    private struct Unfinished: Encodable {
        let count: UInt64
        // swift-format-ignore: AlwaysUseLowerCamelCase
        let oldest_us: Double
    }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(2, forKey: .version)
        try object.encode(name, forKey: .plan)
        try object.encode(Double(warmUp.microseconds) / 1e6, forKey: .warmUp)
        try object.encode(runs, forKey: .runs)
        try object.encode(totals.latencies.count, forKey: .ok)
        try object.encode(totals.failed, forKey: .failed)
        if totals.unfinished.count > 0 {
            let (count, oldest) = (totals.unfinished.count, totals.unfinished.maximum)
            try object.encode(Unfinished(count: count, oldest_us: micro(oldest)), forKey: .unfinished)
        }
        try object.encode(attempts, forKey: .requests)
        try object.encode(totals.errors.named, forKey: .errors)
        try object.encode(totals.errors.samples, forKey: .errorMessages)
        try object.encode(rounded(seconds, 6), forKey: .seconds)
        try object.encode(rounded(rate(accepted), 1), forKey: .rps)
        try object.encode(rounded(rate(attempts), 1), forKey: .attemptsPerSecond)
        try object.encodeIfPresent(checks, forKey: .checks)
        try object.encode(totals.latencies.percentiles(BenchReport.percents), forKey: .latency)
        let share = Double(max(1, attempts))
        try object.encode(
            ["user": rounded(usage.user / share, 2), "sys": rounded(usage.system / share, 2)], forKey: .cpu)
        try object.encode(
            totals.steps.map {
                Step(
                    name: $0.name, ok: $0.latencies.count, failed: $0.failed,
                    latency_us: $0.latencies.percentiles(BenchReport.percents))
            }, forKey: .steps)
    }
}

extension PlanBenchSummary: BenchMeasurement {
    /// The number of runs, of which `failed>1%` is a share.
    var requests: UInt64 { runs }

    /// A figure of whole runs, except `rps`, which counts requests so that different plans can be compared.
    func value(of figure: BenchThreshold.Figure) -> Double {
        switch figure.name {
        case "rps": rate(accepted)
        case "failed": Double(totals.failed)
        default: totals.latencies.percentiles(BenchReport.percents)[figure.name] ?? 0
        }
    }
}
