internal import FerryMeasurement

/// The tables of the README: CPU and rate of each rival in the cases that say most, and JSON.
struct MarkdownTable {
    let table: ResultTable

    private static let cases = [
        ("get12@64", "12 bytes, 64 at once"), ("get12@1000", "12 bytes, 1,000 at once"),
        ("get12@10000", "12 bytes, 10,000 at once"), ("get64k@64", "64 KB, 64 at once"),
    ]

    var text: String {
        let cases = Self.cases.filter { table.cases.contains($0.0) }
        var lines = ["| client |" + cases.map { " \($0.1) |" }.joined(), "|---|" + cases.map { _ in "--:|" }.joined()]
        for rival in Rival.programs.prefix(1) + Rival.senders + Rival.programs.dropFirst() where rival != .peer {
            let cells = cases.map { cell($0.0, rival) }
            if cells.contains(where: { $0 != "–" }) {
                lines.append("| \(rival.title) | \(cells.joined(separator: " | ")) |")
            }
        }
        return lines.joined(separator: "\n") + (table.json.map { "\n\n" + $0.markdown } ?? "")
    }

    private func cell(_ name: String, _ rival: Rival) -> String {
        guard let cpu = table.median(name, rival, { $0.cpuPerRequest }),
            let rate = table.median(name, rival, { $0.rate })
        else { return "–" }
        return "\(fixed(cpu, 1)) µs · \(grouped(UInt64(rate)))"
    }
}
