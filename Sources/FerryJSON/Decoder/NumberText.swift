internal import CFerryJSON

/// Finds the text of numbers, in any order. It remembers the text position of every 1,024th word of the tape.
struct NumberPlaces {
    /// The maximum number of words that one search passes.
    private static let distance = 1024

    private var last = ferry_json_cursor()
    /// The cursor at each multiple of the distance, as far as the text has been searched.
    private var marks: [ferry_json_cursor] = []

    /// The bytes of the number at `index`, in the text that the document was parsed from.
    mutating func digits(
        of index: Int, in document: OpaquePointer, _ text: UnsafeRawBufferPointer
    ) -> UnsafeBufferPointer<UInt8>? {
        guard let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
        let mark = text.count >= 3 && start[0] == 0xef && start[1] == 0xbb && start[2] == 0xbf ? 3 : 0
        let offset = offset(of: index, in: document, start + mark)
        guard offset != Int(bitPattern: UInt.max) else { return nil }
        let begin = start + mark + offset
        let end = start + text.count
        var place = begin
        while place < end, Self.isPartOfNumber(place.pointee) { place += 1 }
        return UnsafeBufferPointer(start: begin, count: place - begin)
    }

    private mutating func offset(of index: Int, in document: OpaquePointer, _ text: UnsafePointer<UInt8>) -> Int {
        // If the last position is near, continue from there, otherwise from the mark before `index`.
        if last.index == 0 || index > last.index + Self.distance || index + Self.distance / 2 < last.index {
            while marks.count <= index / Self.distance {
                var cursor = marks.last ?? ferry_json_cursor()
                _ = ferry_json_offset(document, text, max(1, marks.count * Self.distance), &cursor)
                marks.append(cursor)
            }
            last = marks[index / Self.distance]
        }
        return ferry_json_offset(document, text, index, &last)
    }

    @inline(__always)
    private static func isPartOfNumber(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "+"),
            UInt8(ascii: "e"), UInt8(ascii: "E"):
            true
        default: false
        }
    }
}

/// A whole number read from its digits, which may have a fraction or an exponent (RFC 8259, section 6).
///
/// From 2^53 on doubles have gaps, so a double no longer tells which integer was meant.
struct JSONNumberText {
    private let isNegative: Bool
    private var digits: [UInt8] = []
    /// The power of ten that the digits are multiplied by.
    private var scale = 0

    /// Reads a text that the parser has accepted as a number.
    init(_ text: String) {
        var rest = Substring(text).utf8
        isNegative = rest.first == UInt8(ascii: "-")
        if isNegative { rest.removeFirst() }
        var isFraction = false
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "."): isFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                // An exponent that no `Int` holds becomes one that is beyond all limits below, but far from the limits
                // of `Int`.
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

    /// The number; `nil` if it has a fraction or the type cannot hold it.
    func integer<T: FixedWidthInteger>(as type: T.Type = T.self) -> T? {
        guard !digits.isEmpty else { return 0 }
        let leading = digits.prefix { $0 == 0 }.count
        guard scale >= 0, digits.count - leading + scale <= 40 else { return nil }
        var value: T = 0
        for digit in digits.dropFirst(leading) + Array(repeating: 0, count: scale) {
            let tenfold = value.multipliedReportingOverflow(by: 10)
            // Counts down if it is negative: the lowest integer has no positive counterpart.
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
