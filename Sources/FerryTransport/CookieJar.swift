internal import CFerry

/// Owns the C jar: made once, freed once; loops that use it hold a reference of their own.
///
/// `@unchecked Sendable` is correct because every function of the jar may be called on any thread.
final class CookieJar: @unchecked Sendable {
    let raw: OpaquePointer

    init() throws(TransferFailure) {
        var made: OpaquePointer?
        ferry_jar_make(&made)
        guard let made else { throw TransferFailure(.memory) }
        raw = made
    }

    deinit {
        ferry_jar_free(raw)
    }

    var cookies: [TransferCookie] {
        var cookies: [TransferCookie] = []
        withUnsafeMutablePointer(to: &cookies) { _ = ferry_jar_list(raw, UnsafeMutableRawPointer($0), appendCookie) }
        return cookies
    }

    /// Costs the same regardless of the number of cookies; if memory is short, the jar counts as filled.
    var isEmpty: Bool { ferry_jar_filled(raw) == 0 }

    /// Grows whenever a cookie is set.
    var additions: UInt64 { ferry_jar_additions(raw) }

    func set(_ cookie: TransferCookie) {
        guard let line = cookie.line else { return }
        ferry_jar_set(raw, line)
    }

    func removeAll() { ferry_jar_clear(raw) }
}

private func appendCookie(_ list: UnsafeMutableRawPointer?, _ line: UnsafePointer<CChar>) {
    guard let list, let cookie = TransferCookie(line: String(cString: line)) else { return }
    list.assumingMemoryBound(to: [TransferCookie].self).pointee.append(cookie)
}

extension TransferCookie {
    private static let onlyHTTP = "#HttpOnly_"

    /// Parses a line of the jar; CFerry.h describes its fields.
    fileprivate init?(line: String) {
        let parts = line.utf8.split(separator: 9, omittingEmptySubsequences: false).map { String(Substring($0)) }
        guard parts.count == 7 else { return nil }
        var domain = parts[0]
        let isHTTPOnly = domain.hasPrefix(Self.onlyHTTP)
        if isHTTPOnly { domain.removeFirst(Self.onlyHTTP.count) }
        if domain.hasPrefix(".") { domain.removeFirst() }
        self.init(name: parts[5], value: parts[6], domain: domain)
        self.isHTTPOnly = isHTTPOnly
        includesSubdomains = parts[1] == "TRUE"
        path = parts[2]
        isSecure = parts[3] == "TRUE"
        expires = Int64(parts[4]).flatMap { $0 == 0 ? nil : $0 }
    }

    /// The cookie as a line of the jar; `nil` if a value is not allowed in one.
    fileprivate var line: String? {
        // In a line, 0 is the end of the session, and libcurl 8 reads no negative number.
        let expires = expires.map { max($0, 1) } ?? 0
        let texts = [
            (isHTTPOnly ? Self.onlyHTTP : "") + (includesSubdomains ? "." : "") + domain,
            includesSubdomains ? "TRUE" : "FALSE", path, isSecure ? "TRUE" : "FALSE", String(expires), name, value,
        ]
        let isPlain = texts.allSatisfy { $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } }
        // Otherwise it would be several cookies where it is sent, or a comment of the jar.
        let isOne = !(name + value).utf8.contains(0x3B) && !name.utf8.contains(0x3D) && domain.utf8.first != 0x23
        return isPlain && isOne && !name.isEmpty && !domain.isEmpty ? texts.joined(separator: "\t") : nil
    }
}

/// A cookie of the jar (RFC 6265).
package struct TransferCookie: Sendable, Hashable {
    package var name: String
    package var value: String
    /// The domain, without a leading dot.
    package var domain: String
    /// Whether the cookie is also sent to the hosts below the domain.
    package var includesSubdomains = false
    package var path = "/"
    /// Whether the cookie is only sent under TLS.
    package var isSecure = false
    package var isHTTPOnly = false
    /// The expiry in seconds since 1970; `nil` means as long as the jar lives.
    package var expires: Int64?

    package init(name: String, value: String, domain: String) {
        self.name = name
        self.value = value
        self.domain = domain
    }
}
