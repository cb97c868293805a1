internal import Glibc

/// Draws lines over a common axis as self-contained SVG 1.1: no script, no font, no style sheet.
///
/// Linear axes go from 0 to a round number. Logarithmic ones go from one power of ten to another, or horizontally to 1,
/// 2 or 5 times one, and their points are marked. The drawing sets its own colours, and is readable on light and dark
/// pages.
public struct LinePlot: Sendable {
    /// One line and its name in the legend.
    public struct Line: Sendable {
        let name: String
        let points: [(x: Double, y: Double)]

        /// Makes a line through these points, in order.
        public init(name: String, points: [(Double, Double)]) {
            self.name = name
            self.points = points.map { (x: $0.0, y: $0.1) }
        }
    }

    /// How values are mapped to both axes.
    public enum Scales: Sendable {
        /// Linear, from 0.
        case linear
        /// Logarithmic; only values above 0 are drawn.
        case logarithmic
    }

    private let title: String
    private let xLabel: String
    private let yLabel: String
    private let lines: [Line]
    private let scales: Scales
    private let x: ClosedRange<Double>
    private let y: ClosedRange<Double>
    private let top: Double
    /// Where the names of the legend begin: beside the title, or in rows of their own.
    private let names: [(x: Double, y: Double)]
    /// As wide as the axis labels.
    private let left: Double
    private let right: Double

    private static let width = 720.0
    private static let height = 320.0
    private static let bottom = 44.0
    private static let colours = [
        "#1f6feb", "#d1642e", "#2da160", "#8250df", "#bf3989", "#9a6700", "#00a3bf", "#57606a", "#e8a200",
    ]

    /// Makes a plot of these lines.
    public init(title: String, xLabel: String, yLabel: String, lines: [Line], scales: Scales = .linear) {
        self.title = title
        self.xLabel = xLabel
        self.yLabel = yLabel
        self.lines = lines
        self.scales = scales
        let points = lines.flatMap { Self.shown($0, scales) }
        x = Self.range(points.map(\.x), scales, steps: [1, 2, 5, 10])
        y = Self.range(points.map(\.y), scales, steps: [1, 10])
        let (columns, rows) = (Self.ticks(x, scales), Self.ticks(y, scales))
        let widest = rows.map { Self.width(of: Self.shown($0, scales)) }.max() ?? 0
        left = max(64, widest + 14)
        // Half of the last label extends beyond its position, which may be the end of the axis.
        right = max(16, (columns.last.map { Self.width(of: Self.shown($0, scales)) } ?? 0) / 2 + 2)
        // Beside the title there is room for two or three names.
        let isBelow = lines.count > 3 || title.count > 45
        var place = isBelow ? (x: left, y: 40.0) : (x: Self.width - right - 120 * Double(lines.count), y: 20.0)
        var names: [(x: Double, y: Double)] = []
        for line in lines {
            let width = isBelow ? Double(line.name.count) * 6.8 + 34 : 120
            if isBelow, place.x > left, place.x + width > Self.width { place = (left, place.y + 18) }
            names.append(place)
            place.x += width
        }
        self.names = names
        top = isBelow ? place.y + 24 : 40
    }

    /// The width of a text of this size in the widest of the usual fonts.
    private static func width(of text: String) -> Double { Double(text.count) * 7.7 }

    private static func range(_ values: [Double], _ scales: Scales, steps: [Double]) -> ClosedRange<Double> {
        switch scales {
        case .linear: return 0...round(values.max() ?? 1)
        case .logarithmic:
            let low = pow(10, log10(values.min() ?? 1).rounded(.down))
            let most = values.max() ?? 1
            let power = pow(10, log10(most).rounded(.down))
            let end = steps.first { $0 * power >= most } ?? 10
            return low...max(low * 10, end * power)
        }
    }

    /// Values without a logarithm are left out.
    private static func shown(_ line: Line, _ scales: Scales) -> [(x: Double, y: Double)] {
        scales == .linear ? line.points : line.points.filter { $0.x > 0 && $0.y > 0 && $0.x.isFinite && $0.y.isFinite }
    }

    /// The next number that is 1, 2 or 5 times a power of ten, or a multiple of one of these by a fifth.
    static func round(_ value: Double) -> Double {
        guard value > 0, value.isFinite else { return 1 }
        var step = 1.0
        while step * 10 <= value { step *= 10 }
        while step > value { step /= 10 }
        for factor in [1.0, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10] where step * factor >= value { return step * factor }
        return step * 10
    }

