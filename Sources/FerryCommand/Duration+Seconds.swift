extension Duration {
    /// To the nearest nanosecond; `nil` for what is negative, no number, or more than a year.
    init?(seconds: Double) {
        guard seconds >= 0, seconds <= 31_536_000 else { return nil }
        self = .nanoseconds(Int64((seconds * 1e9).rounded()))
    }
}
