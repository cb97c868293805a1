internal import Ferry

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
            return encoded(Array(value.utf8))
        }
        let name = value[..<sign]
        let rest = String(value[value.index(after: sign)...])
        let content = value[sign] == "=" ? Array(rest.utf8) : try reading(rest)
        return Array((name.isEmpty ? "" : name + "=").utf8) + encoded(content)
    }

    /// A blank is a plus sign.
    private static func encoded(_ bytes: [UInt8]) -> [UInt8] {
        let words = bytes.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        return Array(words.map { PercentEncoding.encoded($0) }.joined(separator: [UInt8(ascii: "+")]))
    }
}