    /// The drawing as SVG.
    public var svg: String {
        var text = """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(Self.width)) \(Int(Self.height))" \
            font-family="sans-serif" font-size="12" fill="#6e7781">
            <text x="\(left)" y="20" font-size="15" font-weight="bold">\(Self.escaped(title))</text>

            """
        for value in Self.ticks(y, scales) { text += across(value) }
        for value in Self.ticks(x, scales) { text += below(value) }
        for (index, line) in lines.enumerated() { text += drawn(line, index) + named(line, index) }
        text += """
            <text x="\((left + Self.width - right) / 2)" y="\(Self.height - 8)" \
            text-anchor="middle">\(Self.escaped(xLabel))</text>
            <text x="14" y="\(top - 8)">\(Self.escaped(yLabel))</text>
            </svg>

            """
        return text
    }

    /// The positions of labels: quarters, or powers of ten.
    private static func ticks(_ range: ClosedRange<Double>, _ scales: Scales) -> [Double] {
        switch scales {
        case .linear: return (0...4).map { range.upperBound * Double($0) / 4 }
        case .logarithmic:
            let (first, last) = (log10(range.lowerBound).rounded(), (log10(range.upperBound) + 1e-9).rounded(.down))
            return stride(from: first, through: last, by: 1).map { pow(10, $0) }
        }
    }

    private func across(_ value: Double) -> String {
        let place = Self.tenth(y(of: value))
        return """
            <line x1="\(left)" y1="\(place)" x2="\(Self.width - right)" y2="\(place)" \
            stroke="#8c959f" stroke-opacity="0.4"/>
            <text x="\(left - 6)" y="\(Self.tenth(place + 4))" text-anchor="end">\(Self.shown(value, scales))</text>

            """
    }

    private func below(_ value: Double) -> String {
        """
        <text x="\(Self.tenth(x(of: value)))" y="\(Self.height - Self.bottom + 18)" \
        text-anchor="middle">\(Self.shown(value, scales))</text>

        """
    }

    private static func shown(_ value: Double, _ scales: Scales) -> String {
        scales == .logarithmic && value >= 1 ? grouped(UInt64(value)) : number(value)
    }

    private func drawn(_ line: Line, _ index: Int) -> String {
        let colour = Self.colours[index % Self.colours.count]
        let places = Self.shown(line, scales).map { (x: Self.tenth(x(of: $0.x)), y: Self.tenth(y(of: $0.y))) }
        let points = places.map { "\($0.x),\($0.y)" }.joined(separator: " ")
        var text = "<polyline points=\"\(points)\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"1.5\"/>\n"
        if scales == .logarithmic {
            for place in places {
                text += "<circle cx=\"\(place.x)\" cy=\"\(place.y)\" r=\"2.6\" fill=\"\(colour)\"/>\n"
            }
        }
        return text
    }

    /// A name of the legend.
    private func named(_ line: Line, _ index: Int) -> String {
        let place = names[index]
        return """
            <rect x="\(Self.tenth(place.x))" y="\(place.y - 9)" width="12" height="10" \
            fill="\(Self.colours[index % Self.colours.count])"/>
            <text x="\(Self.tenth(place.x + 18))" y="\(place.y)">\(Self.escaped(line.name))</text>

            """
    }

    private func x(of value: Double) -> Double {
        left + (Self.width - left - right) * share(value, x)
    }

    private func y(of value: Double) -> Double {
        Self.height - Self.bottom - (Self.height - top - Self.bottom) * share(value, y)
    }

    private func share(_ value: Double, _ range: ClosedRange<Double>) -> Double {
        switch scales {
        case .linear: value / range.upperBound
        case .logarithmic:
            (log10(value) - log10(range.lowerBound)) / (log10(range.upperBound) - log10(range.lowerBound))
        }
    }

    private static func tenth(_ value: Double) -> Double { (value * 10).rounded() / 10 }

    /// The number without the `.0` of whole numbers.
    public static func number(_ value: Double) -> String {
        let rounded = (value * 1000).rounded() / 1000
        return rounded == rounded.rounded() && abs(rounded) < 1e15 ? "\(Int(rounded))" : "\(rounded)"
    }

    private static func escaped(_ text: String) -> String {
        text.reduce(into: "") { made, character in
            switch character {
            case "&": made += "&amp;"
            case "<": made += "&lt;"
            case ">": made += "&gt;"
            default: made.append(character)
            }
        }
    }
}
