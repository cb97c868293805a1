/// The name of a file in a directory of ours, made of what a server or a URL calls it.
enum SafeFileName {
    /// What stands behind the name of a part, and of what is known of it.
    static let partSuffix = ".ferry-part"
    static let metadataSuffix = ".ferry-meta"

    /// Bytes of a name that every file system takes.
    private static let most = 255
    private static let longestExtension = 16

    /// The server's name if there is one that can be used, then the URL's last component, then `download`.
    static func name(contentDisposition: String?, url: String) -> String {
        contentDisposition.flatMap(ContentDisposition.fileName).flatMap(safe) ?? lastComponent(url).flatMap(safe)
            ?? "download"
    }

    /// One name, of this directory: no path, no hidden file, nothing that cannot be seen, and not too long. `nil` when
    /// nothing is left of it.
    static func safe(_ name: String) -> String? {
        let last = name.unicodeScalars.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }.last ?? []
        var scalars = Array(last).filter { !$0.isInvisible }
        let isBlank = { (scalar: Unicode.Scalar) in scalar.properties.isWhitespace }
        let isNoEnd = { (scalar: Unicode.Scalar) in scalar == "." || isBlank(scalar) }
        while let first = scalars.first, isNoEnd(first) { scalars.removeFirst() }
        while let last = scalars.last, isNoEnd(last) { scalars.removeLast() }
        var safe = String(String.UnicodeScalarView(scalars))
        if safe.isEmpty { return nil }
        safe = shortened(safe, to: most)
        // Where it is cut, such a one may be the last again.
        while let last = safe.unicodeScalars.last, isNoEnd(last) { safe.unicodeScalars.removeLast() }
        // A file of the server's must not pass for one of ours.
        for suffix in [partSuffix, metadataSuffix, metadataSuffix + "~"] where safe.hasSuffix(suffix) {
            return shortened(safe, to: most - 1) + "_"
        }
        return safe
    }

    /// The name for a file when there is one of this name already, and others with smaller numbers: `x-1.txt`.
    static func numbered(_ name: String, _ number: Int) -> String {
        let mark = "-\(number)"
        let name = shortened(name, to: most - mark.utf8.count)
        let ending = ending(of: name)
        return name.dropLast(ending.count) + mark + ending
    }

    /// Its extension, with the dot, if it has one.
    private static func ending(of name: String) -> String {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex, name[dot...].utf8.count <= longestExtension
        else { return "" }
        return String(name[dot...])
    }

    /// Cut in front of the extension, and never within a character.
    private static func shortened(_ name: String, to limit: Int) -> String {
        if name.utf8.count <= limit { return name }
        let ending = ending(of: name)
        var stem = String(name.dropLast(ending.count))
        while stem.utf8.count + ending.utf8.count > limit { stem.removeLast() }
        return (stem.isEmpty ? "download" : stem) + ending
    }

    private static func lastComponent(_ url: String) -> String? {
        let path = url.prefix { $0 != "?" && $0 != "#" }
        guard let scheme = path.firstRange(of: "://"), let slash = path[scheme.upperBound...].lastIndex(of: "/") else {
            return nil
        }
        let component = path[path.index(after: slash)...]
        guard let bytes = PercentEncoding.strictlyDecoded(component.utf8) else { return String(component) }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Names of ours

    /// The names of the part and of its metadata beside a file.
    static func part(of name: String) -> (part: String, metadata: String) {
        let longest = most - metadataSuffix.utf8.count - 1
        let stem =
            name.utf8.count <= longest
            ? name : shortened(name, to: longest - 17) + "." + SHA256.hexadecimal(of: Array(name.utf8)).prefix(16)
        return (stem + partSuffix, stem + metadataSuffix)
    }

    /// Likewise where the file's own name is not known yet: of its URL.
    static func part(ofURL url: String) -> (part: String, metadata: String) {
        part(of: String(SHA256.hexadecimal(of: Array(url.utf8)).prefix(32)))
    }
}

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
