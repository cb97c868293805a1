/// A `Content-Range` of bytes (RFC 9110, 14.4).
struct ContentRange: Sendable, Equatable {
    /// What came, the last byte included; `nil` where nothing could be given, as with 416.
    let bytes: ClosedRange<Int64>?
    /// Of the whole; `nil` where the server does not say.
    let total: Int64?

    /// Reads `bytes 5-9/10`, `bytes 5-9/*` and `bytes */10`. Anything else, and what contradicts itself, is `nil`.
    init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, equalNames(String(words[0]), "bytes") else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        total = Self.number(parts[1])
        guard total != nil || parts[1] == "*" else { return nil }
        if parts[0] == "*" {
            guard total != nil else { return nil }
            bytes = nil
            return
        }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            total.map({ last < $0 }) ?? true
        else { return nil }
        bytes = first...last
    }

    private static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else {
            return nil
        }
        return Int64(text)
    }
}
