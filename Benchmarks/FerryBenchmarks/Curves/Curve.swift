/// How a figure grows: a load at several sizes, by several clients.
struct Curve: Codable, Sendable {
    struct Line: Codable, Sendable {
        var client: String
        var points: [Point]
    }

    struct Point: Codable, Sendable {
        var size: Double
        var figure: Double
    }

    var name: String
    var title: String
    /// The units of the sizes and of the figures.
    var sizeLabel: String
    var figureLabel: String
    var lines: [Line]
}
