import FoundationEssentials

/// Removes secrets from texts for people.
enum Redaction {
    /// A URL without user and password, without query values and without its fragment. Values of secret parameters in
    /// its path (`;jsessionid=…`) are replaced. Control characters are escaped, so that an invalid URL cannot forge a
    /// log line.
    ///
    /// `isBroken` means that the text could not be parsed: then everything before an `@` may be a password, also behind
    /// a `#`, a `?` or a `://`.
    static func url(_ text: String, isBroken: Bool = false) -> String {
        if !isBroken, isPlain(text) { return text }
        var rest = Array(text.utf8)[...]
        var made: [UInt8] = []
        if isBroken, let at = rest.lastIndex(of: 0x40) {
            made.append(contentsOf: beginning(of: rest))
            rest = rest[(at + 1)...]
        }
        let end = rest.firstIndex(of: 0x23) ?? rest.endIndex
        // What is left of a broken URL may begin within its query.
        let queryStart = rest[..<end].firstIndex { $0 == 0x3F || isBroken && $0 == 0x26 } ?? end
        if !isBroken {
            let colon = rest[..<queryStart].indices.first { rest[$0..<queryStart].starts(with: [0x3A, 0x2F, 0x2F]) }
            let hostStart = colon.map { $0 + 3 } ?? rest.startIndex
            made.append(contentsOf: rest[..<hostStart])
            rest = rest[hostStart...]
            let hostEnd = rest[..<queryStart].firstIndex(where: { $0 == 0x2F || $0 == 0x5C }) ?? queryStart
            if let at = rest[..<hostEnd].lastIndex(of: 0x40) { rest = rest[(at + 1)...] }
        }
        if rest.startIndex < queryStart { made.append(contentsOf: path(rest[..<queryStart])) }
        if queryStart < end { made.append(contentsOf: query(rest[(queryStart + 1)..<end])) }
        var clean: [UInt8] = []
        clean.reserveCapacity(made.count)
        for byte in made { if isControl(byte) { clean.appendEscaped(byte) } else { clean.append(byte) } }
        return String(decoding: clean, as: UTF8.self)
    }

    /// Whether a URL stays as it is, like most: it has no byte that begins or ends a secret, or that is escaped. Every
    /// run that is logged or exported shows its URL.
    private static func isPlain(_ text: String) -> Bool {
        let result = text.utf8.withContiguousStorageIfAvailable { text -> Bool in
            let text = UnsafeRawBufferPointer(text)
            if text.count < 8 { return false }
            var index = 0
            while index + 8 <= text.count {
                if !isPlain(text.loadUnaligned(fromByteOffset: index, as: UInt64.self)) { return false }
                index += 8
            }
            // The rest is read together with bytes that were already read.
            return isPlain(text.loadUnaligned(fromByteOffset: text.count - 8, as: UInt64.self))
        }
        return result ?? false
    }

    /// None of these eight bytes is a control character, beyond ASCII, or one of `@?#;\`.
    @inline(__always)
    private static func isPlain(_ word: UInt64) -> Bool {
        let controls = (word &- 0x2020_2020_2020_2020) & ~word
        let unprintable = (controls | word) & 0x8080_8080_8080_8080 | HostKey.zeroMarks(word ^ 0x7F7F_7F7F_7F7F_7F7F)
        let users = HostKey.zeroMarks(word ^ 0x4040_4040_4040_4040) | HostKey.zeroMarks(word ^ 0x5C5C_5C5C_5C5C_5C5C)
        let rests = HostKey.zeroMarks(word ^ 0x3F3F_3F3F_3F3F_3F3F) | HostKey.zeroMarks(word ^ 0x2323_2323_2323_2323)
        return unprintable | users | rests | HostKey.zeroMarks(word ^ 0x3B3B_3B3B_3B3B_3B3B) == 0
    }

    /// What is shown of the text before the last `@`: a scheme that Ferry knows, also behind the first characters of
    /// `Link` and `Refresh`. Any other text before a `://` may be a part of the password.
    private static func beginning(of bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard let colon = bytes.firstIndex(of: 0x3A), bytes[colon...].starts(with: [0x3A, 0x2F, 0x2F]) else {
            return []
        }
        let text = String(decoding: bytes[..<colon].map(lowercased), as: UTF8.self)
        guard let scheme = ["socks5h", "socks5", "https", "http"].first(where: { text.hasSuffix($0) }) else {
            return []
        }
        let before = text.dropLast(scheme.count)
        let isDelay = before.hasSuffix("url=") && before.dropLast(4).allSatisfy { "0123456789.,; ".contains($0) }
        return before.isEmpty || before == "<" || isDelay ? bytes[...(colon + 2)] : []
    }

