internal import FerryMeasurement

/// What JSON costs without a network: one row for each document and way.
struct JSONFigures: Codable, Sendable {
    struct Row: Codable, Sendable {
        var sample: String
        var bytes: Int
        var rival: JSONRival
        /// Microseconds of CPU for a document, the median of the rounds.
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
                padded(row.sample, 8), padded(row.rival.rawValue, 18), aligned(fixed(row.microseconds, 2), 12), " µs",
                aligned(fixed(row.rate, 0), 9), " MB/s", aligned(fixed(row.ratio, 1), 8), " ×",
            ]
            return columns.joined() + "\n"
        }.joined()
    }

    /// The table of the README.
    var markdown: String {
        let samples = JSONSample.all.filter { sample in rows.contains { $0.sample == sample.name } }
        var lines = [
            "| way |" + samples.map { " \($0.name) |" }.joined(), "|---|" + samples.map { _ in "--:|" }.joined(),
        ]
        for rival in JSONRival.allCases {
            let cells = samples.map { sample in
                self[sample, rival].map { "\(fixed($0.microseconds, 1)) µs · \(fixed($0.ratio, 1)) ×" } ?? "–"
            }
            lines.append("| \(rival.rawValue) | \(cells.joined(separator: " | ")) |")
        }
        return lines.joined(separator: "\n")
    }

    /// Of 10 MB how fast they are parsed is what counts.
    var goals: [Goal] {
        var goals: [Goal] = []
        for sample in JSONSample.all where sample.name != JSONSample.large.name {
            for rival in JSONRival.allCases {
                guard let limit = rival.goal, let row = self[sample, rival] else { continue }
                goals.append(
                    Goal(
                        text: "JSON of \(sample.name), \(rival.rawValue): × faster than JSONDecoder", limit: limit,
                        isAtMost: false, measured: row.ratio))
            }
        }
        if let row = self[.large, .parse] {
            goals.append(Goal(text: "JSON of 10 MB, parsed: MB/s", limit: 800, isAtMost: false, measured: row.rate))
        }
        return goals
    }

    private func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private func aligned(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
