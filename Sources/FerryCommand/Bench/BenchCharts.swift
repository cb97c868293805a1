internal import FerryMeasurement
internal import Glibc

/// The charts of a report's page.
struct BenchCharts {
    /// The data of the charts.
    struct Figures: Sendable {
        let histogram: [BenchReport.Bar]
        /// By the name of the percentile.
        let latency: [String: Double]
        let series: [BenchReport.Point]

        /// The number of values in the histogram.
        var count: UInt64 { histogram.reduce(0) { $0 + $1.count } }
    }

    private let figures: Figures
    private let format: ChartFrame.Format

    init(_ figures: Figures, _ format: ChartFrame.Format) {
        self.figures = figures
        self.format = format
    }

    /// A legend with a chart for wide windows and one for narrow ones, of which the page's style shows one. `nil` if
    /// there is nothing to draw.
    static func both(
        _ figures: Figures, _ drawing: KeyPath<BenchCharts, String>, _ legend: [(kind: String, text: String)]
    ) -> String? {
        let charts = ChartFrame.Format.all.compactMap { format -> String? in
            let svg = BenchCharts(figures, format)[keyPath: drawing]
            return svg.isEmpty ? nil : "<div class=\"\(format.name)\">\(svg)</div>"
        }
        if charts.isEmpty { return nil }
        let words = legend.map { "<span><i class=\"\($0.kind)\"></i>\($0.text)</span>" }
        return "<p class=\"legend\">\(words.joined())</p>\n" + charts.joined(separator: "\n")
    }

    // MARK: The distribution

