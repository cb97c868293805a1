internal import FerryMeasurement
internal import Foundation

/// JSON without a network, with all rivals in turn within one process.
struct JSONBenchmark {
    private let rounds: Int
    private let samples: [JSONSample]
    private let shapes: [JSONShape]
    private let rivals: [JSONRival]

    /// `[ROUNDS [SAMPLE [WAY]]]`, for example `21`, `2 KB` and `parsed`; a single way is for a profiler.
    init(_ arguments: [String]) throws {
        guard let rounds = Int(arguments.first ?? "21"), rounds > 0 else { throw BenchmarkError("json takes ROUNDS") }
        self.rounds = rounds
        shapes = arguments.count > 1 ? JSONShape.all.filter { $0.name == arguments[1] } : JSONShape.all
        samples = arguments.count > 1 ? JSONSample.all.filter { $0.name == arguments[1] } : JSONSample.all
        rivals = arguments.count > 2 ? JSONRival.allCases.filter { $0.rawValue == arguments[2] } : JSONRival.allCases
    }

    func run() throws -> JSONFigures {
        var figures = JSONFigures()
        for sample in samples {
            figures.rows += try rows(sample.name, sample.count, rivals) { try measure($0, sample) }
        }
        for shape in shapes {
            let ways = shape.ways.filter { rivals.contains($0.rival) }
            let data = shape.data
            figures.rows += try rows(shape.name, shape.count, ways.map(\.rival)) { rival in
                guard let way = ways.first(where: { $0.rival == rival }) else { return .nan }
                return try shape.withText { text in
                    try time(rival, shape.count) { try way.run(text, data) }
                }
            }
        }
        return figures
    }

    private func rows(
        _ name: String, _ count: Int, _ rivals: [JSONRival], _ measure: (JSONRival) throws -> Double
    ) throws -> [JSONFigures.Row] {
        var times: [JSONRival: [Double]] = [:]
        for _ in 0..<rounds {
            for rival in rivals { times[rival, default: []].append(try measure(rival)) }
        }
        return rivals.map { rival in
            let own = times[rival] ?? []
            // Both sides of a ratio were measured under the same conditions.
            let ratios = zip(times[.foundation] ?? [], own).map { $0 / $1 }
            return JSONFigures.Row(
                sample: name, bytes: count, rival: rival, microseconds: ResultTable.median(own) ?? .nan,
                ratio: ResultTable.median(ratios) ?? .nan)
        }
    }

    private func measure(_ rival: JSONRival, _ sample: JSONSample) throws -> Double {
        try sample.withText { text in
            let data = Data(bytes: text.baseAddress!, count: text.count)
            return try time(rival, sample.count) { try rival.run(text, data) }
        }
    }

    /// About 5 ms of documents, or one document.
    private func time(_ rival: JSONRival, _ count: Int, _ run: () throws -> Void) rethrows -> Double {
        let speed = rival == .foundation ? 30.0 : 500
        let repetitions = max(1, Int(5000 * speed / Double(count)))
        let before = ProcessUsage.now
        for _ in 0..<repetitions { try run() }
        let used = ProcessUsage.now - before
        return (used.user + used.system) / Double(repetitions)
    }
}
