internal import FerryMeasurement

/// Prints the measurements and saves them.
struct Report {
    let table: ResultTable
    let server: String
    let rounds: Int
    /// Whether all cases were measured.
    let isWhole: Bool

    /// Readable tables: medians over the rounds, and ratios to the reference of the same round.
    var text: String {
        var text = ""
        for name in table.cases where SpecialCase(rawValue: name) == nil { text += caseTable(name) }
        for name in table.cases where SpecialCase(rawValue: name) != nil { text += specialTable(name) }
        if let json = table.json { text += "\njson\n" + json.text }
        let goals = GoalTable(goals: GoalSheet(table: table).all, isWhole: isWhole).text
        return text + (goals.isEmpty ? "" : "\ngoals\n" + goals)
    }

    private func caseTable(_ name: String) -> String {
        let heads = "CPU µs,user,sys,ratio,req/s,p50 µs,p99 µs,peak MB,connections,to open µs,system calls,bad"
        var lines = [[""] + heads.split(separator: ",").map(String.init)]
        for rival in table.rivals(of: name) {
            func show(_ digits: Int, _ figure: (Measurement) -> Double) -> String {
                table.median(name, rival, figure).map { fixed($0, digits) } ?? "-"
            }
            let ratio = table.ratio(name, rival, to: name, table.reference(of: name)) { $0.cpuPerRequest }
            let connections = table[name, rival].compactMap(\.connections).map { Double($0) }
            let opening = table[name, rival].compactMap { $0.extra["us_to_open"] }
            let bad = table[name, rival].reduce(0) { $0 + $1.wrong + $1.failed }
            lines.append([
                rival.title,
                show(1) { $0.cpuPerRequest }, show(1) { $0.userPerRequest }, show(1) { $0.systemPerRequest },
                ratio.map { fixed($0, 2) } ?? "-", show(0) { $0.rate }, show(0) { $0.p50 }, show(0) { $0.p99 },
                show(1) { Double($0.peakMemory) / 1024 }, ResultTable.median(connections).map { fixed($0, 0) } ?? "-",
                ResultTable.median(opening).map { fixed($0, 1) } ?? "-",
                table.systemCalls[.init(name: name, rival: rival)].map { fixed($0, 1) } ?? "-", "\(bad)",
            ])
        }
        return "\n\(name) (\(server), \(rounds) rounds)\n" + columns(lines)
    }

    private func specialTable(_ name: String) -> String {
        var text = "\n\(name)\n"
        for rival in table.rivals(of: name) {
            for measurement in table[name, rival] {
                let figures = measurement.extra.sorted { $0.key < $1.key }.map { "\($0.key) \(fixed($0.value, 1))" }
                text += "  \(rival.title): " + figures.joined(separator: ", ") + "\n"
            }
        }
        return text
    }
}
