extension CurlCommandLine {
    /// Several are joined by `&`, those of `--json` by nothing.
    mutating func add(
        data value: String, _ meaning: CurlOption.Meaning, _ reading: (String) throws -> [UInt8]
    ) throws {
        let piece: [UInt8]
        switch meaning {
        case .data:
            piece = try Self.content(value, reading).filter { $0 != 0 && $0 != 10 && $0 != 13 || !value.hasPrefix("@") }
        case .dataURLEncoded: piece = try Self.encoded(value, reading)
        case .dataRaw: piece = Array(value.utf8)
        default: piece = try Self.content(value, reading)
        }
        if meaning == .json {
            contentType = "application/json"
            if !headers.contains(where: { $0.name.lowercased() == "accept" }) {
                headers.append(Field(name: "Accept", value: "application/json"))
            }
            body = (body ?? []) + piece
        } else {
            contentType = contentType ?? "application/x-www-form-urlencoded"
            body = body.map { $0 + [UInt8(ascii: "&")] + piece } ?? piece
        }
    }

    /// The text itself, or the file behind an `@`.
    private static func content(_ value: String, _ reading: (String) throws -> [UInt8]) throws -> [UInt8] {
        guard value.hasPrefix("@") else { return Array(value.utf8) }
        let path = String(value.dropFirst())
        if path == "-" { throw UsageError("standard input as data is not supported") }
        return try reading(path)
    }

    /// `content`, `=content`, `name=content`, `@file` or `name@file`.
    private static func encoded(_ value: String, _ reading: (String) throws -> [UInt8]) throws -> [UInt8] {
        guard let sign = value.firstIndex(where: { $0 == "=" || $0 == "@" }) else {
            return percentEncoded(Array(value.utf8))
        }
        let name = value[..<sign]
        let rest = String(value[value.index(after: sign)...])
        let content = value[sign] == "=" ? Array(rest.utf8) : try reading(rest)
        return Array((name.isEmpty ? "" : name + "=").utf8) + percentEncoded(content)
    }

    /// All but the unreserved characters of RFC 3986, 2.3; a blank is a plus sign.
    private static func percentEncoded(_ bytes: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return bytes.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                [byte]
            case UInt8(ascii: " "): [UInt8(ascii: "+")]
            default: [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
    }
}
