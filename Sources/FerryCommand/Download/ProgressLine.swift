internal import Ferry
internal import FerryMeasurement

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
        let fresh = Double(report.bytes - report.resumedFrom) * 1e9 / Double(max(report.nanoseconds, 1))
        var text = "\(bytesText(report.bytes)) in \(durationText(nanoseconds: report.nanoseconds))"
        text += ", \(bytesText(Int64(max(fresh, 0))))/s"
        if report.resumedFrom > 0 { text += ", gone on from \(bytesText(report.resumedFrom))" }
        return row(name, text, width: width)
    }

    /// `name  [=====>    ]  figures`, where there is room for all of it.
    private static func row(_ name: String, _ figures: String, width: Int, fraction: Double? = nil) -> String {
        // The last column is left free: some terminals go to the next line as soon as it is written to.
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
