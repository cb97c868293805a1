/// Turns a regular expression of ECMAScript, JSON Schema's, into the extended form of POSIX.
///
/// What has no counterpart there, or would make the matcher try one way after the other, is an error.
struct PatternTranslator {
    private var rest: Substring.UnicodeScalarView
    private var output = ""
    private let beginsWithAnchor: Bool
    private var depth = 0
    /// Whether it is several expressions, of which the anchor binds only the first.
    private var hasAlternatives = false
    private var repeatsWithoutEnd = false

    /// Whether a search for it may begin at every place of a text and go far from each.
    var needsOnePass: Bool { repeatsWithoutEnd && (!beginsWithAnchor || hasAlternatives) }

    init(_ pattern: String) {
        rest = Substring(pattern).unicodeScalars
        beginsWithAnchor = rest.first == "^"
    }

    mutating func translate() throws(SchemaPatternError) -> String {
        var mayRepeat = false
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\\": try translateEscape()
            case "[": try translateSet()
            case "(": try translateGroup()
            case "*", "+", "?":
                guard mayRepeat else { throw error("nothing to repeat") }
                output.unicodeScalars.append(scalar)
                if scalar != "?" { repeatsWithoutEnd = true }
                try refuseSecondQuantifier()
            case "{":
                guard mayRepeat else { throw error("nothing to repeat") }
                try translateBounds()
                try refuseSecondQuantifier()
            case "\0": throw error("a NUL")
            case ".": output += "[^\n\r]"
            // The ends of the text: within an expression the matcher takes ^ and $ for those of a line, now and then.
            case "^": output += "\\`"
            case "$": output += "\\'"
            case "]", "}": output += "\\\(scalar)"
            case ")" where depth == 0: output += "\\)"
            case ")":
                depth -= 1
                output += ")"
            case "|":
                if depth == 0 { hasAlternatives = true }
                output += "|"
            default: output.unicodeScalars.append(scalar)
            }
            mayRepeat = !["(", "|", "^"].contains(scalar)
        }
        return output
    }

    private func error(_ message: String) -> SchemaPatternError { SchemaPatternError(message: message) }

    private mutating func refuseSecondQuantifier() throws(SchemaPatternError) {
        if let next = rest.first, ["?", "+", "*", "{"].contains(next) {
            throw error("lazy and possessive quantifiers are not supported")
        }
    }

    private mutating func translateGroup() throws(SchemaPatternError) {
        output += "("
        depth += 1
        guard rest.first == "?" else { return }
        rest.removeFirst()
        guard rest.popFirst() == ":" else { throw error("of groups with (? only (?: is supported") }
    }

    /// `{2}`, `{2,}`, `{2,5}`; at most 255, as each repetition is a copy in the compiled expression.
    private mutating func translateBounds() throws(SchemaPatternError) {
        guard let end = rest.firstIndex(of: "}") else { throw error("{ without }") }
        let inner = String(rest[..<end])
        let numbers = inner.split(separator: ",", omittingEmptySubsequences: false)
        let isValid =
            (1...2).contains(numbers.count) && UInt8(numbers[0]) != nil
            && (numbers.count == 1 || numbers[1].isEmpty || UInt8(numbers[1]) != nil)
        guard isValid else { throw error("{\(inner)} is no repetition of at most 255") }
        if inner.hasSuffix(",") { repeatsWithoutEnd = true }
        output += "{\(inner)}"
        rest = rest[rest.index(after: end)...]
    }

    private mutating func translateEscape() throws(SchemaPatternError) {
        guard let scalar = rest.popFirst() else { throw error("\\ at the end") }
        switch scalar {
        case "d", "w", "s": output += "[\(PatternSet.members(of: scalar))]"
        case "D", "W", "S": output += "[^\(PatternSet.members(of: scalar))]"
        case "b", "B": output += "\\\(scalar)"
        default: appendLiteral(try literal(after: scalar))
        }
    }

    private mutating func appendLiteral(_ scalar: Unicode.Scalar) {
        if ".[]{}()*+?|^$\\".unicodeScalars.contains(scalar) { output += "\\" }
        output.unicodeScalars.append(scalar)
    }

    /// The character that an escape stands for.
    private mutating func literal(after scalar: Unicode.Scalar) throws(SchemaPatternError) -> Unicode.Scalar {
        switch scalar {
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "f": return "\u{c}"
        case "v": return "\u{b}"
        case "x": return try hexadecimal(2)
        case "u": return try hexadecimal(4)
        case "a"..."z", "A"..."Z", "0"..."9": throw error("\\\(scalar) is not supported")
        default: return scalar
        }
    }

    private mutating func hexadecimal(_ count: Int) throws(SchemaPatternError) -> Unicode.Scalar {
        let digits = String(rest.prefix(count))
        guard digits.unicodeScalars.count == count, let value = UInt32(digits, radix: 16), value != 0,
            let scalar = Unicode.Scalar(value)
        else { throw error("an escape of a character that is none") }
        rest.removeFirst(count)
        return scalar
    }

    private mutating func translateSet() throws(SchemaPatternError) {
        var set = PatternSet()
        if rest.first == "^" {
            set.isNegated = true
            rest.removeFirst()
        }
        while let scalar = rest.popFirst() {
            if scalar == "]" {
                guard !set.isEmpty else { throw error("an empty set") }
                output += set.text
                return
            }
            if scalar == "\\", let kind = rest.first, ["d", "w", "s"].contains(kind) {
                rest.removeFirst()
                set.add(class: kind)
                continue
            }
            let low = try member(scalar)
            guard rest.first == "-", let after = rest.dropFirst().first, after != "]" else {
                set.add(low)
                continue
            }
            rest.removeFirst(2)
            let high = try member(after)
            guard low.value <= high.value else { throw error("a range that goes backwards") }
            set.add(low, high)
        }
        throw error("[ without ]")
    }

    private mutating func member(_ scalar: Unicode.Scalar) throws(SchemaPatternError) -> Unicode.Scalar {
        guard scalar == "\\" else { return scalar }
        guard let next = rest.popFirst() else { throw error("\\ at the end") }
        return next == "b" ? "\u{8}" : try literal(after: next)
    }
}
