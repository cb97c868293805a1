/// Takes secrets out of texts that people read.
enum Redaction {
    /// A URL without user and password, without the values of its query and without its fragment. Control characters
    /// are escaped, so that a text that was no URL cannot forge a line of a log.
    ///
    /// `isBroken` says that the text could not be parsed: then all that stands before an `@` may be a password.
    static func url(_ text: String, isBroken: Bool = false) -> String {
        let bytes = Array(text.utf8)
        let end = bytes.firstIndex(of: 0x23) ?? bytes.count
        let queryStart = bytes[..<end].firstIndex(of: 0x3F) ?? end
        var hostStart = 0
        if queryStart >= 3 {
            for index in 0..<(queryStart - 2) where bytes[index...].starts(with: [0x3A, 0x2F, 0x2F]) {
                hostStart = index + 3
                break
            }
        }
        let hostEnd =
            isBroken ? end : bytes[hostStart..<queryStart].firstIndex(where: { $0 == 0x2F || $0 == 0x5C }) ?? queryStart
        var made = Array(bytes[..<hostStart])
        var rest = hostStart
        if let at = bytes[hostStart..<hostEnd].lastIndex(of: 0x40) { rest = at + 1 }
        if rest < queryStart { made.append(contentsOf: bytes[rest..<queryStart]) }
        if queryStart < end { made.append(contentsOf: query(bytes[(queryStart + 1)..<end])) }
        var clean: [UInt8] = []
        clean.reserveCapacity(made.count)
        for byte in made { if isControl(byte) { clean.appendEscaped(byte) } else { clean.append(byte) } }
        return String(decoding: clean, as: UTF8.self)
    }

    /// Names stay, values go; a bare word may be a secret itself.
    private static func query(_ query: ArraySlice<UInt8>) -> [UInt8] {
        var made: [UInt8] = [0x3F]
        for (index, item) in query.split(separator: 0x26, omittingEmptySubsequences: false).enumerated() {
            if index > 0 { made.append(0x26) }
            if let sign = item.firstIndex(of: 0x3D) { made.append(contentsOf: item[...sign]) }
            if !item.isEmpty { made.append(contentsOf: "***".utf8) }
        }
        return made
    }
}
