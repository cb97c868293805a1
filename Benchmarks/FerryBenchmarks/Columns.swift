/// Aligns lines of cells in columns, the first to the left and all others to the right.
func columns(_ lines: [[String]]) -> String {
    let count = lines.map(\.count).max() ?? 0
    let widths = (0..<count).map { column in lines.map { $0[column].count }.max() ?? 0 }
    return lines.map { line in
        "  "
            + line.enumerated().map { column, text in
                let space = String(repeating: " ", count: widths[column] - text.count)
                return column == 0 ? text + space : space + text
            }.joined(separator: "  ") + "\n"
    }.joined()
}
