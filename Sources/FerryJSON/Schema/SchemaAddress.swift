/// A URI reference in its parts (RFC 3986, appendix B).
struct SchemaAddress {
    private var scheme: String?
    private var authority: String?
    private var path: String
    private var query: String?
    private(set) var fragment: String?

    init(_ text: String) {
        var rest = Substring(text)
        if let mark = rest.unicodeScalars.firstIndex(of: "#") {
            fragment = String(rest.unicodeScalars[rest.unicodeScalars.index(after: mark)...])
            rest = rest[..<mark]
        }
        if let mark = rest.unicodeScalars.firstIndex(of: "?") {
            query = String(rest.unicodeScalars[rest.unicodeScalars.index(after: mark)...])
            rest = rest[..<mark]
        }
        if let mark = rest.unicodeScalars.firstIndex(of: ":"), Self.isScheme(rest[..<mark]) {
            scheme = rest[..<mark].lowercased()
            rest = rest[rest.unicodeScalars.index(after: mark)...]
        }
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: "/") ?? rest.endIndex
            authority = rest[..<end].lowercased()
            rest = rest[end...]
        }
        path = String(rest)
    }

    private static func isScheme(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first | 0x20) else {
            return false
        }
        return text.unicodeScalars.allSatisfy {
            $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || "+-.".unicodeScalars.contains($0))
        }
    }

    /// RFC 3986, section 5.2.2.
    func resolved(against base: SchemaAddress) -> SchemaAddress {
        var target = self
        guard scheme == nil else {
            target.path = Self.withoutDots(path)
            return target
        }
        target.scheme = base.scheme
        guard authority == nil else {
            target.path = Self.withoutDots(path)
            return target
        }
        target.authority = base.authority
        if path.isEmpty {
            target.path = base.path
            target.query = query ?? base.query
        } else if path.hasPrefix("/") {
            target.path = Self.withoutDots(path)
        } else {
            let folder = base.path.lastIndex(of: "/").map { base.path[...$0] } ?? (base.authority == nil ? "" : "/")
            target.path = Self.withoutDots(folder + path)
        }
        return target
    }

    /// RFC 3986, section 5.2.4.
    private static func withoutDots(_ path: String) -> String {
        guard path.contains(".") else { return path }
        var kept: [Substring] = []
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        for (place, segment) in segments.enumerated() {
            let isLast = place == segments.count - 1
            switch segment {
            case ".": if isLast { kept.append("") }
            case "..":
                if let last = kept.last, last != "..", kept.count > 1 || !path.hasPrefix("/") { kept.removeLast() }
                if isLast { kept.append("") }
            default: kept.append(segment)
            }
        }
        return kept.joined(separator: "/")
    }

    /// The reference without the fragment.
    var document: String {
        (scheme.map { $0 + ":" } ?? "") + (authority.map { "//" + $0 } ?? "") + path + (query.map { "?" + $0 } ?? "")
    }

    /// The fragment without percent-encoding; `nil` if the encoding is invalid.
    var plainFragment: String? {
        guard let fragment else { return "" }
        guard fragment.utf8.contains(UInt8(ascii: "%")) else { return fragment }
        var bytes: [UInt8] = []
        var rest = Substring(fragment).utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, let value = UInt8(String(Substring(digits)), radix: 16), digits.first != 0x2b
            else {
                return nil
            }
            bytes.append(value)
            rest.removeFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
