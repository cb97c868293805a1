import Glibc

/// A text encoding: a charset of the IANA registry, by its name. The set is open.
public struct TextEncoding: Sendable, Hashable, CustomStringConvertible {
    /// The name in lower case, like `iso-8859-1`.
    public let name: String

    /// Creates an encoding from the name of a charset. A charset that Ferry does not implement is looked up in the C
    /// library (`iconv`).
    public init(_ name: String) { self.name = name.lowercased() }

    /// UTF-8.
    public static let utf8 = TextEncoding("utf-8")
    /// UTF-16 with a byte order mark; without one, big-endian (RFC 2781, 4.3).
    public static let utf16 = TextEncoding("utf-16")
    /// ISO-8859-1.
    public static let isoLatin1 = TextEncoding("iso-8859-1")
    /// Windows-1252.
    public static let windows1252 = TextEncoding("windows-1252")
    /// US-ASCII.
    public static let ascii = TextEncoding("us-ascii")

    /// The name.
    public var description: String { name }

    /// The charset of a `Content-Type` (RFC 9110, 8.3.2); `nil` if there is none.
    init?(contentType: String?) {
        guard let contentType, let semicolon = contentType.firstIndex(of: ";") else { return nil }
        for parameter in contentType[semicolon...].split(separator: ";") {
            let parts = parameter.split(separator: "=", maxSplits: 1).map(Self.trimmed)
            guard parts.count == 2, equalNames(parts[0], "charset") else { continue }
            let value = parts[1].hasPrefix("\"") ? String(parts[1].dropFirst().prefix { $0 != "\"" }) : parts[1]
            if value.isEmpty { return nil }
            self.init(value)
            return
        }
        return nil
    }

    private static func trimmed(_ text: Substring) -> String {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        // In bytes: a step back over one character may read all of them.
        var bytes = text.utf8.drop(while: isBlank)
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        return String(Substring(bytes))
    }

    /// `nil` if the encoding is unknown.
    func decode(_ bytes: UnsafeRawBufferPointer) -> String? {
        switch name {
        case "utf-8", "utf8": String(decoding: bytes, as: UTF8.self)
        case "us-ascii", "ascii": Self.scalars(bytes) { $0 < 0x80 ? Unicode.Scalar($0) : "\u{FFFD}" }
        case "iso-8859-1", "latin1", "iso8859-1": Self.scalars(bytes) { Unicode.Scalar($0) }
        case "windows-1252", "cp1252": Self.scalars(bytes) { Self.windows1252($0) }
        case "utf-16": Self.utf16(bytes)
        case "utf-16be": Self.utf16(bytes[...], isLittle: false)
        case "utf-16le": Self.utf16(bytes[...], isLittle: true)
        default: Self.converted(bytes, from: name)
        }
    }

    private static func scalars(_ bytes: UnsafeRawBufferPointer, _ scalar: (UInt8) -> Unicode.Scalar) -> String {
        var text = String.UnicodeScalarView()
        text.append(contentsOf: bytes.lazy.map(scalar))
        return String(text)
    }

    private static func windows1252(_ byte: UInt8) -> Unicode.Scalar {
        guard (0x80..<0xA0).contains(byte) else { return Unicode.Scalar(byte) }
        return Unicode.Scalar(high1252[Int(byte) - 0x80]) ?? "\u{FFFD}"
    }

    /// 0x80 to 0x9F. The five unassigned ones are the control characters of ISO-8859-1, as in browsers.
    private static let high1252: [UInt16] = [
        0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D,
        0x017D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A,
        0x0153, 0x9D, 0x017E, 0x0178,
    ]

    private static func utf16(_ bytes: UnsafeRawBufferPointer) -> String {
        guard bytes.count >= 2 else { return utf16(bytes[...], isLittle: false) }
        switch (bytes[0], bytes[1]) {
        case (0xFF, 0xFE): return utf16(bytes[2...], isLittle: true)
        case (0xFE, 0xFF): return utf16(bytes[2...], isLittle: false)
        default: return utf16(bytes[...], isLittle: false)
        }
    }

    private static func utf16(_ bytes: Slice<UnsafeRawBufferPointer>, isLittle: Bool) -> String {
        var units: [UInt16] = []
        units.reserveCapacity(bytes.count / 2 + 1)
        var rest = bytes
        while let first = rest.popFirst() {
            guard let second = rest.popFirst() else {
                units.append(0xFFFD)
                break
            }
            units.append(isLittle ? UInt16(second) << 8 | UInt16(first) : UInt16(first) << 8 | UInt16(second))
        }
        return String(decoding: units, as: UTF16.self)
    }

    /// Converts with the C library; `nil` if it does not know the name either.
    private static func converted(_ bytes: UnsafeRawBufferPointer, from name: String) -> String? {
        // The server must not add a suffix like `//TRANSLIT`.
        guard name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x2F }) else { return nil }
        let converter = iconv_open("UTF-8", name)
        guard converter != iconv_t(bitPattern: -1) else { return nil }
        defer { iconv_close(converter) }
        var made: [UInt8] = []
        var space = [CChar](repeating: 0, count: 4096)
        var input = UnsafeMutablePointer(mutating: bytes.baseAddress?.assumingMemoryBound(to: CChar.self))
        var left = bytes.count
        // Without `more`, for the end: some decoders hold a letter back until the next, which may be its accent.
        func convert(more: Bool) -> (isDone: Bool, error: Int32) {
            let (result, error, count) = space.withUnsafeMutableBufferPointer { space -> (Int, Int32, Int) in
                var output = space.baseAddress
                var room = space.count
                let result =
                    more
                    ? iconv(converter, &input, &left, &output, &room)
                    : iconv(converter, nil, nil, &output, &room)
                return (result, errno, space.count - room)
            }
            made += space.prefix(count).map { UInt8(bitPattern: $0) }
            return (result != -1, error)
        }
        while left > 0 {
            let (isDone, error) = convert(more: true)
            if isDone || error == E2BIG { continue }
            // An invalid byte, or an incomplete character.
            made += "\u{FFFD}".utf8
            if error == EINVAL || left == 0 { break }
            (input, left) = (input?.advanced(by: 1), left - 1)
        }
        // It also resets the state, so it must not be done earlier.
        _ = convert(more: false)
        return String(decoding: made, as: UTF8.self)
    }
}
