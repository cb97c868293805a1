internal import FerryMeasurement

/// Bytes in the unit that fits, by thousands: `870 B`, `12.4 kB`, `1.25 GB`.
func bytesText(_ bytes: Int64) -> String {
    let value = Double(bytes)
    switch bytes {
    case ..<1_000: return "\(bytes) B"
    case ..<1_000_000: return oneOrTwo(value / 1e3) + " kB"
    case ..<1_000_000_000: return oneOrTwo(value / 1e6) + " MB"
    default: return oneOrTwo(value / 1e9) + " GB"
    }
}

/// `0:07`, `12:30`, `1:02:03`
func clockText(_ duration: Duration) -> String {
    let seconds = min(duration.components.seconds, 359_999)
    func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let minutes = seconds / 60
    if minutes < 60 { return "\(minutes):\(two(seconds % 60))" }
    return "\(minutes / 60):\(two(minutes % 60)):\(two(seconds % 60))"
}

/// With three significant digits.
private func oneOrTwo(_ value: Double) -> String { fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0) }

extension Duration {
    /// Rounded to nanoseconds, but at least a microsecond unless it is 0, which would be no limit; `nil` for a negative
    /// number, NaN, or more than a year.
    init?(seconds: Double) {
        guard seconds >= 0, seconds <= 31_536_000 else { return nil }
        self = .nanoseconds(seconds == 0 ? 0 : max(1000, Int64((seconds * 1e9).rounded())))
    }
}

/// Text in a page.
enum HTMLText {
    /// Rules for tables in a narrow window: a row with heads becomes a block of its cells, and long words break.
    static let stackedTables = """
        @media (max-width: 640px) {
          body { margin: 1rem auto; padding: 0 .8rem; } th, td { white-space: normal; overflow-wrap: anywhere; padding: .3rem; }
          td + td:last-child { white-space: nowrap; }
          table.headed th { display: none; } table.headed tr { display: grid; grid-template-columns: repeat(3, 1fr);
            border-bottom: 1px solid var(--line); padding: .3rem 0; }
          table.headed td { border: 0; padding: .1rem 0; text-align: left; width: auto; }
          table.headed td:not([data-head]) { grid-column: 1 / -1; }
          td[data-head]::before { content: attr(data-head); display: block; color: var(--dim); font-size: 11px; }
        }
        """

    /// Escapes text for HTML, also in attributes. Control characters become question marks.
    static func escaped(_ text: some StringProtocol) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(character.value < 32 && character != "\n" ? "?" : character)
            }
        }
        return escaped
    }
}
