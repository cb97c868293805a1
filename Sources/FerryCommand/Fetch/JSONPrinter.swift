internal import Ferry
internal import FerryJSON
internal import FoundationEssentials

/// Formats JSON for people: indented, and coloured if enabled. Numbers and strings keep their spelling.
struct JSONPrinter {
    private let text: [Unicode.Scalar]
    private let usesColor: Bool
    private var printed = ""
    private var depth = 0

    /// `nil` if it is not JSON.
    static func text(of bytes: [UInt8], usesColor: Bool) -> String? {
        guard (try? JSON(parsing: Data(bytes))) != nil else { return nil }
        var printer = JSONPrinter(text: Array(String(decoding: bytes, as: UTF8.self).unicodeScalars), usesColor)
        printer.print()
        return printer.printed + "\n"
    }

    private init(text: [Unicode.Scalar], _ usesColor: Bool) {
        self.text = text
        self.usesColor = usesColor
    }

    private mutating func print() {
        var index = 0
        while index < text.count {
            let scalar = text[index]
            switch scalar {
            case "{", "[":
                let next = afterBlanks(index + 1)
                printed.unicodeScalars.append(scalar)
                if text[next] == "}" || text[next] == "]" {
                    printed.unicodeScalars.append(text[next])
                    index = next
                } else {
                    depth += 1
                    breakLine()
                }
            case "}", "]":
                depth -= 1
                breakLine()
                printed.unicodeScalars.append(scalar)
            case ",":
                printed += ","
                breakLine()
            case ":": printed += ": "
            case "\"":
                let end = endOfString(index)
                let next = afterBlanks(end)
                add(text[index..<end], next < text.count && text[next] == ":" ? "1;34" : "32")
                index = end - 1
            case " ", "\t", "\r", "\n", "\u{FEFF}": break
            default:
                var end = index + 1
                while end < text.count, !" \t\r\n,]}".unicodeScalars.contains(text[end]) { end += 1 }
                add(text[index..<end], scalar == "t" || scalar == "f" || scalar == "n" ? "35" : "36")
                index = end - 1
            }
            index += 1
        }
    }

    /// Deeper levels are not indented further, because a few megabytes could become gigabytes of blanks.
    private static let mostIndented = 40

    private mutating func breakLine() { printed += "\n" + blanks(2 * min(depth, Self.mostIndented)) }

    /// Characters that could control a terminal are escaped, which does not change their meaning.
    private mutating func add(_ token: ArraySlice<Unicode.Scalar>, _ color: String) {
        if usesColor { printed += "\u{1B}[\(color)m" }
        for scalar in token {
            if scalar.commandsTerminals {
                printed += scalar.escapedForJSON
            } else {
                printed.unicodeScalars.append(scalar)
            }
        }
        if usesColor { printed += "\u{1B}[0m" }
    }

    private func afterBlanks(_ start: Int) -> Int {
        var index = start
        while index < text.count, " \t\r\n".unicodeScalars.contains(text[index]) { index += 1 }
        return index
    }

    /// The position after the closing quotation mark.
    private func endOfString(_ start: Int) -> Int {
        var index = start + 1
        while text[index] != "\"" { index += text[index] == "\\" ? 2 : 1 }
        return index + 1
    }
}
