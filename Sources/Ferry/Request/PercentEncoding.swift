/// Bytes as `%XX` in a text (RFC 3986, 2.1).
package enum PercentEncoding {
    /// All but the unreserved characters (RFC 3986, 2.3) are escaped.
    package static func encoded(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var encoded: [UInt8] = []
        for byte in bytes {
            if ByteSet.unreserved.contains(byte) { encoded.append(byte) } else { encoded.appendEscaped(byte) }
        }
        return encoded
    }

    /// Likewise, of a text as UTF-8.
    package static func encoded(_ text: String) -> String { String(decoding: encoded(text.utf8), as: UTF8.self) }

    /// What is no whole escape stands for itself.
    static func decoded(_ text: some Sequence<UInt8>) -> [UInt8] {
        var rest = Array(text)[...]
        var decoded: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == 0x25, let escaped = escaped(rest) {
                decoded.append(escaped)
                rest = rest.dropFirst(2)
            } else {
                decoded.append(byte)
            }
        }
        return decoded
    }

    /// `nil` where an escape is broken.
    static func strictlyDecoded(_ text: some Sequence<UInt8>) -> [UInt8]? {
        let bytes = Array(text)
        for index in bytes.indices where bytes[index] == 0x25 && escaped(bytes[(index + 1)...]) == nil { return nil }
        return decoded(bytes)
    }

    /// The byte that two digits stand for.
    private static func escaped(_ rest: ArraySlice<UInt8>) -> UInt8? {
        guard rest.count >= 2, let high = hexValue(rest[rest.startIndex]), let low = hexValue(rest[rest.startIndex + 1])
        else { return nil }
        return high << 4 | low
    }
}
