internal import FerryMeasurement

/// What stands on the terminal while the load runs, as lines none of which is wider than it.
enum BenchBoard {
    private static let labelWidth = 9
    private static let figureWidth = 22

    static func lines(
        _ totals: BenchTotals, _ windows: [BenchWindow], title: String, progress: String, columns: Int
    ) -> [String] {
        // The last column is left free: some terminals go to the next line as soon as it is written to.
        let width = max(1, columns - 1)
        let last = windows.last
        var lines = [
            header(title, progress, width),
            curve("rate", windows.map(\.rate), "\(grouped(UInt64(last?.rate ?? 0))) a second", width),
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
        lines.append(joined("answers", counts, width))
        return lines
    }

    private static func header(_ title: String, _ progress: String, _ width: Int) -> String {
        let progress = TerminalText.cut(progress, to: width)
        let room = width - TerminalText.width(progress) - 2
        let title = TerminalText.cut(title, to: max(0, room))
        let gap = max(0, width - TerminalText.width(title) - TerminalText.width(progress))
        return title + blanks(title.isEmpty ? 0 : gap) + progress
    }

    /// `rate     ▃▅▆▇▇█▇▇      72,114 a second`
    private static func curve(_ label: String, _ values: [Double], _ figure: String, _ width: Int) -> String {
        let room = width - labelWidth - figureWidth - 2
        if room < 8 { return TerminalText.cut(label.padded(to: labelWidth) + figure, to: width) }
        let curve = Sparkline.text(values, width: room)
        return label.padded(to: labelWidth) + curve.padded(to: room)
            + figure.aligned(right: figureWidth + 2, gap: 0)
    }

    /// As many of them as there is room for, the first ones first.
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
