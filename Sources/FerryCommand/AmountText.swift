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

/// Three digits of it.
private func oneOrTwo(_ value: Double) -> String { fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0) }
