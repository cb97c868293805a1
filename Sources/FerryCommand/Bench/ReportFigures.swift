internal import FerryMeasurement

extension Histogram {
    /// Microseconds by name, with `mean` and `max`.
    func percentiles(_ percents: [(name: String, percent: Double)]) -> [String: Double] {
        var values = ["mean": rounded(mean / 1000, 1), "max": micro(maximum)]
        for (name, percent) in percents { values[name] = micro(percentile(percent)) }
        return values
    }
}

/// Microseconds with one digit behind the point.
func micro(_ nanoseconds: UInt64) -> Double { rounded(Double(nanoseconds) / 1000, 1) }

/// With so many digits behind the point.
func rounded(_ value: Double, _ digits: Int) -> Double { Double(fixed(value, digits)) ?? 0 }
