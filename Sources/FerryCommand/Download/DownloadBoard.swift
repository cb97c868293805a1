internal import Ferry
internal import FerryMeasurement
internal import FerrySynchronization

/// The lines on a terminal that show the progress of downloads: one for each active download, below the finished ones.
final class DownloadBoard: Sendable {
    private struct Row: Sendable {
        var number: Int
        var name: String
        var progress: DownloadProgress?
    }

    private struct State {
        var rows: [Row] = []
        var count = 0
        var picture = LivePicture()
    }

    private let state = Mutex(State())

    /// Reserves a line; returns its number.
    func enter(_ name: String) -> Int {
        state.withLock { state in
            state.count += 1
            state.rows.append(Row(number: state.count, name: Main.oneLine(name)))
            return state.count
        }
    }

    func update(_ number: Int, _ progress: DownloadProgress) {
        state.withLock { state in
            guard let index = state.rows.firstIndex(where: { $0.number == number }) else { return }
            state.rows[index].progress = progress
        }
    }

    /// Replaces the line by the result, which stays.
    func leave(_ report: DownloadReport) {
        let width = Console.size.columns
        draw { state in
            guard let index = state.rows.firstIndex(where: { $0.number == report.row }) else { return [] }
            let row = state.rows.remove(at: index)
            return [ProgressLine.result(report.name(instead: row.name), report, width: width)]
        }
    }

    /// Draws ten times a second, until its task is cancelled.
    func show() async {
        while !Task.isCancelled {
            draw { _ in [] }
            try? await Task.sleep(for: .milliseconds(100))
        }
        draw { state in
            state.rows = []
            return []
        }
    }

    /// Prints the permanent lines, and below them those of the active downloads.
    private func draw(_ change: (inout State) -> [String]) {
        let size = Console.size
        state.withLock { state in
            let stays = change(&state)
            let room = max(size.rows - 1, 1)
            var lines = state.rows.prefix(state.rows.count > room ? room - 1 : room).map { row in
                ProgressLine.underWay(row.name, row.progress, width: size.columns)
            }
            if state.rows.count > lines.count { lines.append("and \(state.rows.count - lines.count) more") }
            state.picture.draw(lines, below: stays)
        }
    }
}

/// The lines of the board, none wider than the terminal.
enum ProgressLine {
    private static let leastBar = 10
    private static let mostBar = 40

    static func underWay(_ name: String, _ progress: DownloadProgress?, width: Int) -> String {
        guard let progress else { return row(name, "waiting", width: width) }
        var figures = bytesText(progress.received)
        if let total = progress.total { figures += " of \(bytesText(total))" }
        if progress.rate > 0 { figures += "  \(bytesText(Int64(progress.rate)))/s" }
        if let remaining = progress.remaining, progress.received < progress.total ?? 0 {
            figures += "  \(clockText(remaining))"
        }
        guard let fraction = progress.fraction else { return row(name, figures, width: width) }
        figures = percent(fraction) + "  " + figures
        return row(name, figures, width: width, fraction: fraction)
    }

    static func result(_ name: String, _ report: DownloadReport, width: Int) -> String {
        if let fault = report.fault {
            let what = report.exitCode == .interrupted ? "interrupted" : Main.oneLine(fault.line)
            let part = report.isResumable ? "  (\(bytesText(report.bytes)) kept)" : ""
            return row(name, what + part, width: width)
        }
        if report.isUnchanged { return row(name, "already complete, \(bytesText(report.bytes))", width: width) }
        let fresh = Double(report.bytes - report.resumedFrom) * 1e9 / Double(max(report.nanoseconds, 1))
        var text = "\(bytesText(report.bytes)) in \(durationText(nanoseconds: report.nanoseconds))"
        text += ", \(bytesText(Int64(max(fresh, 0))))/s"
        if report.resumedFrom > 0 { text += ", gone on from \(bytesText(report.resumedFrom))" }
        return row(name, text, width: width)
    }

    /// `name  [=====>    ]  figures`, if there is room for all of it.
    private static func row(_ name: String, _ figures: String, width: Int, fraction: Double? = nil) -> String {
        // The last column stays empty, because some terminals wrap as soon as it is written.
        let width = max(width - 1, 1)
        let figures = TerminalText.cut(figures, to: width)
        let left = width - TerminalText.width(figures) - 2
        if left < 4 { return figures }
        let nameWidth = fraction == nil ? left : min(left, max(left - leastBar - 2, left * 2 / 5))
        let shown = TerminalText.cut(name, to: min(nameWidth, 32))
        let padded = shown + blanks(min(nameWidth, 32, 24) - TerminalText.width(shown))
        var text = Console.boldError(padded)
        let rest = left - TerminalText.width(padded) - 2
        if let fraction, rest >= leastBar + 2 { text += "  " + bar(fraction, min(rest - 2, mostBar)) }
        return text + "  " + figures
    }

    private static func bar(_ fraction: Double, _ width: Int) -> String {
        let full = Int(Double(width) * min(max(fraction, 0), 1))
        let head = full > 0 && full < width ? ">" : ""
        let body = String(repeating: "=", count: full - head.count)
        return "[" + body + head + blanks(width - full) + "]"
    }

    private static func percent(_ fraction: Double) -> String {
        "\(Int(min(max(fraction, 0), 1) * 100))%".aligned(right: 4, gap: 0)
    }
}

/// The latest progress of a download.
final class LatestProgress: Sendable {
    private let latest = Mutex<DownloadProgress?>(nil)

    var value: DownloadProgress? { latest.withLock { $0 } }
    func set(_ progress: DownloadProgress) { latest.withLock { $0 = progress } }
}
