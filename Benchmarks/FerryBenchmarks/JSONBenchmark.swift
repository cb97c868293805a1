internal import FerryMeasurement
internal import Foundation

/// JSON without a network, all rivals in turn within one process.
struct JSONBenchmark {
    private let rounds: Int
    private let samples: [JSONSample]
    private let rivals: [JSONRival]

    /// `[ROUNDS [SAMPLE [WAY]]]`, like `21`, `2 KB` and `parsed`; one way alone is for a profiler.
    init(_ arguments: [String]) throws {
        guard let rounds = Int(arguments.first ?? "21"), rounds > 0 else { throw BenchmarkError("json takes ROUNDS") }
        self.rounds = rounds
        samples = arguments.count > 1 ? JSONSample.all.filter { $0.name == arguments[1] } : JSONSample.all
        rivals = arguments.count > 2 ? JSONRival.allCases.filter { $0.rawValue == arguments[2] } : JSONRival.allCases
    }

    func run() throws -> JSONFigures {
        var figures = JSONFigures()
        for sample in samples {
            var times: [JSONRival: [Double]] = [:]
            for _ in 0..<rounds {
                for rival in rivals { times[rival, default: []].append(try measure(rival, sample)) }
            }
            for rival in rivals {
                let own = times[rival] ?? []
                // Both sides of a ratio saw the same machine.
                let ratios = zip(times[.foundation] ?? [], own).map { $0 / $1 }
                figures.rows.append(
                    .init(
                        sample: sample.name, bytes: sample.count, rival: rival,
                        microseconds: ResultTable.median(own) ?? .nan, ratio: ResultTable.median(ratios) ?? .nan))
            }
        }
        return figures
    }

    /// About 5 ms of documents, or one.
    private func measure(_ rival: JSONRival, _ sample: JSONSample) throws -> Double {
        let speed = rival == .foundation ? 30.0 : 500
        let repetitions = max(1, Int(5000 * speed / Double(sample.count)))
        return try sample.withText { text in
            let data = Data(bytes: text.baseAddress!, count: text.count)
            let before = ProcessUsage.now
            for _ in 0..<repetitions { try rival.run(text, data) }
            let used = ProcessUsage.now - before
            return (used.user + used.system) / Double(repetitions)
        }
    }
}
