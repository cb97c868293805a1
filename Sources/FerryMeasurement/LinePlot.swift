/// Lines over a common axis, drawn as SVG 1.1 that needs nothing else: no script, no font, no style sheet.
///
/// Both axes begin at 0 and end at a round number. The drawing says its colours itself and stays readable on a light
/// and on a dark page.
public struct LinePlot: Sendable {
    /// One line and its name in the legend.
    public struct Line: Sendable {
        let name: String
        let points: [(x: Double, y: Double)]

        /// A line through these points, in their order.
        public init(name: String, points: [(Double, Double)]) {
            self.name = name
            self.points = points.map { (x: $0.0, y: $0.1) }
        }
    }

    private let title: String
    private let xLabel: String
    private let yLabel: String
    private let lines: [Line]
    private let xEnd: Double
    private let yEnd: Double

    private static let width = 720.0
    private static let height = 320.0
    private static let left = 64.0
    private static let right = 16.0
    private static let top = 40.0
    private static let bottom = 44.0
    private static let colours = ["#1f6feb", "#d1642e", "#2da160", "#8250df"]

    /// A plot of these lines.
    public init(title: String, xLabel: String, yLabel: String, lines: [Line]) {
        self.title = title
        self.xLabel = xLabel
        self.yLabel = yLabel
        self.lines = lines
        let points = lines.flatMap(\.points)
        xEnd = Self.round(points.map(\.x).max() ?? 1)
        yEnd = Self.round(points.map(\.y).max() ?? 1)
    }

    /// The next of 1, 2, 5 times a power of ten, or of one of their multiples by a fifth.
    static func round(_ value: Double) -> Double {
        guard value > 0, value.isFinite else { return 1 }
        var step = 1.0
        while step * 10 <= value { step *= 10 }
        while step > value { step /= 10 }
        for factor in [1.0, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10] where step * factor >= value { return step * factor }
        return step * 10
    }

    /// The drawing.
    public var svg: String {
        var text = """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Int(Self.width)) \(Int(Self.height))" \
            font-family="sans-serif" font-size="12" fill="#6e7781">
            <text x="\(Self.left)" y="20" font-size="15" font-weight="bold">\(Self.escaped(title))</text>

            """
        for index in 0...4 { text += grid(index) }
        for (index, line) in lines.enumerated() { text += drawn(line, index) }
        text += """
            <text x="\((Self.left + Self.width - Self.right) / 2)" y="\(Self.height - 8)" \
            text-anchor="middle">\(Self.escaped(xLabel))</text>
            <text x="14" y="\(Self.top - 8)">\(Self.escaped(yLabel))</text>
            </svg>

            """
        return text
    }

    private func grid(_ index: Int) -> String {
        let part = Double(index) / 4
        let (x, y) = (x(of: xEnd * part), y(of: yEnd * part))
        let end = Self.width - Self.right
        return """
            <line x1="\(Self.left)" y1="\(y)" x2="\(end)" y2="\(y)" stroke="#8c959f" stroke-opacity="0.4"/>
            <text x="\(Self.left - 6)" y="\(y + 4)" text-anchor="end">\(Self.number(yEnd * part))</text>
            <text x="\(x)" y="\(Self.height - Self.bottom + 18)" text-anchor="middle">\(Self.number(xEnd * part))</text>

            """
    }

    private func drawn(_ line: Line, _ index: Int) -> String {
        let colour = Self.colours[index % Self.colours.count]
        let points = line.points.map { "\(Self.tenth(x(of: $0.x))),\(Self.tenth(y(of: $0.y)))" }.joined(separator: " ")
        let legend = Self.width - Self.right - 120 * Double(lines.count - index)
        return """
            <polyline points="\(points)" fill="none" stroke="\(colour)" stroke-width="1.5"/>
            <rect x="\(legend)" y="11" width="12" height="10" fill="\(colour)"/>
            <text x="\(legend + 18)" y="20">\(Self.escaped(line.name))</text>

            """
    }

    private func x(of value: Double) -> Double {
        Self.left + (Self.width - Self.left - Self.right) * value / xEnd
    }

    private func y(of value: Double) -> Double {
        Self.height - Self.bottom - (Self.height - Self.top - Self.bottom) * value / yEnd
    }

    private static func tenth(_ value: Double) -> Double { (value * 10).rounded() / 10 }

    /// Without the `.0` of whole numbers.
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
