internal import Ferry
internal import FerryMeasurement

/// The result of a plan.
struct PlanReport: Sendable {
    let name: String
    let rows: [PlanRow]
    let nanoseconds: UInt64
    /// What ended it, if it is not the failure of one request, like the deadline of a batch.
    var fault: RequestError?

    var finished: Int { rows.count { $0.state == .finished } }
    var isOK: Bool { finished == rows.count }

    /// The exit code, by the first failure.
    var exitCode: ExitCode {
        let failures = rows.filter { $0.state == .failed }.sorted { $0.end < $1.end }
        guard let first = failures.first, let code = first.code else { return isOK ? .success : .transferFailed }
        switch code {
        case .invalidStatusCode: return .statusNotAccepted
        case .applicationError, .invalidJSON, .schemaMismatch, .decoding, .invalidContentType: return .validationFailed
        default: return .transferFailed
        }
    }

    /// The table for a terminal of the usual width.
    var table: String { table(columns: Console.usualColumns) }

    /// The table in lines of at most `columns`.
    func table(columns: Int) -> String { PlanTable(self, columns: columns).text }

    /// One line, with fields in alphabetical order.
    var json: String { jsonLine(self) }
}

/// The phases of a run that are measured.
enum PlanPhase: String, CaseIterable, Sendable {
    case queue, connect, wait, body

    /// Nanoseconds of each phase; phases that did not happen are omitted. Of a run with several exchanges only the
    /// last one is known, which would not fill the run's time.
    static func times(of row: PlanRow) -> [PlanPhase: UInt64] {
        guard let metrics = row.metrics, metrics.attempts == 1, metrics.redirects == 0 else { return [:] }
        func nanoseconds(_ duration: Duration?) -> UInt64 {
            duration.map { UInt64(max(0, $0.microseconds)) * 1000 } ?? 0
        }
        var times: [PlanPhase: UInt64] = [.queue: nanoseconds(metrics.queue)]
        let connect = [metrics.nameLookup, metrics.connect, metrics.tls].reduce(0) { $0 + nanoseconds($1) }
        if connect > 0 { times[.connect] = connect }
        if metrics.firstByte != nil { times[.wait] = nanoseconds(metrics.firstByte) }
        let known = times.values.reduce(0, +)
        let total = nanoseconds(metrics.total)
        if metrics.firstByte != nil, total > known { times[.body] = total - known }
        return times
    }
}

extension PlanReport: Encodable {
    private enum Key: String, CodingKey { case ok, plan, seconds, steps }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(isOK, forKey: .ok)
        try object.encode(name, forKey: .plan)
        try object.encode(Double(nanoseconds / 1000) / 1e6, forKey: .seconds)
        try object.encode(rows, forKey: .steps)
    }
}

extension PlanRow: Encodable {
    private enum Key: String, CodingKey {
        case name, state, reason, status, startUs, endUs, fromCache, cache, attempts, metrics, error
    }

    private struct Fault: Encodable {
        let code: String
        let message: String
    }

    /// Every field is always present; a missing value is `null`.
    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(name, forKey: .name)
        try object.encode(state, forKey: .state)
        try object.encode(reason, forKey: .reason)
        try object.encode(status, forKey: .status)
        try object.encode(start / 1000, forKey: .startUs)
        try object.encode(end / 1000, forKey: .endUs)
        try object.encode(isFromCache, forKey: .fromCache)
        try object.encode(metrics?.cache?.rawValue, forKey: .cache)
        try object.encode(attempts, forKey: .attempts)
        try object.encode(metrics.map(FetchTimes.init), forKey: .metrics)
        try object.encode(code.map { Fault(code: $0.name, message: explanation ?? message ?? "") }, forKey: .error)
    }
}

/// The result of one run of a request of a plan.
struct PlanRow: Sendable {
    enum State: String, Sendable, Encodable {
        /// It never started.
        case skipped
        case running, finished, failed, cancelled
    }

