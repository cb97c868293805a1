internal import FoundationEssentials

// Reads dates, UUIDs and decimals in their usual forms directly from the bytes. All other forms are left to Foundation.
// The results are the same as Foundation's.

extension Date {
    /// `2020-01-31T12:00:00Z`; `nil` for any other form and for invalid dates.
    init?(plainTimestamp text: UnsafeBufferPointer<UInt8>) {
        guard text.count == 20, text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
            text[10] == UInt8(ascii: "T"), text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"),
            text[19] == UInt8(ascii: "Z")
        else { return nil }
        var isNumber = true
        func number(_ place: Int, _ count: Int) -> Int {
            var number = 0
            for byte in text[place..<place + count] {
                let digit = byte &- UInt8(ascii: "0")
                if digit > 9 { isNumber = false }
                number = 10 * number + Int(digit)
            }
            return number
        }
        let (year, month, day) = (number(0, 4), number(5, 2), number(8, 2))
        let (hour, minute, second) = (number(11, 2), number(14, 2), number(17, 2))
        // Calendars differ before 1583.
        guard isNumber, year >= 1583, (1...12).contains(month), (1...28).contains(day), hour < 24, minute < 60,
            second < 60
        else { return nil }
        // The days since 1970-03-01 in years that begin with March, so that a leap day is the last.
        let march = month > 2 ? month - 3 : month + 9
        let years = month > 2 ? year : year - 1
        let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * march + 2) / 5 + day - 1 - 719_468
        self.init(timeIntervalSince1970: Double(86_400 * days + 3600 * hour + 60 * minute + second))
    }
}

extension UUID {
    /// Reads 36 characters with the hyphens in their places.
    init?(digits text: UnsafeBufferPointer<UInt8>) {
        guard text.count == 36 else { return nil }
        var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        let isUUID = withUnsafeMutableBytes(of: &bytes) { bytes in
            var place = 0
            for byte in 0..<16 {
                if byte == 4 || byte == 6 || byte == 8 || byte == 10 {
                    guard text[place] == UInt8(ascii: "-") else { return false }
                    place += 1
                }
                guard let high = Self.digit(text[place]), let low = Self.digit(text[place + 1]) else { return false }
                bytes[byte] = high << 4 | low
                place += 2
            }
            return true
        }
        guard isUUID else { return nil }
        self.init(uuid: bytes)
    }

    @inline(__always)
    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// A decimal of up to 38 digits.
struct DecimalDigits {
    private let isNegative: Bool
    private var mantissa: UInt128 = 0
    private var exponent = 0

    /// Reads a text that the parser has accepted as a number; `nil` if it has too many digits.
    init?(_ text: UnsafeBufferPointer<UInt8>) {
        isNegative = text.first == UInt8(ascii: "-")
        var place = isNegative ? 1 : 0
        var isFraction = false
        var digits = 0
        while place < text.count {
            let byte = text[place]
            place += 1
            if byte == UInt8(ascii: ".") {
                isFraction = true
            } else if byte | 0x20 == UInt8(ascii: "e") {
                guard let power = Self.power(text[place...]) else { return nil }
                exponent += power
                break
            } else {
                digits += digits > 0 || byte != UInt8(ascii: "0") ? 1 : 0
                guard digits <= 38 else { return nil }
                mantissa = mantissa &* 10 &+ UInt128(truncatingIfNeeded: byte &- UInt8(ascii: "0"))
                if isFraction { exponent -= 1 }
            }
        }
    }

    private static func power(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
        var power = 0
        var isNegative = false
        for byte in text {
            switch byte {
            case UInt8(ascii: "-"): isNegative = true
            case UInt8(ascii: "+"): break
            default: power = 10 * power + Int(byte &- UInt8(ascii: "0"))
            }
            guard power < 1000 else { return nil }
        }
        return isNegative ? -power : power
    }

    /// `nil` if the exponent is near the limits of `Decimal`.
    var decimal: Decimal? {
        guard mantissa != 0, exponent > -80, exponent < 80 else { return nil }
        let sign: FloatingPointSign = isNegative ? .minus : .plus
        guard let low = UInt64(exactly: mantissa) else { return Self.layoutIsKnown ? largeDecimal : nil }
        return Decimal(sign: sign, exponent: exponent, significand: Decimal(low))
    }

    /// Writes the digits directly into the decimal: adding and multiplying two halves takes as long as reading the
    /// text.
    private var largeDecimal: Decimal {
        var mantissa = mantissa
        var exponent = exponent
        while mantissa % 10 == 0 {
            mantissa /= 10
            exponent += 1
        }
        var decimal = Decimal()
        withUnsafeMutableBytes(of: &decimal) { bytes in
            let words = (128 - mantissa.leadingZeroBitCount + 15) / 16
            bytes[0] = UInt8(bitPattern: Int8(exponent))
            bytes[1] = UInt8(words) << 4 | (isNegative ? 8 : 0) | 4
            bytes.storeBytes(of: UInt64(truncatingIfNeeded: mantissa.littleEndian), toByteOffset: 4, as: UInt64.self)
            bytes.storeBytes(of: UInt64(truncatingIfNeeded: mantissa >> 64), toByteOffset: 12, as: UInt64.self)
        }
        return decimal
    }

    /// Whether a `Decimal` has the memory layout that it has had for decades; the layout is not documented.
    private static let layoutIsKnown: Bool = {
        guard MemoryLayout<Decimal>.size == 20 else { return false }
        return ["-1234567890123456789012.5", "98765432109876543210.123456789012345678", "18446744073709551617"]
            .allSatisfy {
                let known = Decimal(string: $0)
                let text = Array($0.utf8)
                let made = text.withUnsafeBufferPointer { DecimalDigits($0)?.largeDecimal }
                return made.map { $0 == known && "\($0)" == "\(known ?? 0)" } ?? false
            }
    }()
}
