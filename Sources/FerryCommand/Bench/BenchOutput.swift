internal import Ferry
internal import FerryMeasurement
internal import FerrySynchronization
internal import FoundationEssentials

/// Where the report goes.
struct BenchOutput: Sendable, Equatable {
    /// Whether to print JSON instead of the table.
    var printsJSON = false
    /// A file for the JSON object.
    var jsonFile: String?
    /// A file for the HTML page.
    var htmlFile: String?

    init(_ arguments: ParsedArguments) throws {
        // Check the files before spending minutes on the load.
        for option in arguments.options where option.name == "json" {
            if option.value.isEmpty {
                printsJSON = true
            } else {
                jsonFile = try OutputFile.checked(
                    option.value, of: "json", instead: "--json without a file prints to standard output")
            }
        }
        htmlFile = try arguments.last("html").map { try OutputFile.checked($0, of: "html") }
    }

    /// Prints the report and writes the files. Returns the exit code, which is `code` or else that of the ruling.
    func write(_ report: BenchReport, _ ruling: BenchRuling, after code: ExitCode? = nil) -> ExitCode {
        let columns = Console.outIsTerminal ? Console.tableColumns : Self.fileColumns
        tell(table: BenchTable(report, columns: columns).text, json: report.json, checks: report.checks)
        return save(json: report.json, page: BenchPage(report, ruling).html, after: code ?? ruling.exitCode)
    }

    /// A file has room for whole lines, which are easier to search.
    private static let fileColumns = 10_000

    /// Prints the report; missed conditions come last, before writing a file can fail.
    func tell(table: String, json: String, checks: [BenchCheck]?) {
        Console.out(printsJSON ? json + "\n" : table)
        for complaint in (checks ?? []).compactMap(\.complaint) {
            Console.error("ferry bench: \(Main.oneLine(complaint))\n")
        }
    }

    /// Writes the files; the page is made only if it is wanted. The result of the load takes precedence over a file
    /// that could not be written.
    func save(json: String, page: @autoclosure () -> String, after code: ExitCode) -> ExitCode {
        var code = code
        func write(_ text: String, to path: String) {
            do throws(InputError) {
                try OutputFile.write(text, to: path)
            } catch {
                Console.error("ferry bench: \(Main.oneLine(error.message))\n")
                if code == .success { code = .transferFailed }
            }
        }
        if let jsonFile { write(json + "\n", to: jsonFile) }
        if let htmlFile { write(page(), to: htmlFile) }
        return code
    }
}

/// Draws the live figures on the terminal, each picture over the last.
final class BenchDisplay: Sendable {
    private let plan: BenchPlan
    private let picture = Mutex(LivePicture())

    init(_ plan: BenchPlan) { self.plan = plan }

    func show(_ totals: BenchTotals, _ windows: [BenchWindow], seconds: Double, isWarmUp: Bool) {
        let size = Console.size
        let lines = BenchBoard.lines(
            totals, windows, title: isWarmUp ? "warming up: \(plan.title)" : plan.title,
            progress: progress(totals, seconds, isWarmUp), columns: size.columns)
        draw(Array(lines.prefix(max(1, size.rows - 1))))
    }

    /// Removes the picture.
    func clear() { draw([]) }

    private func progress(_ totals: BenchTotals, _ seconds: Double, _ isWarmUp: Bool) -> String {
        if let goal = isWarmUp ? plan.warmUp : plan.duration {
            return BenchBoard.progress(seconds, of: goal)
        }
        let ended = "\(grouped(totals.ok + totals.failed)) of \(grouped(UInt64(plan.requests ?? 0)))"
        return "\(ended)  \(fixed(seconds, 1)) s"
    }

    private func draw(_ lines: [String]) {
        let lines = lines.enumerated().map { index, line in index == 0 ? Console.boldError(line) : line }
        picture.withLock { $0.draw(lines) }
    }
}

