internal import FerryMeasurement
internal import Glibc

/// The area of a chart of a page: places of values, and the lines and words around it, as SVG.
struct ChartFrame: Sendable {
    /// How values are spread over an axis.
    enum Scale: Sendable {
        case linear
        /// By powers of ten; values below the range lie at its beginning.
        case logarithmic
    }

    static let width = 960.0
    static let left = 68.0
    static let right = 20.0
    static let top = 26.0
    static let bottom = 30.0

    let height: Double
    let x: ClosedRange<Double>
    let y: ClosedRange<Double>
    let xScale: Scale
    let yScale: Scale

    init(
        height: Double, x: ClosedRange<Double>, y: ClosedRange<Double>, xScale: Scale = .linear, yScale: Scale = .linear
    ) {
        self.height = height
        self.x = x
        self.y = y
        self.xScale = xScale
        self.yScale = yScale
    }

    var floor: Double { height - Self.bottom }

    func x(of value: Double) -> Double {
        Self.left + Self.share(value, x, xScale) * (Self.width - Self.left - Self.right)
    }

    func y(of value: Double) -> Double {
        floor - Self.share(value, y, yScale) * (floor - Self.top)
    }

    private static func share(_ value: Double, _ range: ClosedRange<Double>, _ scale: Scale) -> Double {
        func place(_ value: Double) -> Double { scale == .linear ? value : log10(max(value, range.lowerBound)) }
        let width = place(range.upperBound) - place(range.lowerBound)
        return width > 0 ? min(max((place(value) - place(range.lowerBound)) / width, 0), 1) : 0
    }

    /// Round values within the range: 1, 2 and 5 times powers of ten, at most so many where that can be.
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

    /// Lines across with their values, and the values along the bottom.
    func axes(x xText: (Double) -> String, y yText: (Double) -> String) -> String {
        var svg = ""
        for value in Self.ticks(y, yScale, atMost: 5) {
            let place = number(y(of: value))
            svg +=
                "<line class=\"grid\" x1=\"\(Self.left)\" y1=\"\(place)\" x2=\"\(Self.width - Self.right)\" y2=\"\(place)\"/>"
            svg += "<text class=\"axis\" x=\"\(Self.left - 8)\" y=\"\(number(y(of: value) + 4))\" text-anchor=\"end\">"
            svg += yText(value) + "</text>\n"
        }
        for value in Self.ticks(x, xScale, atMost: 11) {
            svg +=
                "<text class=\"axis\" x=\"\(number(x(of: value)))\" y=\"\(number(floor + 20))\" text-anchor=\"middle\">"
            svg += xText(value) + "</text>\n"
        }
        return svg
    }

    /// The whole drawing.
    func drawing(_ label: String, _ content: String) -> String {
        """
        <svg viewBox="0 0 \(Int(Self.width)) \(Int(height))" role="img" aria-label="\(HTMLText.escaped(label))">
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
