internal import FerryMeasurement

/// The goals as a readable table: description, goal, figure, ratio, verdict.
struct GoalTable {
    let goals: [Goal]
    /// Whether to include goals whose case was not run.
    let isWhole: Bool

    /// Empty if nothing was measured.
    var text: String {
        let shown = goals.filter { isWhole || $0.measured != nil }
        if shown.isEmpty { return "" }
        let lines = [Self.heads] + shown.map(line)
        let (reached, missed) = (goals.count { $0.isReached == true }, goals.count { $0.isReached == false })
        let absent = goals.count - reached - missed
        let sum = "  \(reached) reached, \(missed) missed" + (absent > 0 ? ", \(absent) not measured" : "")
        return columns(lines) + sum + "\n"
    }

    /// The table for the manual, with the measured goals.
    var markdown: String {
        let shown = goals.filter { $0.measured != nil }
        if shown.isEmpty { return "" }
        let lines = shown.map { goal in
            let cells = line(goal)
            return cells.dropLast() + [goal.isReached == true ? "reached" : "**missed**"]
        }
        return ([Self.heads, ["---", "--:", "--:", "--:", "---"]] + lines.map(Array.init))
            .map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
    }

    private static let heads = ["", "goal", "figure", "ratio", "verdict"]

    private func line(_ goal: Goal) -> [String] {
        let sign = goal.isAtMost ? "≤ " : "≥ "
        let limit = sign + (goal.unit == nil ? fixed(goal.limit, 2) + " ×" : Self.number(goal.limit))
        guard let measured = goal.measured, let isReached = goal.isReached else {
            return [goal.text, limit, "–", "–", "not measured"]
        }
        let figure =
            if let unit = goal.unit {
                Self.number(measured) + (unit.isEmpty ? "" : " " + unit)
            } else if let sides = goal.sides {
                "\(Self.number(sides.own)) : \(Self.number(sides.other)) \(sides.unit)"
            } else {
                "–"
            }
        return [
            goal.text, limit, figure, goal.ratio.map { fixed($0, 2) } ?? "–", isReached ? "reached" : "MISSED",
        ]
    }

    private static func number(_ value: Double) -> String {
        value >= 1000 ? grouped(UInt64(value.rounded())) : fixed(value, value == value.rounded() ? 0 : 2)
    }
}