/// The live figures of a running load, as lines that fit the terminal.
enum BenchBoard {
    private static let labelWidth = 9
    private static let figureWidth = 22

    static func lines(
        _ totals: BenchTotals, _ windows: [BenchWindow], title: String, progress: String, columns: Int
    ) -> [String] {
        // The last column stays free: some terminals wrap as soon as it is written to.
        let width = max(1, columns - 1)
        let last = windows.last
        var lines = [
            header(title, progress, width),
            curve("rate", windows.map(\.rate), "\(grouped(UInt64(last?.rate ?? 0))) per second", width),
            curve(
                "p99", windows.map { Double($0.latencies.percentile(99)) }, time(last?.latencies.percentile(99)), width),
        ]
        let percents = BenchReport.percents.map { "\($0.name) \(time(totals.latencies.percentile($0.percent)))" }
        lines.append(
            joined("latency", percents + ["max \(time(totals.latencies.maximum))"], width))
        let seen = (windows.last?.end).map { $0 > 0 ? Double(totals.bytes) / $0 : 0 } ?? 0
        var counts = ["\(grouped(totals.ok)) ok", "\(grouped(totals.failed)) failed"]
        if totals.wrongBodies > 0 { counts.append("\(grouped(totals.wrongBodies)) wrong bodies") }
        counts.append("\(bytesText(Int64(seen)))/s")
        lines.append(joined("total", counts, width))
        return lines
    }

    /// `0.2 of 0.5 s`
    static func progress(_ seconds: Double, of goal: Duration) -> String {
        let whole = goal.microseconds
        let digits = whole % 1_000_000 == 0 ? 0 : whole % 100_000 == 0 ? 1 : 3
        return "\(fixed(seconds, 1)) of \(fixed(Double(whole) / 1e6, digits)) s"
    }

    private static func header(_ title: String, _ progress: String, _ width: Int) -> String {
        let progress = TerminalText.cut(progress, to: width)
        let room = width - TerminalText.width(progress) - 2
        let title = TerminalText.cut(title, to: max(0, room))
        let gap = max(0, width - TerminalText.width(title) - TerminalText.width(progress))
        return title + blanks(title.isEmpty ? 0 : gap) + progress
    }

    /// `rate     ▃▅▆▇▇█▇▇      72,114 per second`
    private static func curve(_ label: String, _ values: [Double], _ figure: String, _ width: Int) -> String {
        let room = width - labelWidth - figureWidth - 2
        if room < 8 { return TerminalText.cut(label.padded(to: labelWidth) + figure, to: width) }
        let curve = Sparkline.text(values, width: room)
        return label.padded(to: labelWidth) + curve.padded(to: room)
            + figure.aligned(right: figureWidth + 2, gap: 0)
    }

    /// The words, from the first, as far as they fit.
    private static func joined(_ label: String, _ words: [String], _ width: Int) -> String {
        var text = label.padded(to: labelWidth)
        for (index, word) in words.enumerated() {
            let next = (index == 0 ? "" : "   ") + word
            if TerminalText.width(text + next) > width { break }
            text += next
        }
        return TerminalText.cut(text, to: width)
    }

    private static func time(_ nanoseconds: UInt64?) -> String {
        nanoseconds.map { durationText(nanoseconds: $0) } ?? "–"
    }
}

/// Draws values as block characters of different heights.
enum Sparkline {
    private static let steps = Array("▁▂▃▄▅▆▇█")

    /// The last `width` values. The highest is a full block and 0 the lowest one, so heights are proportional.
    static func text(_ values: [Double], width: Int) -> String {
        let shown = values.suffix(max(0, width))
        let top = shown.max() ?? 0
        return String(
            shown.map { value in
                guard top > 0 else { return steps[0] }
                let share = min(max(value / top, 0), 1)
                return steps[min(steps.count - 1, Int(share * Double(steps.count)))]
            })
    }
}
