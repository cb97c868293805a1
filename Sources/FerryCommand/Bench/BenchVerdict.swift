internal import FerryMeasurement
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

/// How a load ends: what the exit code says, the page says too.
struct BenchRuling: Sendable, Equatable {
    let exitCode: ExitCode
    /// Whether failures or wrong bodies have part in it; conditions may let some of them pass.
    let blamesFailures: Bool

    /// `mustBeRight` says whether a wrong body fails the load.
    init(_ report: BenchReport, _ verdict: BenchVerdict, mustBeRight: Bool, wasInterrupted: Bool = false) {
        let missed = (report.checks ?? []).filter { $0.verdict == .failed }
        let fails = report.failed > 0 && !verdict.decides(on: "failed")
        let isWrong = mustBeRight && report.wrongBodies > 0 && !verdict.decides(on: "wrong")
        // Conditions are on what was measured; they cannot allow that a part was not.
        let isWhole = (report.fleet ?? []).allSatisfy { $0.outcome == .finished }
        blamesFailures = fails || isWrong || missed.contains { ["failed", "wrong"].contains($0.figure) }
        if wasInterrupted {
            exitCode = .interrupted
        } else if !missed.isEmpty {
            exitCode = .validationFailed
        } else if fails {
            exitCode = Self.exitCode(ofFailures: report)
        } else if !isWhole {
            exitCode = .transferFailed
        } else {
            exitCode = isWrong ? .validationFailed : .success
        }
    }

    private static func exitCode(ofFailures report: BenchReport) -> ExitCode {
        if report.failedBy.body == report.failed { return .validationFailed }
        return report.failedBy.status == report.failed ? .statusNotAccepted : .transferFailed
    }

    /// For the page.
    var word: String {
        switch exitCode {
        case .success: "ok"
        case .interrupted: "interrupted"
        default: "failed"
        }
    }
}

/// What came of one condition of `--fail-if`, of one that is met too: who reads a report sees what it was held to.
///
/// Times are microseconds, memory is kilobytes.
struct BenchCheck: Codable, Sendable, Equatable {
    enum Verdict: String, Codable, Sendable {
        /// The condition does not hold.
        case ok
        case failed
    }

    /// As it was written, without blanks.
    var condition: String
    /// Its name.
    var figure: String
    /// What it is.
    var value: Double
    /// What it is compared with, a change or a share worked out.
    var limit: Double
    /// The same figure of the baseline; `nil` where the condition is not about it.
    var baseline: Double?
    var verdict: Verdict

    /// For standard error and the page; `nil` when all is well.
    var complaint: String? {
        if verdict == .ok { return nil }
        return "\(condition): \(figure) is \(shown(value))\(baseline.map { ", the baseline has \(shown($0))" } ?? "")"
    }

    /// For a row of its own.
    var explanation: String {
        "\(figure) is \(shown(value)), the limit \(shown(limit))"
            + (baseline.map { ", the baseline has \(shown($0))" } ?? "")
    }

    private func shown(_ value: Double) -> String {
        BenchThreshold.Figure.named(figure)?.shown(value) ?? fixed(value, 1)
    }
}

/// The report of an earlier run, which conditions compare with.
enum BenchBaseline {
    private struct Version: Decodable {
        var version: Int
    }

    static func report(at path: String) throws(InputError) -> BenchReport {
        guard let data = try? Data(contentsOf: URL(filePath: path)) else { throw InputError("\(path): cannot be read") }
        let decoder = JSONDecoder()
        // First, as the members of another version may be others, or mean something else.
        if let version = try? decoder.decode(Version.self, from: data).version, version != BenchReport.version {
            throw InputError("\(path): is of version \(version), and this ferry compares with \(BenchReport.version)")
        }
        do {
            return try decoder.decode(BenchReport.self, from: data)
        } catch {
            throw InputError("\(path): is not what ferry bench --json writes")
        }
    }

    /// That it is of another load, and in what; `nil` when it is of the same. The server may be another one, or the
    /// same on another port.
    static func warning(_ report: BenchReport, _ baseline: BenchReport) -> String? {
        var differences: [String] = []
        func compare(_ own: String, _ other: String) {
            if own != other { differences.append("\(other), not \(own)") }
        }
        compare(report.method, baseline.method)
        compare(path(report.url), path(baseline.url))
        compare(load(report.model), load(baseline.model))
        return differences.isEmpty ? nil : "the baseline is of another load: \(differences.joined(separator: "; "))"
    }

    private static func load(_ model: BenchReport.Model) -> String {
        if let concurrency = model.concurrency { return "\(grouped(UInt64(max(0, concurrency)))) at once" }
        return model.rate.map { "\($0) a second" } ?? model.kind
    }

    /// Without the server, and without the query, whose values reports leave out.
    private static func path(_ url: String) -> String {
        let rest = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let path = rest.drop { $0 != "/" && $0 != "?" && $0 != "#" }.prefix { $0 != "?" && $0 != "#" }
        return path.isEmpty ? "/" : String(path)
    }
}
