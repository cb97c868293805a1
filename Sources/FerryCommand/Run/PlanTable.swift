internal import FerryMeasurement

/// How a plan went, for people: a line for each run of a request, with its times by phase. Names from files and
/// messages from servers are made harmless.
struct PlanTable {
    private static let statusWidth = 6
    private static let timeWidth = 9
    private static let gap = 2

    private let report: PlanReport
    private let columns: Int
    /// Of the names; longer ones get lines of their own.
    private let nameWidth: Int

    /// No line is longer than `columns`, which are at least the usual ones, unless a word is.
    init(_ report: PlanReport, columns: Int) {
        self.report = report
        self.columns = columns
        let names = report.rows.map { Self.width(of: Self.name($0)) }
        let notes = report.rows.map { Self.note($0).count }.max() ?? 0
        let times = (1 + PlanPhase.allCases.count) * Self.timeWidth
        let room = columns - Self.gap - Self.statusWidth - times - (notes > 0 ? notes + Self.gap : 0)
        nameWidth = max(4, min(names.max() ?? 0, room))
    }

    var text: String {
        let phases = ["total"] + PlanPhase.allCases.map(\.rawValue)
        let head =
            padded("step") + "  " + "status".padded(to: Self.statusWidth)
            + phases.map { $0.aligned(right: Self.timeWidth) }.joined()
        let verdict = report.isOK ? "ok" : "FAILED"
        let time = durationText(nanoseconds: report.nanoseconds)
        let sum =
            "\(verdict): \(Main.oneLine(report.name)), \(report.finished) of \(report.rows.count) steps in \(time)"
        let lines = [head] + report.rows.flatMap(lines) + TerminalText.filled(sum, to: columns)
        return lines.map { $0 + "\n" }.joined()
    }

    private func lines(_ row: PlanRow) -> [String] {
        let name = Self.name(row)
        let isLong = Self.width(of: name) > nameWidth
        let start = padded(isLong ? "" : name) + "  "
        var lines = isLong ? [name] : []
        if row.state == .skipped {
            lines += indented(Main.oneLine(row.skipped), first: start)
        } else {
            lines.append(start + figures(row))
        }
        if let fault = row.fault { lines += indented(Main.oneLine(fault), first: blanks(nameWidth + Self.gap)) }
        return lines
    }

    private func figures(_ row: PlanRow) -> String {
        let status = row.status.map(String.init) ?? (row.state == .finished ? "" : row.state.rawValue)
        let times = PlanPhase.times(of: row)
        var line = status.padded(to: Self.statusWidth)
        line += durationText(nanoseconds: row.nanoseconds).aligned(right: Self.timeWidth)
        for phase in PlanPhase.allCases {
            line += (times[phase].map { durationText(nanoseconds: $0) } ?? "–").aligned(right: Self.timeWidth)
        }
        let note = Self.note(row)
        return note.isEmpty ? line : line + "  " + note
    }

    /// The words of a text below one another, in the columns behind `first`.
    private func indented(_ text: String, first: String) -> [String] {
        var first = first
        return TerminalText.filled(text, to: max(columns - nameWidth - Self.gap, 20)).map { line in
            defer { first = blanks(nameWidth + Self.gap) }
            return first + line
        }
    }

    private func padded(_ name: String) -> String { name + blanks(nameWidth - Self.width(of: name)) }

    private static func name(_ row: PlanRow) -> String { blanks(2 * row.depth) + Main.oneLine(row.name) }

    private static func width(of text: String) -> Int { TerminalText.width(text) }

    /// What is not usual: an answer of the cache's, several attempts.
    private static func note(_ row: PlanRow) -> String {
        var words: [String] = []
        if row.cached != "no" { words.append(row.cached == "stale" ? "stale" : "cached") }
        if row.attempts > 1 { words.append("\(row.attempts) attempts") }
        return words.joined(separator: ", ")
    }
}
