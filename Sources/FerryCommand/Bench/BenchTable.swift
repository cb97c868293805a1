internal import FerryMeasurement

/// A report as a table for the terminal.
struct BenchTable {
    private let report: BenchReport
    private let columns: Int

    /// No line is longer than `columns`, unless a word is.
    init(_ report: BenchReport, columns: Int = Console.usualColumns) {
        self.report = report
        self.columns = columns
    }

    var text: String {
        var text = head + latency + phases + "\n" + cost
        if let comparison = BenchComparison(report) { text += comparison.table }
        text += workers + Self.checks(report.checks, columns)
        for warning in report.warnings {
            // It may quote another process.
            let line = line("warning", Main.oneLine(warning))
            text += line.replacing("  warning", with: Console.bold("  warning"), maxReplacements: 1)
        }
        return text
    }

    private var head: String {
        let model = report.model.kind == "open" ? ", latency from the time each was due" : ""
        let warmUp = report.warmUp > 0 ? ", after \(fixed(report.warmUp, 1)) s of warm-up" : ""
        let perSecond = report.seconds > 0 ? Int64(Double(report.bytes) / report.seconds) : 0
        let counts = "\(grouped(report.requests)) in \(fixed(report.seconds, 2)) s"
        let cutOff = report.unanswered.map { ", \(grouped($0.count)) more without a response" } ?? ""
        return line("load", Main.oneLine("\(report.method) \(report.url)"))
            + line("", report.model.title + model + warmUp)
            + line("requests", "\(counts): \(grouped(report.ok)) ok, \(grouped(report.failed)) failed\(cutOff)")
            + line("rate", rate + ", \(bytesText(perSecond))/s" + attempts)
            .replacing(rate, with: Console.bold(rate), maxReplacements: 1)
    }

    private var rate: String { "\(grouped(UInt64(report.rps))) \(answers) per second" }

    /// If all responses were accepted, requests and responses are the same.
    private var answers: String { report.hasOtherAttempts ? "accepted responses" : "requests" }

    private var attempts: String {
        report.hasOtherAttempts ? "; \(grouped(UInt64(report.attemptsPerSecond))) attempts per second" : ""
    }

    private var latency: String {
        // Without responses there is no latency, and 0 would look like a good one.
        let times = names.map { report.histogram.isEmpty ? "–" : time(report.latency[$0]) }
        return "\n" + row("", names) + Console.bold(row("latency", times))
    }

    private var phases: String {
        var text = ""
        // The phases that not every response had.
        var rare: [String] = []
        for phase in BenchPhases.Phase.allCases {
            guard let times = report.phases[phase.rawValue] else { continue }
            let name = phase.rawValue.replacing("_", with: " ")
            let count = UInt64(times["count"] ?? 0)
            if count < report.ok { rare.append("\(name) \(grouped(count))") }
            text += row("  " + name, names.map { times[$0] == nil ? "" : time(times[$0]) })
        }
        if !rare.isEmpty { text += line("  of fewer", rare.joined(separator: ", ")) }
        return text
    }

    private var cost: String {
        let (user, system) = (report.cpu["user"] ?? 0, report.cpu["sys"] ?? 0)
        let busy = "busiest thread \(fixed(report.generator.busiestThread * 100, 0)) %"
        var text = line(
            "CPU",
            "\(fixed(user + system, 1)) µs per request: \(fixed(user, 1)) user, \(fixed(system, 1)) system; \(busy)")
        text += line(
            "memory",
            "\(fixed(Double(report.memory) / 1024, 1)) MB at the peak, \(grouped(report.connections)) connections opened"
        )
        let wrong = "\(grouped(report.wrongBodies)) of \(grouped(report.ok)) bodies wrong"
        text += line("bodies", "\(bytesText(Int64(clamping: report.bytes))), \(wrong)")
        for (status, count) in report.statuses.sorted(by: { $0.key < $1.key }) {
            text += line("status", "\(status)  \(grouped(count))")
        }
        if let engines = report.engines, !engines.isEmpty {
            let names = engines.sorted { $0.key < $1.key }
            text += line("engine", names.map { "\($0.key) \(share(of: $0.value))" }.joined(separator: ", "))
        }
        return text + Self.errors(report.errors, report.errorMessages, columns)
    }

    /// The workers of a fleet; empty without one.
    private var workers: String {
        (report.fleet ?? []).enumerated().map { index, member in
            let counts = "\(grouped(member.requests)) requests, \(member.outcome.rawValue)"
            return line("worker \(index + 1)", Main.oneLine("\(member.name)  \(counts)"))
        }.joined()
    }

