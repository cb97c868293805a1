/// How much room text takes on a terminal, where not every character is one column wide.
enum TerminalText {
    static func width(_ text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + width($1) } }

    /// The text, or its beginning and an ellipsis.
    static func cut(_ text: String, to columns: Int) -> String {
        if width(text) <= columns { return text }
        if columns < 1 { return "" }
        var kept = ""
        var used = 1
        for character in text {
            used += width(String(character))
            if used > columns { break }
            kept.append(character)
        }
        return kept + "…"
    }

    /// The words of a text in lines of at most `columns`. A word that is longer than a line gets a line of its own.
    static func filled(_ text: String, to columns: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(whereSeparator: { " \n".contains($0) }).map(String.init) {
            if let line = lines.last, width(line) + 1 + width(word) <= columns {
                lines[lines.count - 1] = line + " " + word
            } else {
                lines.append(word)
            }
        }
        return lines
    }

    /// Paragraphs in lines of at most `columns`. An empty line ends a paragraph; an indented line stays as it is.
    static func filledParagraphs(_ text: String, to columns: Int) -> String {
        var lines: [String] = []
        var paragraph = ""
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.isEmpty || line.hasPrefix("  ") {
                lines += filled(paragraph, to: columns) + [String(line)]
                paragraph = ""
            } else {
                paragraph += line + " "
            }
        }
        return (lines + filled(paragraph, to: columns)).joined(separator: "\n")
    }

    private static func width(_ scalar: Unicode.Scalar) -> Int {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: return wide.contains { $0.contains(scalar.value) } ? 2 : 1
        }
    }

    /// Unicode's East Asian Width (UAX 11), wide and fullwidth, by its blocks.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
        0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF,
        0x20000...0x3FFFD,
    ]
}
