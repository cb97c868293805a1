internal import FerryMeasurement
internal import FoundationEssentials

/// The conditions of `--fail-if` and the report of `--baseline`.
struct BenchVerdict: Sendable {
    let thresholds: [BenchThreshold]
    private let baseline: BenchReport?

    init(_ arguments: ParsedArguments) throws {
        let thresholds = try arguments.all("fail-if").map { text throws(UsageError) in try BenchThreshold(text) }
        let baseline = try arguments.last("baseline").map { path throws(InputError) in
            try BenchBaseline.report(at: path)
        }
        for threshold in thresholds where threshold.needsBaseline {
            guard let baseline else { throw UsageError("--fail-if '\(threshold.text)' requires --baseline") }
            // Any percentage of 0 is 0: the condition would hold always, or never.
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

    /// Checks the conditions, and adds a warning if the baseline has another load.
    func judge(_ report: inout BenchReport) {
        if let baseline, let warning = BenchBaseline.warning(report, baseline) { report.warnings.append(warning) }
        if !thresholds.isEmpty { report.checks = thresholds.compactMap { $0.check(report, baseline: baseline) } }
    }

    /// Whether a condition decides how much of a figure is too much.
    func decides(on figure: String) -> Bool { thresholds.contains { $0.figure.name == figure } }
}

/// The outcome of a load: its exit code, and its word on the page.
struct BenchRuling: Sendable, Equatable {
    let exitCode: ExitCode
    /// Whether failures or wrong bodies caused it; conditions may tolerate some of them.
    let blamesFailures: Bool

    /// Judges a report. `mustBeRight` says whether a wrong body fails the load.
    init(_ report: BenchReport, _ verdict: BenchVerdict, mustBeRight: Bool, wasInterrupted: Bool = false) {
        let missed = (report.checks ?? []).filter { $0.verdict == .failed }
        let fails = report.failed > 0 && !verdict.decides(on: "failed")
        let isWrong = mustBeRight && report.wrongBodies > 0 && !verdict.decides(on: "wrong")
        // Conditions apply to what was measured. They cannot excuse a part that was not.
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

    /// The outcome in one word, for the page.
    var word: String {
        switch exitCode {
        case .success: "ok"
        case .interrupted: "interrupted"
        default: "failed"
        }
    }
}

/// The result of one condition of `--fail-if`. Reports also list the conditions that passed.
///
/// Times are in microseconds, memory is in kilobytes.
struct BenchCheck: Codable, Sendable, Equatable {
    enum Verdict: String, Codable, Sendable {
        /// The condition does not hold, so the load passes.
        case ok
        case failed
    }

    /// The condition as written, without blanks.
    var condition: String
    /// The name of the figure.
    var figure: String
    /// The measured value.
    var value: Double
    /// The limit as an absolute value, also for a change or a share.
    var limit: Double
    /// The same figure of the baseline; `nil` if the condition does not use it.
    var baseline: Double?
    var verdict: Verdict

    /// The text for standard error and the page; `nil` if the check passed.
    var complaint: String? {
        if verdict == .ok { return nil }
        return "\(condition): \(figure) is \(shown(value))\(baseline.map { ", the baseline has \(shown($0))" } ?? "")"
    }

    /// The text for a row of the table.
    var explanation: String {
        "\(figure) is \(shown(value)), limit \(shown(limit))"
            + (baseline.map { ", baseline \(shown($0))" } ?? "")
    }

    private func shown(_ value: Double) -> String {
        BenchThreshold.Figure.named(figure)?.shown(value) ?? fixed(value, 1)
    }
}

/// Reads the report of an earlier run for `--baseline`.
enum BenchBaseline {
    private struct Version: Decodable {
        var version: Int
    }

    static func report(at path: String) throws(InputError) -> BenchReport {
        let data = Data(try InputFile.bytes(at: path))
        let decoder = JSONDecoder()
        // First, because another version may have other members, or members with another meaning.
        if let version = try? decoder.decode(Version.self, from: data).version, version != BenchReport.version {
            throw InputError("\(path): has version \(version); this ferry reads version \(BenchReport.version)")
        }
        do {
            return try decoder.decode(BenchReport.self, from: data)
        } catch {
            throw InputError("\(path): is not the output of ferry bench --json")
        }
    }

    /// A warning with the differences if the baseline has another load; `nil` if it has the same. The server and its
    /// port may differ.
    static func warning(_ report: BenchReport, _ baseline: BenchReport) -> String? {
        var differences: [String] = []
        func compare(_ own: String, _ other: String) {
            if own != other { differences.append("\(other), not \(own)") }
        }
        compare(report.method, baseline.method)
        compare(path(report.url), path(baseline.url))
        compare(load(report.model), load(baseline.model))
        return differences.isEmpty ? nil : "the baseline has another load: \(differences.joined(separator: "; "))"
    }

    private static func load(_ model: BenchReport.Model) -> String {
        if let concurrency = model.concurrency { return "\(grouped(UInt64(max(0, concurrency)))) at once" }
        return model.rate.map { "\($0) per second" } ?? model.kind
    }

    /// The path without server and query; reports leave out the values of the query.
    private static func path(_ url: String) -> String {
        // By bytes: each of these and a combining mark after it are one character.
        let rest = url.utf8[(CommandURL.schemeEnd(url) ?? url.startIndex)...]
        let path = rest.drop { !"/?#".utf8.contains($0) }.prefix { !"?#".utf8.contains($0) }
        return path.isEmpty ? "/" : String(decoding: path, as: UTF8.self)
    }
}
