internal import FerryMeasurement

/// The charts of a report's page.
struct BenchCharts {
    private let report: BenchReport

    init(_ report: BenchReport) { self.report = report }

    // MARK: The distribution

    /// How many answers took how long, over a logarithmic axis, with the percentiles marked. Empty without answers.
    var distribution: String {
        let bars = report.histogram
        guard let first = bars.first, let last = bars.last, let most = bars.map(\.count).max() else { return "" }
        let frame = ChartFrame(
            height: 270, x: max(first.from, 0.1)...max(last.to, 1), y: 0...Double(most) * 1.08, xScale: .logarithmic)
        var svg = frame.axes(x: Self.time, y: Self.count)
        for bar in bars where bar.count > 0 {
            let (start, end) = (frame.x(of: bar.from), frame.x(of: bar.to))
            // What happened once in a million shall be seen, too.
            let top = min(frame.y(of: Double(bar.count)), frame.floor - 1.5)
            let share = fixed(Double(bar.count) / Double(max(1, report.ok)) * 100, 2)
            svg += """
                <rect class="bar" x="\(frame.number(start))" y="\(frame.number(top))" \
                width="\(frame.number(max(end - start - 1, 1)))" height="\(frame.number(frame.floor - top))">\
                <title>\(Self.time(bar.from)) to \(Self.time(bar.to)): \(grouped(bar.count)), \(share) %</title></rect>

                """
        }
        return frame.drawing("distribution of latencies", svg + marks(frame))
    }

    private func marks(_ frame: ChartFrame) -> String {
        var svg = ""
        var free = 0.0
        for name in ["p50", "p90", "p99", "p99.9"] {
            guard let value = report.latency[name] else { continue }
            let place = frame.x(of: value)
            svg += """
                <line class="mark" x1="\(frame.number(place))" y1="\(ChartFrame.top - 6)" x2="\(frame.number(place))" \
                y2="\(frame.number(frame.floor))"/>

                """
            // At the end there is room before the line only. Names that would stand in one another are left out; the
            // table has them all.
            let isAtEnd = place + 40 > ChartFrame.width
            if (isAtEnd ? place - 42 : place) < free { continue }
            let side = isAtEnd ? #" text-anchor="end""# : ""
            let start = frame.number(isAtEnd ? place - 4 : place + 4)
            svg += "<text class=\"label\" x=\"\(start)\" y=\"\(ChartFrame.top + 2)\"\(side)>\(name)</text>\n"
            free = place + 46
        }
        return svg
    }

    // MARK: Over time

    /// Accepted answers a second, and where some failed.
    var rate: String {
        guard let frame = overTime(height: 190, 0...max(1, (report.series.map(\.rps).max() ?? 0) * 1.12)) else {
            return ""
        }
        let points = steps { $0.rps }
        var svg = frame.axes(x: Self.seconds, y: Self.count)
        svg += "<path class=\"area\" d=\"\(frame.path([(0, 0)] + points + [(end, 0)]))Z\"/>\n"
        svg += "<path class=\"line one\" d=\"\(frame.path(points))\"/>\n"
        var start = 0.0
        for point in report.series {
            if point.failed > 0 {
                let (from, to) = (frame.x(of: start), frame.x(of: point.at))
                svg += """
                    <rect class="failed" x="\(frame.number(from))" y="\(frame.number(frame.floor - 6))" \
                    width="\(frame.number(max(to - from, 1)))" height="6"><title>\(grouped(point.failed)) failed until \
                    \(Self.seconds(point.at))</title></rect>

                    """
            }
            start = point.at
        }
        return frame.drawing("accepted answers a second over time", svg)
    }

    /// Percentiles over a logarithmic axis.
    var latencies: String {
        let answered = report.series.filter { $0.max > 0 }
        guard let low = answered.map(\.p50).min(), let high = answered.map(\.max).max(),
            let frame = overTime(height: 230, max(low * 0.8, 0.1)...max(high * 1.2, 1), .logarithmic)
        else { return "" }
        var svg = frame.axes(x: Self.seconds, y: Self.time)
        for (kind, figure) in [("three", \BenchReport.Point.max), ("two", \.p99), ("one", \.p50)] {
            svg += "<path class=\"line \(kind)\" d=\"\(frame.path(steps { $0[keyPath: figure] }))\"/>\n"
        }
        return frame.drawing("latencies over time", svg)
    }

    private var end: Double { report.series.last?.at ?? 0 }

    private func overTime(
        height: Double, _ y: ClosedRange<Double>, _ scale: ChartFrame.Scale = .linear
    ) -> ChartFrame? {
        if end <= 0 { return nil }
        return ChartFrame(height: height, x: 0...end, y: y, yScale: scale)
    }

    /// A window's figure lies over all of it, not at one moment.
    private func steps(_ figure: (BenchReport.Point) -> Double) -> [(x: Double, y: Double)] {
        var start = 0.0
        return report.series.flatMap { point in
            defer { start = point.at }
            return [(start, figure(point)), (point.at, figure(point))]
        }
    }

    // MARK: Words

    private static func time(_ microseconds: Double) -> String {
        let text = durationText(nanoseconds: UInt64(max(0, microseconds) * 1000))
        return text.replacing(".0 ", with: " ").replacing(".00 ", with: " ")
    }

    private static func seconds(_ value: Double) -> String { LinePlot.number(value) + " s" }

    private static func count(_ value: Double) -> String {
        value >= 1 || value == 0 ? grouped(UInt64(value)) : LinePlot.number(value)
    }
}
