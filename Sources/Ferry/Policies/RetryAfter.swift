/// Reads `Retry-After` (RFC 9110, 10.2.3): seconds, or a date.
enum RetryAfter {
    /// The time to wait; a date that has passed is none at all. `nil` when there is no field, or none that makes sense:
    /// signs, fractions, numbers beyond 64 bits. Of several the longest counts.
    static func wait(_ values: [String], now: HTTPDate) -> Duration? {
        values.compactMap { wait($0, now: now) }.max()
    }

    private static func wait(_ value: String, now: HTTPDate) -> Duration? {
        if let first = value.utf8.first, first >= 0x30, first <= 0x39 {
            guard value.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let seconds = Int64(value) else { return nil }
            return .seconds(seconds)
        }
        guard let date = HTTPDate(value, now: now) else { return nil }
        return .seconds(max(0, date.secondsSince1970 - now.secondsSince1970))
    }
}
