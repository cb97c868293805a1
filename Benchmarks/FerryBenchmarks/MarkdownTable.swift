internal import FerryMeasurement

/// The tables for the manual: CPU and rate of each rival at low and high concurrency, JSON, and all goals.
struct MarkdownTable {
    let table: ResultTable

    private static let small = "get12@64"

    private static let crowds = [
        ("get12@64", "64 at once"), ("get12@1000", "1,000 at once"), ("get12@10000", "10,000 at once"),
        ("get64k@64", "64 KB, 64 at once"),
    ]

    var text: String {
        let goals = GoalTable(goals: GoalSheet(table: table).all, isWhole: false)
        let parts = [few, many, table.json?.markdown ?? "", goals.markdown]
        return parts.filter { !$0.isEmpty }.joined(separator: "\n\n")
    }

    /// Twelve bytes at a concurrency of 64: all rivals, and their ratio to the bare client.
    private var few: String {
        let known = Rival.allCases.filter { !table[Self.small, $0].isEmpty }
        if known.isEmpty { return "" }
        let reference = table.reference(of: Self.small)
        let lines = known.map { rival in
            let ratio = table.ratio(Self.small, rival, to: Self.small, reference) { $0.cpuPerRequest }
            return "| \(rival.title) | \(cell(Self.small, rival)) | \(ratio.map { fixed($0, 2) } ?? "–") |"
        }
        return (["| client | CPU · requests/s | × |", "|---|--:|--:|"] + lines).joined(separator: "\n")
    }

    /// The same at high concurrency, and with long bodies.
    private var many: String {
        let cases = Self.crowds.filter { table.cases.contains($0.0) }
        if cases.count < 2 { return "" }
        var lines = ["| client |" + cases.map { " \($0.1) |" }.joined(), "|---|" + cases.map { _ in "--:|" }.joined()]
        for rival in Rival.senders + Rival.programs {
            let cells = cases.map { cell($0.0, rival) }
            if cells.contains(where: { $0 != "–" }) {
                lines.append("| \(rival.title) | \(cells.joined(separator: " | ")) |")
            }
        }
        return lines.joined(separator: "\n")
    }

    private func cell(_ name: String, _ rival: Rival) -> String {
        guard let cpu = table.median(name, rival, { $0.cpuPerRequest }),
            let rate = table.median(name, rival, { $0.rate })
        else { return "–" }
        return "\(fixed(cpu, 1)) µs · \(grouped(UInt64(rate)))"
    }
}
