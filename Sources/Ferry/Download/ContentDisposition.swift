/// The name that a server gives a file (RFC 6266), as it stands there: nothing in it is to be trusted.
enum ContentDisposition {
    /// The name in a `Content-Disposition` field: `filename*` (RFC 8187) before `filename`. `nil` without one.
    static func fileName(_ field: String) -> String? {
        var reader = FieldReader(field)
        _ = reader.token()
        var plain: String?
        while reader.skip(";") {
            guard let name = reader.token(), reader.skip("="), let value = reader.value() else { continue }
            if equalNames(name, "filename*"), let decoded = extended(value) { return decoded }
            if equalNames(name, "filename") && plain == nil { plain = value }
        }
        return plain
    }

    /// `UTF-8'en'na%C3%AFve.txt`
    private static func extended(_ value: String) -> String? {
        let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = PercentEncoding.strictlyDecoded(parts[2].utf8) else { return nil }
        if equalNames(String(parts[0]), "UTF-8") { return String(validating: bytes, as: UTF8.self) }
        guard equalNames(String(parts[0]), "ISO-8859-1") else { return nil }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

/// Reads parameters of a header field; what does not fit is skipped up to the next semicolon.
private struct FieldReader {
    private var rest: Substring

    init(_ text: String) { rest = text[...] }

    private mutating func skipBlanks() {
        while let first = rest.first, first == " " || first == "\t" { rest.removeFirst() }
    }

    mutating func skip(_ mark: Character) -> Bool {
        skipBlanks()
        if mark == ";" { rest = rest.drop { $0 != ";" } }
        guard rest.first == mark else { return false }
        rest.removeFirst()
        return true
    }

    mutating func token() -> String? {
        skipBlanks()
        let token = rest.prefix { !" \t;=\"".contains($0) }
        rest = rest[token.endIndex...]
        return token.isEmpty ? nil : String(token)
    }

    /// A token, or a string in quotes (RFC 9110, 5.6.4), which may hold anything.
    mutating func value() -> String? {
        skipBlanks()
        guard rest.first == "\"" else {
            let value = rest.prefix { $0 != ";" }
            rest = rest[value.endIndex...]
            return value.isEmpty ? nil : String(value).trimmed
        }
        rest.removeFirst()
        var text = ""
        while let character = rest.popFirst() {
            if character == "\"" { return text }
            guard character == "\\" else {
                text.append(character)
                continue
            }
            // Some browsers of old sent paths of Windows here: a quote is escaped, a path is not.
            if let next = rest.first, next == "\"" || next == "\\" {
                text.append(rest.removeFirst())
            } else {
                text.append("\\")
            }
        }
        return text
    }
}

extension String {
    fileprivate var trimmed: String {
        var text = self[...]
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}
