internal import CFerry

/// A URL as libcurl's parser reads it, which is the one that connects: what is compared, allowed or forbidden is the
/// host that will be spoken to.
package struct URLParts: Sendable, Hashable {
    /// The whole, escaped, without user and password and without a default port; a fragment stays.
    package let text: String
    /// `https`, or else `http`.
    package let isSecure: Bool
    /// The URL is one of a Unix socket (`http+unix`, `https+unix`), and ``host`` is its escaped path.
    package let isLocal: Bool
    /// In lower case and punycode; an address is spelled out, one of IPv6 stands in its brackets.
    package let host: String
    /// The scheme's own where none is written.
    package let port: UInt16
    /// User or password stood in what was parsed. For tests, those of the joiner above all.
    package let hasUserinfo: Bool

    /// Takes an absolute URL apart. Throws `invalidURL`, or `unsupportedScheme`, also without a scheme.
    package init(_ url: String) throws(TransferFailure) {
        var made: UnsafeMutablePointer<ferry_url>?
        let code = url.withCString { ferry_url_parts($0, url.utf8.count, &made) }
        try self.init(taking: made, code)
    }

    /// What a reference means in a document of this URL, as a `Location` does in its answer (RFC 9110, 10.2.2: the
    /// fragment is inherited). ``hasUserinfo`` of what comes back speaks of the reference. It is taken as it came: what
    /// is not UTF-8 is escaped byte by byte.
    package func resolving(_ reference: [UInt8]) throws(TransferFailure) -> URLParts {
        var made: UnsafeMutablePointer<ferry_url>?
        // One byte more: an empty array has no address.
        let code = text.withCString { base in
            (reference + [0]).withUnsafeBytes { bytes in
                guard let start = bytes.bindMemory(to: CChar.self).baseAddress else { return Int32(FERRY_E_INTERNAL) }
                return ferry_url_resolve(base, text.utf8.count, start, reference.count, &made)
            }
        }
        return try URLParts(taking: made, code)
    }

    /// Scheme, host and port: what a credential belongs to (RFC 6454, 4).
    package func isSameOrigin(as other: URLParts) -> Bool {
        isSecure == other.isSecure && isLocal == other.isLocal && port == other.port && host == other.host
    }

    /// `https` or `http`, and with `+unix` those of sockets.
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
