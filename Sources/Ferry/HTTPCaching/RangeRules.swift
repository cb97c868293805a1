/// How a stored complete response answers a request for a part (RFC 9111, 4; RFC 9110, 14).
enum RangeRules {
    enum Part: Sendable, Equatable {
        /// All of it: the field asks for nothing that is known here, or its condition does not hold (RFC 9110, 14.2).
        case whole
        /// These bytes.
        case part(Range<Int>)
        /// The server is asked: several parts, or none of the bytes that are there.
        case ofServer
    }

    /// What of a body of so many bytes a request asks for.
    static func part(_ request: Headers, of count: Int, _ stored: Headers) -> Part {
        guard let value = request["Range"] else { return .whole }
        if let condition = request["If-Range"], !holds(condition, stored) { return .whole }
        let text = value.utf8.filter { $0 != 0x20 && $0 != 0x09 }.map(lowercased)
        let unit = Array("bytes=".utf8)
        // Another unit is the server's to know.
        guard text.starts(with: unit), !text.contains(0x2C) else { return .ofServer }
        let ends = text.dropFirst(unit.count).split(separator: 0x2D, omittingEmptySubsequences: false)
        guard ends.count == 2 else { return .ofServer }
        let (first, last) = (number(ends[0]), number(ends[1]))
        if ends[0].isEmpty {
            guard let last, last > 0, count > 0 else { return .ofServer }
            return .part(max(0, count - last)..<count)
        }
        guard let first, first < count, last != nil || ends[1].isEmpty else { return .ofServer }
        if let last, last < first { return .ofServer }
        return .part(first..<min(count, (last ?? count) &+ 1))
    }

    /// Whether the condition of an `If-Range` field holds (RFC 9110, 13.1.5): only the strong comparison will do.
    private static func holds(_ condition: String, _ stored: Headers) -> Bool {
        guard let tag = Validators(stored).tag else { return false }
        return tag.stronglyMatches(EntityTag(text: condition))
    }

    /// At most 2⁴⁰: what is longer is no length of a body.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard !digits.isEmpty, digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
        var value = 0
        for digit in digits { value = min(value * 10 + Int(digit - 0x30), 1 << 40) }
        return value
    }

    /// The fields of the response with this part of a stored one (RFC 9110, 15.3.7).
    static func fields(_ stored: Headers, _ part: Range<Int>, of count: Int) -> Headers {
        var headers = stored
        headers["Content-Range"] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(count)"
        headers["Content-Length"] = String(part.count)
        return headers
    }
}
