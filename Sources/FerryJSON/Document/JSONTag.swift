internal import CFerryJSON

/// The tags of the tape's words.
enum JSONTag {
    static let signed = UInt8(ascii: "l")
    static let unsigned = UInt8(ascii: "u")
    static let double = UInt8(ascii: "d")
    static let string = UInt8(ascii: "\"")
    static let yes = UInt8(ascii: "t")
    static let no = UInt8(ascii: "f")
    static let null = UInt8(ascii: "n")
    static let array = UInt8(ascii: "[")
    static let arrayEnd = UInt8(ascii: "]")
    static let object = UInt8(ascii: "{")
    static let objectEnd = UInt8(ascii: "}")
}

extension ferry_json_tape {
    /// The bytes of the string at `index`; they live as long as the tape.
    @inline(__always)
    func utf8(at index: Int) -> UnsafeBufferPointer<UInt8> {
        var count = 0
        let start = ferry_json_string(self, index, &count)
        return UnsafeBufferPointer(start: start, count: count)
    }

    /// The parser, or a string of Swift's, has vouched for the UTF-8.
    @inline(__always)
    func string(at index: Int) -> String {
        let bytes = utf8(at: index)
        let isASCII = ferry_json_is_ascii(bytes.baseAddress!, bytes.count)
        return String(copying: unsafe UTF8Span(unchecked: bytes.span, isKnownASCII: isASCII))
    }

    /// The number at `index` as an integer, if it is one that the type can hold; `1.0` and `1e2` are integers. From
    /// 2^53 on a double may have been another integer as it was written, and is none.
    @inline(__always)
    func integer<T: FixedWidthInteger>(at index: Int, as type: T.Type = T.self) -> T? {
        switch ferry_json_tag(self, index) {
        case JSONTag.signed: T(exactly: Int64(bitPattern: words[index + 1]))
        case JSONTag.unsigned: T(exactly: words[index + 1])
        case JSONTag.double:
            ferry_json_double(self, index).magnitude < 0x1p53 ? T(exactly: ferry_json_double(self, index)) : nil
        default: nil
        }
    }

    /// The number at `index`, rounded to the nearest double where it is an integer beyond 2^53.
    @inline(__always)
    func number(at index: Int) -> Double? {
        switch ferry_json_tag(self, index) {
        case JSONTag.signed: Double(Int64(bitPattern: words[index + 1]))
        case JSONTag.unsigned: Double(words[index + 1])
        case JSONTag.double: ferry_json_double(self, index)
        default: nil
        }
    }

    /// The value of the last member with this key, or 0.
    @inline(__always)
    func find(_ key: String, in object: Int) -> Int {
        var key = key
        return key.withUTF8 { bytes in
            // An empty string may come without an address.
            ferry_json_find(self, object, bytes.baseAddress ?? strings, bytes.count)
        }
    }
}
