internal import CFerry

/// A URL as parsed by libcurl: the host that is compared, allowed or forbidden is the host that libcurl connects to.
package struct URLParts: Sendable, Hashable {
    /// The whole URL, escaped, without user, password and default port; a fragment is kept.
    package let text: String
    /// `true` for `https`, `false` for `http`.
    package let isSecure: Bool
    /// Whether it is the URL of a Unix socket (`http+unix`, `https+unix`); then ``host`` is its escaped path.
    package let isLocal: Bool
    /// The host, in lower case and punycode; an address is normalised, IPv6 in brackets.
    package let host: String
    /// The port; the scheme's default if the URL has none.
    package let port: UInt16
    /// Whether the parsed text had a user or a password. For checks.
    package let hasUserinfo: Bool

    /// Parses an absolute URL. Throws `invalidURL`, or `unsupportedScheme`, also if there is no scheme.
    package init(_ url: String) throws(TransferFailure) {
        var made: UnsafeMutablePointer<ferry_url>?
        let code = url.withCString { ferry_url_parts($0, url.utf8.count, &made) }
        try self.init(taking: made, code)
    }

    /// Resolves a reference against this URL, like a `Location` in a response (RFC 9110, 10.2.2: the fragment is
    /// inherited). ``hasUserinfo`` of the result is about the reference. The reference is used as received: bytes that
    /// are not UTF-8 are escaped one by one.
    package func resolving(_ reference: [UInt8]) throws(TransferFailure) -> URLParts {
        var made: UnsafeMutablePointer<ferry_url>?
        // One byte more, because an empty array has no address.
        let code = text.withCString { base in
            (reference + [0]).withUnsafeBytes { bytes in
                guard let start = bytes.bindMemory(to: CChar.self).baseAddress else { return Int32(FERRY_E_INTERNAL) }
                return ferry_url_resolve(base, text.utf8.count, start, reference.count, &made)
            }
        }
        return try URLParts(taking: made, code)
    }

    /// Whether scheme, host and port are equal: the scope of a credential (RFC 6454, 4).
    package func isSameOrigin(as other: URLParts) -> Bool {
        isSecure == other.isSecure && isLocal == other.isLocal && port == other.port && host == other.host
    }

    /// `https` or `http`, with `+unix` for sockets.
    package var scheme: String { (isSecure ? "https" : "http") + (isLocal ? "+unix" : "") }

    private init(taking made: UnsafeMutablePointer<ferry_url>?, _ code: Int32) throws(TransferFailure) {
        guard let made else { throw TransferFailure(.init(rawValue: code) ?? .internalError) }
        defer { ferry_url_free(made) }
        let found = made.pointee
        text = Self.string(found.text, found.text_length)
        isSecure = found.is_secure != 0
        isLocal = found.is_local != 0
        host = Self.string(found.host, found.host_length)
        port = found.port
        hasUserinfo = found.has_userinfo != 0
    }

    private static func string(_ start: UnsafePointer<CChar>, _ length: Int) -> String {
        String(decoding: UnsafeRawBufferPointer(start: start, count: length), as: UTF8.self)
    }
}
