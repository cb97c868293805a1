/// The output of wrk.
struct WrkReport {
    let measurement: Measurement

    /// `nil` if it is different.
    init?(_ text: String) {
        var measurement = Measurement()
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            if words.count >= 4, words[1] == "requests", words[2] == "in", let count = UInt64(words[0]) {
                measurement.ok = count
                measurement.seconds =
                    Self.microseconds(words[3].hasSuffix(",") ? String(words[3].dropLast()) : words[3]) / 1e6
            } else if words.first == "Non-2xx", let count = words.last.flatMap({ UInt64($0) }) {
                measurement.wrong = count
            } else if line.contains("Socket errors:") {
                measurement.failed = words.compactMap { UInt64($0.hasSuffix(",") ? String($0.dropLast()) : $0) }.reduce(
                    0, +)
            } else if words.count == 2 {
                switch words[0] {
                case "50%": measurement.p50 = Self.microseconds(words[1])
                case "90%": measurement.p90 = Self.microseconds(words[1])
                case "99%": measurement.p99 = Self.microseconds(words[1])
                default: break
                }
            }
        }
        guard measurement.ok > 0, measurement.seconds > 0 else { return nil }
        measurement.ok -= min(measurement.ok, measurement.wrong)
        self.measurement = measurement
    }

    /// `873.00us`, `1.20ms`, `3.00s`
    static func microseconds(_ text: String) -> Double {
        for (ending, factor) in [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3600e6)]
        where text.hasSuffix(ending) {
            return (Double(text.dropLast(ending.count)) ?? 0) * factor
        }
        return 0
    }
}
