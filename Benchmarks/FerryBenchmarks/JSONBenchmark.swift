internal import FerryMeasurement
internal import Foundation

/// `FerryBenchmarks json [ROUNDS]`: JSON without a network, all rivals in turn within one process.
struct JSONBenchmark {
    /// Microseconds of CPU for a document, one for each round.
    private var times: [String: [JSONRival: [Double]]] = [:]
    private let rounds: Int

    init(_ arguments: [String]) throws {
        guard let rounds = Int(arguments.first ?? "21"), rounds > 0 else { throw BenchmarkError("json takes ROUNDS") }
        self.rounds = rounds
    }

    mutating func run() throws {
        for sample in JSONSample.all {
            for _ in 0..<rounds {
                for rival in JSONRival.allCases {
                    times[sample.name, default: [:]][rival, default: []].append(try measure(rival, sample))
                }
            }
            for rival in JSONRival.allCases { print(line(rival, sample)) }
        }
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

    /// The median of the ratios of each round: both sides saw the same machine.
    private func line(_ rival: JSONRival, _ sample: JSONSample) -> String {
        let own = times[sample.name]?[rival] ?? []
        let ratios = zip(times[sample.name]?[.foundation] ?? [], own).map { $0 / $1 }
        let time = ResultTable.median(own) ?? .nan
        let ratio = ResultTable.median(ratios) ?? .nan
        let columns = [
            sample.name.padding(toLength: 8, withPad: " ", startingAt: 0),
            rival.rawValue.padding(toLength: 18, withPad: " ", startingAt: 0),
            String(format: "%12.2f µs %8.0f MB/s %7.1f ×", time, Double(sample.count) / time, ratio),
        ]
        let goal = rival.goal.map { String(format: "  (goal %.0f ×%@)", $0, ratio >= $0 ? "" : ", missed") } ?? ""
        return columns.joined() + goal
    }
}
