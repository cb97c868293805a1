/// A content type (RFC 9110, 8.3.1), without its parameters.
struct MediaType: Equatable, CustomStringConvertible {
    let type: String
    let subtype: String

    /// `nil` when the text is none.
    init?(_ text: String) {
        let bare = text.split(separator: ";", maxSplits: 1, omittingEmptySubsequences: false)[0]
        let parts = bare.split(separator: "/", omittingEmptySubsequences: false).map(Self.trimmed)
        guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(ByteSet.token.contains) })
        else { return nil }
        type = parts[0].lowercased()
        subtype = parts[1].lowercased()
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text.drop { $0 == " " || $0 == "\t" })
    }

    /// Whether it is of this range, like `text/html`, `text/*`, `application/*+json` or `*/*`.
    func matches(_ range: String) -> Bool {
        guard let range = MediaType(range) else { return false }
        if range.type != "*" && range.type != type { return false }
        if range.subtype == "*" || range.subtype == subtype { return true }
        return range.subtype.hasPrefix("*+") && subtype.hasSuffix(range.subtype.dropFirst())
    }

    var description: String { "\(type)/\(subtype)" }
}