    let name: String
    /// The nesting depth in batches and chains.
    let depth: Int
    var state = State.skipped
    /// Why it never started; `nil` if it did.
    var reason: String?
    /// Nanoseconds since the start of the plan.
    var start: UInt64 = 0
    var end: UInt64 = 0
    var status: Int?
    var isFromCache = false
    var metrics: RequestMetrics?
    var code: RequestError.Code?
    var message: String?
    /// The error for people: what was expected, or the name and its limit. Without it, ``message`` is used.
    var explanation: String?

    var nanoseconds: UInt64 { end - min(start, end) }
    var attempts: Int { metrics?.attempts ?? 0 }

    /// For people: whether the response came from the cache, and whether it is stale.
    var cached: String { metrics?.cache == .stale ? "stale" : isFromCache ? "yes" : "no" }

    /// For people; `nil` without an error.
    var fault: String? {
        if let explanation { return explanation }
        return message.map { message in
            switch code {
            // An expectation of a plan is not an error of an application.
            case nil, .applicationError: message
            case let code?: "\(code): \(message)"
            }
        }
    }

    /// For people: that it never started, and why.
    var skipped: String { "skipped" + (reason.map { ": \($0)" } ?? "") }
}

/// The result of a plan as a table: a line for each run of a request, with its times by phase. Control characters in
/// names and messages are replaced.
struct PlanTable {
    private static let timeWidth = 9
    private static let gap = 2
    /// A column of names that is narrower than this costs more lines than it saves.
    private static let fairName = 16

    private let report: PlanReport
    private let columns: Int
    /// The width of the names; longer ones get lines of their own.
    private let nameWidth: Int
    /// The width of the title, or of the longest state.
    private let statusWidth: Int
    /// The phases for which there is room.
    private let phases: [PlanPhase]

    /// No line is longer than `columns`, unless a word is. With fewer than 80 columns, the shorter phases are left out.
    init(_ report: PlanReport, columns: Int) {
        self.report = report
        self.columns = columns
        let names = report.rows.map { Self.width(of: Self.name($0)) }
        let notes = report.rows.map { Self.note($0).count }.max() ?? 0
        let states = report.rows.filter { $0.state != .skipped }.map { Self.status($0).count }
        let statusWidth = max("status".count, states.max() ?? 0)
        self.statusWidth = statusWidth
        func room(beside phases: [PlanPhase]) -> Int {
            let times = (1 + phases.count) * Self.timeWidth
            return columns - Self.gap - statusWidth - times - (notes > 0 ? notes + Self.gap : 0)
        }
        let longest = names.max() ?? 0
        var phases = PlanPhase.allCases
        for phase in [PlanPhase.queue, .connect, .body, .wait]
        where columns < Console.usualColumns && room(beside: phases) < min(longest, Self.fairName) {
            phases.removeAll { $0 == phase }
        }
        self.phases = phases
        nameWidth = max(4, min(longest, room(beside: phases)))
    }

    var text: String {
        let titles = ["total"] + phases.map(\.rawValue)
        let head =
            padded("step") + "  " + "status".padded(to: statusWidth)
            + titles.map { $0.aligned(right: Self.timeWidth) }.joined()
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
        let times = PlanPhase.times(of: row)
        var line = Self.status(row).padded(to: statusWidth)
        line += durationText(nanoseconds: row.nanoseconds).aligned(right: Self.timeWidth)
        for phase in phases {
            line += (times[phase].map { durationText(nanoseconds: $0) } ?? "–").aligned(right: Self.timeWidth)
        }
        let note = Self.note(row)
        return note.isEmpty ? line : line + "  " + note
    }

    /// The status of its response; without one how it ended.
    private static func status(_ row: PlanRow) -> String {
        row.status.map(String.init) ?? (row.state == .finished ? "" : row.state.rawValue)
    }

    /// The words of a text in several lines, in the columns after `first`.
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

    /// Anything unusual: a response from the cache, several attempts.
    private static func note(_ row: PlanRow) -> String {
        var words: [String] = []
        if row.cached != "no" { words.append(row.cached == "stale" ? "stale" : "cached") }
        if row.attempts > 1 { words.append("\(row.attempts) attempts") }
        return words.joined(separator: ", ")
    }
}
