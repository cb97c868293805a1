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
