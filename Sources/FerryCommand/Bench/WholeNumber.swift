/// The whole part of it; of what is too large, or too small, the nearest there is, and 0 for what is no number.
func wholeNumber(_ value: Double) -> UInt64 {
    value >= 0x1p64 ? .max : value > 0 ? UInt64(value) : 0
}
