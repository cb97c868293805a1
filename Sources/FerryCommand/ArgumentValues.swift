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

    /// A time: seconds, with a fraction where wanted, or a number and its unit (`500ms`, `2s`, `1m`, `1h`). Never
    /// negative, and at most a year.
    func seconds(_ name: String, allowingZero: Bool = false) throws(UsageError) -> Duration? {
        guard let text = last(name) else { return nil }
        let units = ["": 1, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600]
        guard let (number, unit) = Self.amount(text), let factor = units[unit.lowercased()],
            number != 0 || allowingZero,
            let duration = Duration(seconds: number * factor)
        else {
            throw UsageError("--\(name) wants seconds or a time such as 500ms, 2s or 1m, not '\(text)'")
        }
        return duration
    }

    /// A number of bytes above zero, with a unit where wanted: `500000`, `500K`, `10MB`, `1G` by thousands, `10MiB` by
    /// 1,024.
    func bytes(_ name: String) throws(UsageError) -> Int? {
        guard let text = last(name) else { return nil }
        if let number = Int(text), number > 0 { return number }
        guard let (number, unit) = Self.amount(text), let factor = Self.bytes(in: unit.lowercased()),
            let bytes = Int(exactly: number * factor), bytes > 0
        else {
            throw UsageError("--\(name) wants bytes, such as 500000, 500K or 10MB, not '\(text)'")
        }
        return bytes
    }

    private static func bytes(in unit: String) -> Double? {
        if unit.isEmpty || unit == "b" { return 1 }
        let powers: [Character: Int] = ["k": 1, "m": 2, "g": 3, "t": 4]
        guard let power = unit.first.flatMap({ powers[$0] }) else { return nil }
        let base: Double
        switch unit.dropFirst() {
        case "", "b": base = 1000
        case "i", "ib": base = 1024
        default: return nil
        }
        return (0..<power).reduce(1) { product, _ in product * base }
    }

    /// A number and the letters behind it.
    private static func amount(_ text: String) -> (number: Double, unit: String)? {
        let unit = String(text.reversed().prefix { $0.isLetter }.reversed())
        return Double(text.dropLast(unit.count)).map { ($0, unit) }
    }

    /// A URL that others are joined to: without its scheme each of them would fail.
    func base(_ name: String) throws(UsageError) -> String? {
        guard let text = last(name) else { return nil }
        guard CommandURL.hasWebScheme(text) else {
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
