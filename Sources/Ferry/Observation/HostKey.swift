/// Scheme, host and port of a URL in one spelling, with nothing secret in it: what results and figures are kept by.
///
/// It names what the engine has joined already, and judges nothing: a text that is no URL has no key.
struct HostKey: Sendable, Hashable {
    /// `http://h`, `https://h:8443`
    let text: String

    private let schemeLength: Int

    /// Lower case, without user and password, and without a port that is the scheme's own.
    init?(url: String) {
        var url = url
        let parts: (scheme: String, authority: String)? = url.withUTF8 { bytes in
            let length = Self.prefixLength(UnsafeRawBufferPointer(bytes))
            guard let colon = bytes[..<length].firstIndex(of: 0x3A), colon + 3 < length else { return nil }
            let scheme = Self.lowercasedText(bytes[..<colon])
            var host = bytes[(colon + 3)..<length]
            if let at = host.lastIndex(of: 0x40) { host = host[(at + 1)...] }
            let ownPort: [UInt8] = scheme == "https" ? [0x3A, 0x34, 0x34, 0x33] : [0x3A, 0x38, 0x30]
            if host.count >= ownPort.count, host.suffix(ownPort.count).elementsEqual(ownPort) {
                host = host.dropLast(ownPort.count)
            } else if host.last == 0x3A {
                host = host.dropLast()
            }
            return host.isEmpty || host.first == 0x3A ? nil : (scheme, Self.lowercasedText(host))
        }
        guard let parts else { return nil }
        text = "\(parts.scheme)://\(parts.authority)"
        schemeLength = parts.scheme.utf8.count + 3
    }

    /// `h`, `h:8443`
    var authority: String { String(decoding: text.utf8.dropFirst(schemeLength), as: UTF8.self) }

    /// Bytes up to the path: scheme, `://` and authority; 0 when it does not begin so.
    static func prefixLength(_ url: UnsafeRawBufferPointer) -> Int {
        var index = 0
        while index < url.count, url[index] != 0x3A {
            if index == 8 { return 0 }
            index += 1
        }
        guard index + 3 < url.count, url[index + 1] == 0x2F, url[index + 2] == 0x2F else { return 0 }
        index += 3
        // Eight bytes at a time, as every result of every run comes by here.
        while index + 8 <= url.count {
            let ends = endMarks(UInt64(littleEndian: url.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            if ends != 0 { return index + ends.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < url.count, endMarks(UInt64(url[index])) & 0x80 == 0 { index += 1 }
        return index
    }

    /// The highest bit of each byte that ends an authority: `/`, `?`, `#` and, as some take it for a slash, `\`. Right
    /// up to the first of them.
    @inline(__always)
    private static func endMarks(_ word: UInt64) -> UInt64 {
        zeroMarks(word ^ 0x2F2F_2F2F_2F2F_2F2F) | zeroMarks(word ^ 0x3F3F_3F3F_3F3F_3F3F)
            | zeroMarks(word ^ 0x2323_2323_2323_2323) | zeroMarks(word ^ 0x5C5C_5C5C_5C5C_5C5C)
    }

    @inline(__always)
    private static func zeroMarks(_ word: UInt64) -> UInt64 {
        (word &- 0x0101_0101_0101_0101) & ~word & 0x8080_8080_8080_8080
    }

    /// Control characters, which no joined URL has, are escaped, so that a key cannot forge a line.
    private static func lowercasedText(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
        var made: [UInt8] = []
        made.reserveCapacity(bytes.count)
        for byte in bytes { if isControl(byte) { made.appendEscaped(byte) } else { made.append(lowercased(byte)) } }
        return String(decoding: made, as: UTF8.self)
    }
}
