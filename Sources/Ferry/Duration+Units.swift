extension Duration {
    /// Cut to whole ones, and to what can be counted.
    package var microseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carry) = whole.addingReportingOverflow(attoseconds / 1_000_000_000_000)
        return carry ? (seconds < 0 ? .min : .max) : sum
    }
}

/// Rounded up, at least 1: 0 means no bound to the core.
func milliseconds(_ duration: Duration?) -> UInt32 {
    guard let duration else { return 0 }
    let (seconds, attoseconds) = duration.components
    if seconds < 0 { return 1 }
    if seconds >= 4_294_967 { return .max }
    let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    return UInt32(clamping: max(milliseconds, 1))
}
