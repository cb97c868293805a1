internal import FerryMeasurement

/// The cost of JSON without a network: one row for each document and way.
struct JSONFigures: Codable, Sendable {
    struct Row: Codable, Sendable {
        var sample: String
        var bytes: Int
        var rival: JSONRival
        /// Microseconds of CPU for a document, as the median of the rounds.
        var microseconds: Double
        /// How many times faster than JSONDecoder; the median of the ratios of each round.
        var ratio: Double

        var rate: Double { Double(bytes) / microseconds }
    }

    var rows: [Row] = []

    private subscript(_ sample: JSONSample, _ rival: JSONRival) -> Row? {
        rows.first { $0.sample == sample.name && $0.rival == rival }
    }

    var text: String {
        rows.map { row in
            let columns = [
                padded(row.sample, 32), padded(row.rival.rawValue, 18), aligned(fixed(row.microseconds, 2), 12), " µs",
                aligned(fixed(row.rate, 0), 9), " MB/s", aligned(fixed(row.ratio, 1), 8), " ×",
            ]
            return columns.joined() + "\n"
        }.joined()
    }

    /// The table for the manual.
    var markdown: String {
        let samples = JSONSample.all.filter { sample in rows.contains { $0.sample == sample.name } }
        var lines = [
            "| way |" + samples.map { " \($0.name) |" }.joined(), "|---|" + samples.map { _ in "--:|" }.joined(),
        ]
        for rival in JSONRival.allCases {
            let cells = samples.map { sample in
                self[sample, rival].map { "\(Self.time($0.microseconds)) · \(fixed($0.ratio, 1)) ×" } ?? "–"
            }
            lines.append("| \(rival.rawValue) | \(cells.joined(separator: " | ")) |")
        }
        return (lines + ["", shapeMarkdown]).joined(separator: "\n")
    }

    /// The table of the documents in real shapes.
    private var shapeMarkdown: String {
        let ways: [JSONRival] = [.foundation, .codable, .convertible]
        let names = JSONShape.all.map(\.name).filter { name in rows.contains { $0.sample == name } }
        let header = [
            "| document |" + ways.map { " \($0.rawValue) |" }.joined(), "|---|" + ways.map { _ in "--:|" }.joined(),
        ]
        return
            (header
            + names.map { name in
                let cells = ways.map { way in
                    rows.first { $0.sample == name && $0.rival == way }.map {
                        "\(Self.time($0.microseconds)) · \(fixed($0.ratio, 1)) ×"
                    } ?? "–"
                }
                return "| \(name) | \(cells.joined(separator: " | ")) |"
            }).joined(separator: "\n")
    }

    private static func time(_ microseconds: Double) -> String {
        switch microseconds {
        case ..<1000: fixed(microseconds, 1) + " µs"
        case ..<100_000: fixed(microseconds / 1000, 2) + " ms"
        default: fixed(microseconds / 1000, 0) + " ms"
        }
    }

    /// The goals of these documents, not measured without figures; for 10 MB only the speed of parsing matters.
    static func goals(of samples: [JSONSample], in figures: JSONFigures?) -> [Goal] {
        samples.flatMap { sample in
            if sample.name == JSONSample.large.name { return [parsing(sample, figures)] }
            return JSONRival.allCases.compactMap { rival in
                rival.goal.map { speed(sample, rival, atLeast: $0, figures) }
            }
        }
    }

    /// The goals of the documents in real shapes.
    static func goals(of shapes: [JSONShape], in figures: JSONFigures) -> [Goal] {
        shapes.flatMap { shape in
            shape.ways.map(\.rival).compactMap { rival in
                shape.goals[rival].map { limit in
                    var goal = Goal(
                        text: "JSON of \(shape.name), \(rival.rawValue): × faster than Foundation", limit: limit,
                        isAtMost: false)
                    goal.measured = figures.rows.first { $0.sample == shape.name && $0.rival == rival }?.ratio
                    return goal
                }
            }
        }
    }

    private static func speed(
        _ sample: JSONSample, _ rival: JSONRival, atLeast limit: Double, _ figures: JSONFigures?
    ) -> Goal {
        var goal = Goal(
            text: "JSON of \(sample.name), \(rival.rawValue): × faster than JSONDecoder", limit: limit, isAtMost: false)
        goal.measured = figures?[sample, rival]?.ratio
        if let own = figures?[sample, rival], let other = figures?[sample, .foundation] {
            goal.sides = Goal.Sides(own: own.microseconds, other: other.microseconds, unit: "µs")
        }
        return goal
    }

    private static func parsing(_ sample: JSONSample, _ figures: JSONFigures?) -> Goal {
        Goal(
            text: "JSON of \(sample.name), parsed", limit: 800, isAtMost: false,
            measured: figures?[sample, .parse]?.rate, unit: "MB/s")
    }

    private func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private func aligned(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
