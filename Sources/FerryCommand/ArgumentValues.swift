extension ParsedArguments {
    /// A whole number within `range`.
    func integer(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = last(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            let least = range.lowerBound
            let bounds = range.upperBound == .max ? "of at least \(least)" : "from \(least) to \(range.upperBound)"
            throw UsageError("--\(name) wants a whole number \(bounds), not '\(text)'")
        }
        return number
    }

    /// Seconds, with a fraction where wanted; never negative, and at most a year.
    func seconds(_ name: String, allowingZero: Bool = false) throws(UsageError) -> Duration? {
        guard let text = last(name) else { return nil }
        guard let number = Double(text), number != 0 || allowingZero, let duration = Duration(seconds: number) else {
            throw UsageError("--\(name) wants seconds, not '\(text)'")
        }
        return duration
    }

    /// A URL that others are joined to: without its scheme each of them would fail.
    func base(_ name: String) throws(UsageError) -> String? {
        guard let text = last(name) else { return nil }
        let scheme = text.lowercased()
        guard scheme.hasPrefix("http://") || scheme.hasPrefix("https://") else {
            throw UsageError("--\(name) wants a URL that begins with http:// or https://, not '\(text)'")
        }
        return text
    }

    /// `NAME: VALUE` fields; what is in them is for the engine to accept or refuse.
    func headerFields(_ name: String) throws(UsageError) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for text in all(name) {
            guard let colon = text.firstIndex(of: ":"), colon != text.startIndex else {
                throw UsageError("--\(name) wants 'Name: value', not '\(text)'")
            }
            let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            fields.append((String(text[..<colon]), String(value)))
        }
        return fields
    }

    /// `key=value` pairs.
    func pairs(_ name: String) throws(UsageError) -> [(name: String, value: String)] {
        var pairs: [(name: String, value: String)] = []
        for text in all(name) {
            guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw UsageError("--\(name) wants 'key=value', not '\(text)'")
            }
            pairs.append((String(text[..<equals]), String(text[text.index(after: equals)...])))
        }
        return pairs
    }

    /// Status codes: `200`, `200-299`, or several of these with commas.
    func statusRanges(_ name: String) throws(UsageError) -> [ClosedRange<Int>]? {
        guard let text = last(name) else { return nil }
        return try text.split(separator: ",", omittingEmptySubsequences: false).map { part throws(UsageError) in
            guard let range = StatusRange.reading(part) else {
                throw UsageError("--\(name) wants status codes such as 200-299, not '\(text)'")
            }
            return range
        }
    }
}
