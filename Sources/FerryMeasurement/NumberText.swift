internal import Glibc

/// A number with this many decimal places, the same in every locale.
public func fixed(_ value: Double, _ digits: Int) -> String {
    var buffer = [CChar](repeating: 0, count: 400)
    let length = withVaList([digits, value]) { vsnprintf(&buffer, buffer.count, "%.*f", $0) }
    return String(decoding: buffer.prefix(max(0, Int(length))).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// A whole number with commas between the thousands.
public func grouped(_ value: UInt64) -> String {
    let digits = String(value)
    var text = ""
    for (index, digit) in digits.enumerated() {
        if index > 0 && (digits.count - index) % 3 == 0 { text.append(",") }
        text.append(digit)
    }
    return text
}

/// Nanoseconds in a suitable unit: `870 µs`, `12.4 ms`, `1.25 s`.
public func durationText(nanoseconds: UInt64) -> String {
    switch nanoseconds {
    case ..<1_000_000: "\(nanoseconds / 1000) µs"
    case ..<100_000_000: fixed(Double(nanoseconds) / 1e6, 1) + " ms"
    case ..<1_000_000_000: "\(nanoseconds / 1_000_000) ms"
    default: fixed(Double(nanoseconds) / 1e9, 2) + " s"
    }
}
