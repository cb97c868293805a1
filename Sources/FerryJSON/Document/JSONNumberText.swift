/// A whole number from its digits, with which a fraction or an exponent may be written (RFC 8259, section 6).
///
/// From 2^53 on doubles have gaps, and the one that stands for a number says no longer which integer was meant.
struct JSONNumberText {
    private let isNegative: Bool
    private var digits: [UInt8] = []
    /// The power of ten that the digits are multiplied by.
    private var scale = 0

    /// Of a text that the parser has found to be a number.
    init(_ text: String) {
        var rest = Substring(text).utf8
        isNegative = rest.first == UInt8(ascii: "-")
        if isNegative { rest.removeFirst() }
        var isFraction = false
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "."): isFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                // One that no integer holds is beyond all bounds below, but far from the end of Int.
                let exponent = Int(Substring(rest)) ?? (rest.first == UInt8(ascii: "-") ? -1 << 48 : 1 << 48)
                scale += min(max(exponent, -1 << 48), 1 << 48)
                rest = rest.suffix(0)
            default:
                if isFraction { scale -= 1 }
                digits.append(byte - UInt8(ascii: "0"))
            }
        }
        while digits.last == 0 {
            digits.removeLast()
            scale += 1
        }
    }

    /// The number itself, nil where it has a fraction or the type cannot hold it.
    func integer<T: FixedWidthInteger>(as type: T.Type = T.self) -> T? {
        guard !digits.isEmpty else { return 0 }
        let leading = digits.prefix { $0 == 0 }.count
        guard scale >= 0, digits.count - leading + scale <= 40 else { return nil }
        var value: T = 0
        for digit in digits.dropFirst(leading) + Array(repeating: 0, count: scale) {
            let tenfold = value.multipliedReportingOverflow(by: 10)
            // Downwards where it is negative: the lowest integer has no counterpart.
            let next =
                isNegative
                ? tenfold.partialValue.subtractingReportingOverflow(T(digit))
                : tenfold.partialValue.addingReportingOverflow(T(digit))
            guard !tenfold.overflow, !next.overflow else { return nil }
            value = next.partialValue
        }
        return value
    }
}