    /// Parameters in a path (RFC 3986, 3.3) are secret by their name.
    private static func path(_ path: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        if !path.contains(0x3B) { return path }
        var made: [UInt8] = []
        for (index, segment) in path.split(separator: 0x2F, omittingEmptySubsequences: false).enumerated() {
            if index > 0 { made.append(0x2F) }
            for (index, part) in segment.split(separator: 0x3B, omittingEmptySubsequences: false).enumerated() {
                if index > 0 { made.append(0x3B) }
                let sign = index > 0 ? part.firstIndex(of: 0x3D) : nil
                guard let sign, isSensitive(String(decoding: part[..<sign], as: UTF8.self)) else {
                    made.append(contentsOf: part)
                    continue
                }
                made.append(contentsOf: part[...sign])
                made.append(contentsOf: mark.utf8)
            }
        }
        return made[...]
    }

    /// Names are kept, values are removed. A word without a value may be a secret itself.
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

extension Redaction {
    /// The replacement for a secret.
    static let mark = "***"

    /// The fields in order, with the values of secret ones replaced.
    static func headers(_ headers: Headers, sensitive: [String] = []) -> Headers {
        Headers(
            headers.map { field in
                .init(name: field.name, value: header(field.name, field.value, sensitive: sensitive))
            })
    }

    /// A value as it may be shown. Fields like `Location` contain a URL, of which only the secrets are removed.
    static func header(_ name: String, _ value: String, sensitive: [String] = []) -> String {
        if isSensitive(name, declared: sensitive) { return mark }
        // By its bytes: a slash with a combining mark is another character.
        let hasNoScheme = value.utf8.starts(with: "//".utf8)
        if locations.contains(where: { equalNames($0, name) }) { return url(value, isBroken: hasNoScheme) }
        // These contain more than a URL, perhaps several URLs: everything up to the last `@` is removed.
        if listsOfLocations.contains(where: { equalNames($0, name) }) { return url(value, isBroken: true) }
        return isLocation(value) ? url(value, isBroken: hasNoScheme) : value
    }

    /// Whether the value of any other field is a URL of any scheme, or one without a scheme that has a query or a user
    /// (`X-Original-URL`, `X-Forwarded-Uri`).
    private static func isLocation(_ value: String) -> Bool {
        let bytes = value.utf8
        let scheme = bytes.prefix { $0 == UInt8(ascii: ":") || ByteSet.token.contains($0) }
        if scheme.last == UInt8(ascii: ":") { return bytes.dropFirst(scheme.count).starts(with: "//".utf8) }
        let user: UInt8? = bytes.starts(with: "//".utf8) ? UInt8(ascii: "@") : nil
        return bytes.first == UInt8(ascii: "/") && bytes.contains { $0 == UInt8(ascii: "?") || $0 == user }
    }

    /// Whether the values of fields with this name are secret: by the HTTP standards, because they were declared, or
    /// because of their name. It is better to hide one value too many.
    static func isSensitive(_ name: String, declared: [String] = []) -> Bool {
        if declared.contains(where: { equalNames($0, name) }) { return true }
        let name = String(decoding: name.utf8.map(lowercased), as: UTF8.self)
        if parts.contains(where: { name.contains($0) }) { return true }
        return name.split(whereSeparator: { $0 == "-" || $0 == "_" || $0 == "." }).contains {
            words.contains(String($0))
        }
    }

    private static let locations = ["Location", "Content-Location", "Referer", "Origin"]
    private static let listsOfLocations = ["Link", "Refresh"]

    /// Part of names like `Proxy-Authorization`, `Set-Cookie`, `X-Api-Key` and `X-Auth-Token`.
    private static let parts = [
        "auth", "cookie", "token", "secret", "key", "passw", "passphrase", "session", "credential", "signature",
        "proxy-", "assertion", "csrf", "xsrf", "bearer", "saml",
    ]
    /// Too short to look for them within other words.
    private static let words: Set<String> = ["sid", "jwt", "otp", "pin", "pwd", "pass", "sig", "cert", "nonce"]
}

/// Which header fields are secret.
enum SecretHeaders {
    /// RFC 9110, 11.6.2 and 11.7.2; RFC 6265, 4.
    private static func isAlways(_ name: String) -> Bool {
        // Most names have another length.
        switch name.utf8.count {
        case 6: equalNames("Cookie", name)
        case 13: equalNames("Authorization", name)
        case 19: equalNames("Proxy-Authorization", name)
        default: false
        }
    }

    /// Whether the field with this name must not be sent to other origins. `declared` are names that the application
    /// declares.
    static func contains(_ name: String, declared: [String]) -> Bool {
        isAlways(name) || declared.contains { equalNames($0, name) }
    }

    /// Whether two requests that differ in this field have different responses in the cache: the field says who asks,
    /// or which host is meant (RFC 9110, 7.1 and 7.2).
    static func distinguishes(_ name: String, declared: [String]) -> Bool {
        contains(name, declared: declared) || equalNames("Host", name)
    }
}
