import FerryCache

/// Which of the stored responses of a URL answers a request (RFC 9111, 4.1; RFC 9110, 12.5.5).
enum VaryRules {
    /// More names are taken for `*`: each look-up would have to read all of these fields.
    static let most = 64

    /// The variance of a request that matches no stored response.
    static let unknown = CacheDigest(of: "a variance that is not known")

    /// The names that `Vary` lists, in lower case and each once; `nil` where it holds `*`, which no request matches, or
    /// more names than ``most``.
    static func names(_ headers: Headers) -> [String]? {
        var names: [String] = []
        for value in headers.values(of: "Vary") {
            for name in fieldNames(value) where !names.contains(name) {
                if name == "*" || names.count == most { return nil }
                names.append(name)
            }
        }
        return names
    }

    /// What a stored response varies by. Codings that were undone do not count; one that was not is only for those who
    /// ask for it, whatever the server says.
    static func storedNames(_ response: Headers, isDecoded: Bool) -> [String] {
        var names = (names(response) ?? []).filter { $0 != "accept-encoding" }
        let codings = response["Content-Encoding"].map(fieldNames) ?? []
        if codings.contains(where: { $0 != "identity" }) && !isDecoded { names.append("accept-encoding") }
        return names
    }

    /// A digest of the values that a request has for these names, after they are made the same where they mean the
    /// same. Only the digest is kept: a value may be secret.
    static func variance(of names: [String], _ value: (String) -> String?) -> CacheDigest {
        if names.isEmpty { return .none }
        var bytes: [UInt8] = []
        for name in names {
            bytes.appendCounted(name)
            let value = value(name).map { normalized($0, of: name) }
            bytes.append(value == nil ? 0 : 1)
            bytes.appendCounted(value ?? "")
        }
        return CacheDigest(of: bytes)
    }

    /// A value as it is compared (RFC 9111, 4.1): several lines are one list, and white space around the commas of a
    /// list means nothing. Of languages neither case nor the order of those with the same weight does.
    static func normalized(_ value: String, of name: String) -> String {
        var members: [[UInt8]] = []
        var member: [UInt8] = []
        var isQuoted = false
        for byte in value.utf8 {
            if byte == 0x22 { isQuoted.toggle() }
            if byte == 0x2C && !isQuoted {
                members.append(trimmed(member))
                member = []
            } else {
                member.append(byte)
            }
        }
        members.append(trimmed(member))
        members.removeAll { $0.isEmpty }
        if name == "accept-language" || name == "accept-encoding" || name == "accept-charset" {
            members = members.map { $0.filter { $0 != 0x20 && $0 != 0x09 }.map(lowercased) }
            members.sort { $0.lexicographicallyPrecedes($1) }
        }
        return String(decoding: Array(members.joined(separator: [0x2C])), as: UTF8.self)
    }

    private static func trimmed(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
        return Array(bytes)
    }
}
