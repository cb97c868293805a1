/// Reads `WWW-Authenticate` and `Proxy-Authenticate` (RFC 9110, 11.6.1 and 11.7.1). A comma parts challenges, and the
/// parameters of one as well: which it is, is told by what follows it.
struct ChallengeParser {
    /// Challenges that are read at most; nobody means more.
    static let most = 32

    private let bytes: [UInt8]
    private var index = 0

    private init(_ field: String) { bytes = Array(field.utf8) }

    /// The challenges of one field. What cannot be read ends the reading; what stood before it counts.
    static func offers(in field: String) -> [CredentialChallenge.Offer] {
        var parser = ChallengeParser(field)
        return parser.read()
    }

    private mutating func read() -> [CredentialChallenge.Offer] {
        var offers: [CredentialChallenge.Offer] = []
        skipCommas()
        while !isAtEnd, offers.count < Self.most {
            guard let scheme = token(), isAtEnd || at(0x20) || at(0x09) || at(0x2C) else { break }
            skipBlanks()
            var token68: String?
            var parameters: [String: String] = [:]
            if let found = self.token68() {
                token68 = found
                skipBlanks()
            } else {
                guard readParameters(into: &parameters) else { break }
            }
            offers.append(CredentialChallenge.Offer(scheme: scheme, token: token68, parameters: parameters))
            guard isAtEnd || at(0x2C) else { break }
            skipCommas()
        }
        return offers
    }

    /// Stops at the end, or where the next challenge begins. `false`: it makes no sense.
    private mutating func readParameters(into parameters: inout [String: String]) -> Bool {
        var isFirst = true
        while !isAtEnd {
            let start = index
            if !isFirst || at(0x2C) {
                guard at(0x2C) else { return false }
                skipCommas()
                if isAtEnd { return true }
            }
            let name = token()
            skipBlanks()
            guard let name, at(0x3D) else {
                // No parameter: the next scheme, unless it stands where no comma was.
                index = start
                return !isFirst || at(0x2C)
            }
            index += 1
            skipBlanks()
            guard let value = at(0x22) ? quotedString() : token() else { return false }
            skipBlanks()
            let key = name.lowercased()
            if parameters[key] == nil { parameters[key] = value }
            isFirst = false
        }
        return true
    }

    private var isAtEnd: Bool { index == bytes.count }

    private func at(_ byte: UInt8) -> Bool { index < bytes.count && bytes[index] == byte }

    private mutating func skipBlanks() { while at(0x20) || at(0x09) { index += 1 } }

    private mutating func skipCommas() { while at(0x20) || at(0x09) || at(0x2C) { index += 1 } }

    private mutating func token() -> String? {
        let start = index
        while index < bytes.count, ByteSet.token.contains(bytes[index]) { index += 1 }
        return index == start ? nil : String(decoding: bytes[start..<index], as: UTF8.self)
    }

    /// Only when it is all that stands behind the scheme; `realm=` alone could be either, and is taken for this.
    private mutating func token68() -> String? {
        var end = index
        while end < bytes.count, Self.token68Bytes.contains(bytes[end]) { end += 1 }
        guard end > index else { return nil }
        while end < bytes.count, bytes[end] == 0x3D { end += 1 }
        var after = end
        while after < bytes.count, bytes[after] == 0x20 || bytes[after] == 0x09 { after += 1 }
        guard after == bytes.count || bytes[after] == 0x2C else { return nil }
        defer { index = end }
        return String(decoding: bytes[index..<end], as: UTF8.self)
    }

    private mutating func quotedString() -> String? {
        var value: [UInt8] = []
        index += 1
        while index < bytes.count {
            var byte = bytes[index]
            index += 1
            if byte == 0x22 { return String(decoding: value, as: UTF8.self) }
            if byte == 0x5C {
                guard index < bytes.count else { return nil }
                byte = bytes[index]
                index += 1
            }
            if isControl(byte) && byte != 0x09 { return nil }
            value.append(byte)
        }
        return nil
    }

    /// RFC 9110, 11.2.
    private static let token68Bytes = ByteSet(
        "-._~+/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