    private func share(of count: UInt64) -> String {
        fixed(Double(count) / Double(max(1, report.ok)) * 100, count == report.ok ? 0 : 1) + " %"
    }

    /// A line per code, with the message of the first error.
    static func errors(
        _ errors: [String: UInt64], _ messages: [String: String], _ columns: Int = Console.usualColumns
    ) -> String {
        errors.sorted { $0.key < $1.key }.map { code, count in
            // The message may come from a server, and the code from another process.
            let message = messages[code].map { ": \($0)" } ?? ""
            return line("error", Main.oneLine("\(code)  \(grouped(count))\(message)"), columns)
        }.joined()
    }

    /// The results of the conditions; empty without conditions.
    static func checks(_ checks: [BenchCheck]?, _ columns: Int = Console.usualColumns) -> String {
        let width = checks?.map(\.condition.count).max() ?? 0
        return (checks ?? []).map { check in
            line(
                "check",
                "\(check.verdict.rawValue.padded(to: 8))\(check.condition.padded(to: width))  \(check.explanation)",
                columns)
        }.joined()
    }

    /// Text that does not fit continues below its beginning.
    private static func line(_ name: String, _ text: String, _ columns: Int) -> String {
        let room = columns - 1 - labelWidth
        let lines =
            TerminalText.width(text) <= room
            ? [text] : TerminalText.filled(text, to: max(room, 20), keepingBlanks: true)
        return lines.enumerated().map { index, line in
            ("  " + (index == 0 ? name : "")).padded(to: labelWidth, gap: 1) + line + "\n"
        }.joined()
    }

    private func line(_ name: String, _ text: String) -> String { Self.line(name, text, columns) }

    private static let labelWidth = 15
    /// With this width, eight cells fit into 80 columns, the last of which stays free.
    private static let cellWidth = 8

    /// The latency figures for which there is room; the most important ones stay.
    private var names: [String] {
        let room = max(3, (columns - 1 - Self.labelWidth) / Self.cellWidth)
        let kept = ["p50", "p99", "max", "p90", "p99.9", "mean", "p95", "p75"].prefix(room)
        return (BenchReport.percents.map(\.name) + ["max", "mean"]).filter(kept.contains)
    }

    private func row(_ name: String, _ cells: [String]) -> String {
        "  " + name.padded(to: 13, gap: 1) + cells.map { $0.aligned(right: Self.cellWidth) }.joined() + "\n"
    }

    private func time(_ microseconds: Double?) -> String {
        let nanoseconds = UInt64((microseconds ?? 0) * 1000)
        let text = durationText(nanoseconds: nanoseconds)
        return text.count < Self.cellWidth ? text : "\(nanoseconds / 1_000_000_000) s"
    }
}

/// Ferry's figures next to those of another client.
struct BenchComparison {
    /// One figure of both clients, and the ratio of Ferry's to the other's.
    struct Line: Sendable, Equatable {
        let name: String
        let ours: String
        let theirs: String
        let ratio: String
    }

    let rival: String
    let lines: [Line]

    /// `nil` without a comparison.
    init?(_ report: BenchReport) {
        guard let other = report.comparison else { return nil }
        rival = other.name
        func line(_ name: String, _ ours: Double, _ theirs: Double, _ text: (Double) -> String) -> Line {
            Line(
                name: name, ours: text(ours), theirs: text(theirs),
                ratio: theirs > 0 ? fixed(ours / theirs, 2) + " ×" : "–")
        }
        func time(_ microseconds: Double) -> String { durationText(nanoseconds: UInt64(microseconds * 1000)) }
        lines =
            [line("responses/s", report.rps, other.rps) { grouped(UInt64($0)) }]
            + ["p50", "p99", "max"].map { line($0, report.latency[$0] ?? 0, other.latency[$0] ?? 0, time) }
            + [
                line("CPU per request", report.cpu.values.reduce(0, +), other.cpu.values.reduce(0, +)) {
                    fixed($0, 1) + " µs"
                },
                line("memory", Double(report.memory), Double(other.memory)) { fixed($0 / 1024, 1) + " MB" },
                line("failed", Double(report.failed), Double(other.failed)) { grouped(UInt64($0)) },
            ]
    }

    /// A table for the terminal.
    var table: String {
        func row(_ cells: [String]) -> String {
            "  " + cells[0].padded(to: 19, gap: 1)
                + cells.dropFirst().map { $0.aligned(right: 14) }.joined() + "\n"
        }
        return "\n" + row(["", "Ferry", rival, "ratio"])
            + lines.map { row([$0.name, $0.ours, $0.theirs, $0.ratio]) }.joined()
    }
}
