internal import Foundation

/// The file of one run in Benchmarks/Results.
struct ResultFile: Encodable {
    struct Entry: Encodable {
        var name: String
        var rival: Rival
        var systemCallsPerRequest: Double?
        var cpuPerRequest: Double?
        var ratio: Double?
        var rounds: [Measurement]
    }

    var date: String
    var machine: [String: String]
    var server: String
    var entries: [Entry]
    var json: JSONFigures?
    var goals: [Goal]

    init(_ table: ResultTable, server: String, date: Date) {
        self.date = date.formatted(.iso8601)
        self.server = server
        machine = Self.describeMachine()
        json = table.json
        goals = GoalSheet(table: table).all
        entries = table.cases.flatMap { name in
            table.rivals(of: name).map { rival in
                Entry(
                    name: name, rival: rival, systemCallsPerRequest: table.systemCalls[.init(name: name, rival: rival)],
                    cpuPerRequest: table.median(name, rival) { $0.cpuPerRequest },
                    ratio: table.ratio(name, rival, to: name, table.reference(of: name)) { $0.cpuPerRequest },
                    rounds: table[name, rival])
            }
        }
    }

    /// Writes it with its date as the name, and returns the path.
    func write(to folder: String) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        let name = date.replacingOccurrences(of: ":", with: "-")
        let path = "\(folder)/\(name).json"
        try encoder.encode(self).write(to: URL(fileURLWithPath: path))
        return path
    }

    /// Processor, cores, kernel: only runs with the same values can be compared.
    private static func describeMachine() -> [String: String] {
        let processor = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n")
            .first { $0.hasPrefix("model name") }?.split(separator: ":").last
        let kernel = try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)
        return [
            "processor": processor.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown",
            "cores": "\(ProcessInfo.processInfo.activeProcessorCount)",
            "kernel": kernel?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "unknown",
        ]
    }
}
