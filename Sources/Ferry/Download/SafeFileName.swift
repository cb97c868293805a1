/// The name of a local file, derived from the name in a response or a URL.
enum SafeFileName {
    /// The suffixes of the partial file and of its metadata file.
    static let partSuffix = ".ferry-part"
    static let metadataSuffix = ".ferry-meta"

    /// The maximum length in bytes that every file system supports.
    private static let most = 255
    private static let longestExtension = 16

    /// The server's name if it is usable, then the URL's last component, then `download`.
    static func name(contentDisposition: String?, url: String) -> String {
        contentDisposition.flatMap(ContentDisposition.fileName).flatMap(safe) ?? lastComponent(url).flatMap(safe)
            ?? "download"
    }

    /// A safe name in a directory: no path, no hidden file, no invisible characters, and not too long. `nil` if nothing
    /// is left of it.
    static func safe(_ name: String) -> String? {
        let last = name.unicodeScalars.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }.last ?? []
        let isBlank = { (scalar: Unicode.Scalar) in scalar.properties.isWhitespace }
        let isNoEnd = { (scalar: Unicode.Scalar) in scalar == "." || isBlank(scalar) }
        var scalars = Array(last.filter { !$0.isInvisible }.drop(while: isNoEnd))
        while let last = scalars.last, isNoEnd(last) { scalars.removeLast() }
        var safe = String(String.UnicodeScalarView(scalars))
        if safe.isEmpty { return nil }
        safe = shortened(safe, to: most)
        // After shortening, such a character may be the last again.
        while let last = safe.unicodeScalars.last, isNoEnd(last) { safe.unicodeScalars.removeLast() }
        // A server's file must not look like one of these.
        for suffix in [partSuffix, metadataSuffix, metadataSuffix + "~"] where safe.hasSuffix(suffix) {
            return shortened(safe, to: most - 1) + "_"
        }
        return safe
    }

    /// The name if there are already files with this name and with smaller numbers: `x-1.txt`.
    static func numbered(_ name: String, _ number: Int) -> String {
        let mark = "-\(number)"
        let name = shortened(name, to: most - mark.utf8.count)
        let dot = startOfExtension(of: name)
        return String(name[..<dot]) + mark + name[dot...]
    }

    /// The place of the extension's dot; the end of the name if there is no extension.
    private static func startOfExtension(of name: String) -> String.Index {
        // In bytes: a step back over one character may read all of them (a row of flags, for example).
        guard let dot = name.utf8.suffix(longestExtension).lastIndex(of: 0x2E), dot != name.startIndex else {
            return name.endIndex
        }
        return dot
    }

    /// Shortened before the extension, and never within a character.
    private static func shortened(_ name: String, to limit: Int) -> String {
        if name.utf8.count <= limit { return name }
        let dot = startOfExtension(of: name)
        var room = limit - name[dot...].utf8.count
        var end = name.startIndex
        while end < dot {
            let next = name.index(after: end)
            room -= name[end..<next].utf8.count
            if room < 0 || next > dot { break }
            end = next
        }
        return (end == name.startIndex ? "download" : String(name[..<end])) + name[dot...]
    }

    private static func lastComponent(_ url: String) -> String? {
        let path = url.prefix { $0 != "?" && $0 != "#" }
        guard let scheme = path.firstRange(of: "://"), let slash = path[scheme.upperBound...].utf8.lastIndex(of: 0x2F)
        else {
            return nil
        }
        let component = path[path.index(after: slash)...]
        guard let bytes = PercentEncoding.strictlyDecoded(component.utf8) else { return String(component) }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Names of partial files

    /// The names of the partial file and of its metadata file.
    static func part(of name: String) -> (part: String, metadata: String) {
        let longest = most - metadataSuffix.utf8.count - 1
        let stem =
            name.utf8.count <= longest
            ? name : shortened(name, to: longest - 17) + "." + SHA256.hexadecimal(of: Array(name.utf8)).prefix(16)
        return (stem + partSuffix, stem + metadataSuffix)
    }

    /// The same if the file's own name is not known yet, derived from its URL.
    static func part(ofURL url: String) -> (part: String, metadata: String) {
        part(of: String(SHA256.hexadecimal(of: Array(url.utf8)).prefix(32)))
    }
}

/// The name that a server gives a file (RFC 6266), unchecked.
enum ContentDisposition {
    /// The name in a `Content-Disposition` field: `filename*` (RFC 8187) takes precedence over `filename`. `nil` if
    /// there is none.
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

/// Parses parameters of a header field; invalid ones are skipped up to the next semicolon.
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

    /// A token or a quoted string (RFC 9110, 5.6.4), which may contain anything.
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
            // Some old browsers sent Windows paths here: a quote is escaped, a path separator is not.
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
