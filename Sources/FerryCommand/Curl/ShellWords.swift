/// The words of a command line as a shell parses them: `'…'`, `"…"`, `$'…'`, backslashes, and continued lines.
///
/// Nothing is executed or expanded: what a shell would replace (`$name`, `` `…` ``), and what ends a command (`|`, `;`,
/// `&`, `<`, `>`), is an error.
struct ShellWords {
    private var rest: Substring.UnicodeScalarView
    private var words: [String] = []
    /// `nil` between words, because an empty word is a word, too.
    private var word: String.UnicodeScalarView?

    static func split(_ text: String) throws(UsageError) -> [String] {
        var words = ShellWords(rest: text[...].unicodeScalars)
        try words.read()
        return words.words
    }

    private init(rest: Substring.UnicodeScalarView) { self.rest = rest }

    private mutating func read() throws(UsageError) {
        while let scalar = rest.popFirst() {
            switch scalar {
            case " ", "\t", "\n", "\r": end()
            case "'": try readSingle()
            case "\"": try readDouble()
            case "\\": readEscape()
            case "$":
                guard rest.first == "'" else {
                    throw UsageError("the shell would replace $; put it in single quotes")
                }
                rest.removeFirst()
                try readANSI()
            case "`", "|", ";", "&", "<", ">", "(", ")":
                throw UsageError("the shell would interpret '\(scalar)'; put it in quotes")
            case "#" where word == nil: rest = rest.drop { $0 != "\n" }
            default: append(scalar)
            }
        }
        end()
    }

    private mutating func append(_ scalar: Unicode.Scalar) {
        if word == nil { word = String.UnicodeScalarView() }
        word?.append(scalar)
    }

    private mutating func end() {
        if let word { words.append(String(word)) }
        word = nil
    }

    /// Outside of quotes: the next character is literal, and a line break is skipped.
    private mutating func readEscape() {
        guard let next = rest.popFirst() else { return append("\\") }
        if next == "\r", rest.first == "\n" {
            rest.removeFirst()
        } else if next != "\n" {
            append(next)
        }
    }

    private mutating func readSingle() throws(UsageError) {
        if word == nil { word = String.UnicodeScalarView() }
        while let scalar = rest.popFirst() {
            if scalar == "'" { return }
            append(scalar)
        }
        throw UsageError("unterminated single quote")
    }

    private mutating func readDouble() throws(UsageError) {
        if word == nil { word = String.UnicodeScalarView() }
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\"": return
            case "$", "`": throw UsageError("the shell would replace \(scalar); put it in single quotes")
            case "\\":
                guard let next = rest.popFirst() else { break }
                if next == "\n" { continue }
                if next != "\"" && next != "\\" && next != "$" && next != "`" { append("\\") }
                append(next)
            default: append(scalar)
            }
        }
        throw UsageError("unterminated double quote")
    }

    /// The notation of browsers for special characters.
    private mutating func readANSI() throws(UsageError) {
        if word == nil { word = String.UnicodeScalarView() }
        while let scalar = rest.popFirst() {
            if scalar == "'" { return }
            guard scalar == "\\" else {
                append(scalar)
                continue
            }
            switch rest.popFirst() {
            case "n": append("\n")
            case "r": append("\r")
            case "t": append("\t")
            case "x": append(try hexadecimal(atMost: 2))
            case "u": append(try hexadecimal(atMost: 4))
            case "U": append(try hexadecimal(atMost: 8))
            case let next? where ["\\", "'", "\"", "?"].contains(next): append(next)
            case let next: throw UsageError("\\\(next.map(String.init) ?? "") in $'…' is not supported")
            }
        }
        throw UsageError("unterminated $'")
    }

    private mutating func hexadecimal(atMost count: Int) throws(UsageError) -> Unicode.Scalar {
        var digits = ""
        while digits.count < count, let next = rest.first, Character(next).isHexDigit {
            digits.unicodeScalars.append(next)
            rest.removeFirst()
        }
        guard let value = UInt32(digits, radix: 16), let scalar = Unicode.Scalar(value) else {
            throw UsageError("\\x\(digits) in $'…' is not a character")
        }
        return scalar
    }
}