    /// The distribution of the latencies over a logarithmic axis, with the percentiles marked. Empty without responses.
    var distribution: String {
        let bars = figures.histogram
        guard let first = bars.first, let last = bars.last, let most = bars.map(\.count).max() else { return "" }
        let frame = ChartFrame(
            format, height: 270, x: max(first.from, 0.1)...max(last.to, 1), y: 0...Double(most) * 1.08,
            xScale: .logarithmic)
        var svg = frame.axes(x: Self.time, y: Self.count)
        for bar in bars where bar.count > 0 {
            let (start, end) = (frame.x(of: bar.from), frame.x(of: bar.to))
            // Even a single response must be visible.
            let top = min(frame.y(of: Double(bar.count)), frame.floor - 1.5)
            let share = fixed(Double(bar.count) / Double(max(1, figures.count)) * 100, 2)
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
        var taken: [Range<Double>] = []
        // A name that would overlap an earlier one is omitted, so the most important names come first. The table has
        // all of them.
        for name in ["p50", "p99", "p99.9", "p90"] {
            guard let value = figures.latency[name] else { continue }
            let place = frame.x(of: value)
            svg += """
                <line class="mark" x1="\(frame.number(place))" y1="\(ChartFrame.top - 6)" x2="\(frame.number(place))" \
                y2="\(frame.number(frame.floor))"/>

                """
            // At the end there is room only before the line.
            let width = 8 + 7.5 * Double(name.count)
            let isAtEnd = place + width > format.width
            let room = isAtEnd ? place - width..<place : place..<place + width
            if taken.contains(where: room.overlaps) { continue }
            taken.append(room)
            let side = isAtEnd ? #" text-anchor="end""# : ""
            let start = frame.number(isAtEnd ? place - 4 : place + 4)
            svg += "<text class=\"label\" x=\"\(start)\" y=\"\(ChartFrame.top + 2)\"\(side)>\(name)</text>\n"
        }
        return svg
    }

    // MARK: Over time

    /// Accepted responses per second, with a mark where requests failed.
    var rate: String {
        guard let frame = overTime(height: 190, 0...max(4, (figures.series.map(\.rps).max() ?? 0) * 1.12)) else {
            return ""
        }
        let points = steps { $0.rps }
        var svg = frame.axes(x: Self.seconds, y: Self.count)
        svg += "<path class=\"area\" d=\"\(frame.path([(0, 0)] + points + [(end, 0)]))Z\"/>\n"
        svg += "<path class=\"line one\" d=\"\(frame.path(points))\"/>\n"
        var start = 0.0
        for point in figures.series {
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
        return frame.drawing("accepted responses per second over time", svg)
    }

    /// Percentiles over time, on a logarithmic axis.
    var latencies: String {
        let answered = figures.series.filter { $0.max > 0 }
        guard let low = answered.map(\.p50).min(), let high = answered.map(\.max).max(),
            let frame = overTime(height: 230, max(low * 0.8, 0.1)...max(high * 1.2, 1), .logarithmic)
        else { return "" }
        var svg = frame.axes(x: Self.seconds, y: Self.time)
        for (kind, figure) in [("three", \BenchReport.Point.max), ("two", \.p99), ("one", \.p50)] {
            svg += "<path class=\"line \(kind)\" d=\"\(frame.path(steps { $0[keyPath: figure] }))\"/>\n"
        }
        return frame.drawing("latencies over time", svg)
    }

    private var end: Double { figures.series.last?.at ?? 0 }

    private func overTime(
        height: Double, _ y: ClosedRange<Double>, _ scale: ChartFrame.Scale = .linear
    ) -> ChartFrame? {
        if end <= 0 { return nil }
        return ChartFrame(format, height: height, x: 0...end, y: y, yScale: scale)
    }

    /// A window's figure is drawn across the whole window, not at one moment.
    private func steps(_ figure: (BenchReport.Point) -> Double) -> [(x: Double, y: Double)] {
        var start = 0.0
        return figures.series.flatMap { point in
            defer { start = point.at }
            return [(start, figure(point)), (point.at, figure(point))]
        }
    }

    // MARK: Words

    static func time(_ microseconds: Double) -> String {
        let text = durationText(nanoseconds: UInt64(max(0, microseconds) * 1000))
        return text.replacing(".0 ", with: " ").replacing(".00 ", with: " ")
    }

    private static func seconds(_ value: Double) -> String { LinePlot.number(value) + " s" }

    private static func count(_ value: Double) -> String {
        value >= 1 || value == 0 ? grouped(UInt64(value)) : LinePlot.number(value)
    }
}

/// The frame of a chart as SVG: the positions of values, the axes and their labels.
struct ChartFrame: Sendable {
    /// How values are spread over an axis.
    enum Scale: Sendable {
        case linear
        /// By powers of ten; values below the range lie at its beginning.
        case logarithmic
    }

    /// The width of the drawing. Text scales with a drawing: one for a wide window is unreadable in a narrow one, so a
    /// page has both.
    struct Format: Sendable {
        /// The class of its container; the page's style shows one of the two.
        let name: String
        let width: Double
        let left: Double
        /// The maximum number of values on the x axis.
        let ticks: Int

        static let wide = Format(name: "wide", width: 960, left: 68, ticks: 11)
        static let slim = Format(name: "slim", width: 400, left: 52, ticks: 4)
        static let all = [wide, slim]

        /// The style rules that show the format that fits.
        static let style = """
            .slim { display: none; }
            @media (max-width: 640px) { .wide { display: none; } .slim { display: block; } }
            """
    }

    static let right = 20.0
    static let top = 26.0
    static let bottom = 30.0

    let format: Format
    let height: Double
    let x: ClosedRange<Double>
    let y: ClosedRange<Double>
    let xScale: Scale
    let yScale: Scale

    init(
        _ format: Format, height: Double, x: ClosedRange<Double>, y: ClosedRange<Double>, xScale: Scale = .linear,
        yScale: Scale = .linear
    ) {
        self.format = format
        self.height = height
        self.x = x
        self.y = y
        self.xScale = xScale
        self.yScale = yScale
    }

    var floor: Double { height - Self.bottom }

    func x(of value: Double) -> Double {
        format.left + Self.share(value, x, xScale) * (format.width - format.left - Self.right)
    }

    func y(of value: Double) -> Double {
        floor - Self.share(value, y, yScale) * (floor - Self.top)
    }

    private static func share(_ value: Double, _ range: ClosedRange<Double>, _ scale: Scale) -> Double {
        func place(_ value: Double) -> Double { scale == .linear ? value : log10(max(value, range.lowerBound)) }
        let width = place(range.upperBound) - place(range.lowerBound)
        return width > 0 ? min(max((place(value) - place(range.lowerBound)) / width, 0), 1) : 0
    }

    /// Round values within the range: 1, 2 and 5 times powers of ten, at most `count` if possible. A logarithmic range
    /// with fewer than two of them is divided like a linear one.
    static func ticks(_ range: ClosedRange<Double>, _ scale: Scale, atMost count: Int) -> [Double] {
        switch scale {
        case .linear:
            let width = range.upperBound - range.lowerBound
            guard width > 0 else { return [range.lowerBound] }
            var step = pow(10, (log10(width / Double(count))).rounded(.up))
            for factor in [0.2, 0.5] where width / (step * factor) <= Double(count) {
                step *= factor
                break
            }
            let first = (range.lowerBound / step).rounded(.up)
            return (0...count).map { (first + Double($0)) * step }.filter { $0 <= range.upperBound + step / 1000 }
        case .logarithmic:
            for factors in [[1.0, 2, 5], [1, 3], [1]] {
                let ticks = decades(range).flatMap { decade in factors.map { $0 * decade } }.filter(range.contains)
                if ticks.count < 2 { return Self.ticks(range, .linear, atMost: count) }
                if ticks.count <= count || factors.count == 1 { return ticks }
            }
            return []
        }
    }

    private static func decades(_ range: ClosedRange<Double>) -> [Double] {
        let first = log10(max(range.lowerBound, 1e-3)).rounded(.down)
        let last = log10(max(range.upperBound, 1e-3)).rounded(.down)
        return stride(from: first, through: last, by: 1).map { pow(10, $0) }
    }

    /// The horizontal lines with their values, and the values of the x axis.
    func axes(x xText: (Double) -> String, y yText: (Double) -> String) -> String {
        var svg = ""
        for value in Self.ticks(y, yScale, atMost: 5) {
            let place = number(y(of: value))
            svg +=
                "<line class=\"grid\" x1=\"\(format.left)\" y1=\"\(place)\" x2=\"\(format.width - Self.right)\" y2=\"\(place)\"/>"
            svg +=
                "<text class=\"axis\" x=\"\(format.left - 8)\" y=\"\(number(y(of: value) + 4))\" text-anchor=\"end\">"
            svg += yText(value) + "</text>\n"
        }
        for value in Self.ticks(x, xScale, atMost: format.ticks) {
            svg +=
                "<text class=\"axis\" x=\"\(number(x(of: value)))\" y=\"\(number(floor + 20))\" text-anchor=\"middle\">"
            svg += xText(value) + "</text>\n"
        }
        return svg
    }

    /// The whole drawing.
    func drawing(_ label: String, _ content: String) -> String {
        """
        <svg viewBox="0 0 \(Int(format.width)) \(Int(height))" role="img" aria-label="\(HTMLText.escaped(label))">
        \(content)</svg>
        """
    }

    /// A line through points.
    func path(_ points: [(x: Double, y: Double)]) -> String {
        points.enumerated().map { index, point in
            (index == 0 ? "M" : "L") + number(x(of: point.x)) + " " + number(y(of: point.y))
        }.joined()
    }

    func number(_ value: Double) -> String { fixed(value, 1) }
}
