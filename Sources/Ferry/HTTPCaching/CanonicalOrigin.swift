import FerryTransport

/// The origin of a URL in the one spelling under which responses are stored: scheme and host in lower case, an
/// international name in punycode, no default port (RFC 9110, 4.2.3). References in responses are resolved to that
/// spelling, and must find what was stored under the URL of a configuration.
enum CanonicalOrigin {
    private enum Spelling {
        case canonical
        /// Only case or a default port are different.
        case close
        /// A parser has to look: a name in other letters, an address in brackets, a port with zeros.
        case unknown
    }

    /// The URL with its origin in that spelling. The rest is unchanged.
    static func apply(to url: String) -> String {
        var url = url
        let (spelling, length) = url.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            let length = HostKey.prefixLength(bytes)
            return (Self.spelling(of: bytes[..<length]), length)
        }
        let origin: String?
        switch spelling {
        case .canonical: return url
        case .close: origin = HostKey(url: url)?.text
        case .unknown: origin = (try? URLParts(url)).flatMap { HostKey(url: $0.text)?.text }
        }
        guard let origin else { return url }
        return String(decoding: Array(origin.utf8) + url.utf8.dropFirst(length), as: UTF8.self)
    }

    private static func spelling(of origin: Slice<UnsafeRawBufferPointer>) -> Spelling {
        guard let colon = origin.firstIndex(of: 0x3A), colon + 3 < origin.endIndex else { return .canonical }
        var hasCapitals = false
        for byte in origin[..<colon] where byte != lowercased(byte) { hasCapitals = true }
        // The path of a socket has one spelling already. Only `https` has five letters.
        if colon > 5 { return hasCapitals ? .close : .canonical }
        let authority = origin[(colon + 3)...]
        let end = authority.firstIndex(of: 0x3A) ?? authority.endIndex
        for byte in authority[..<end] {
            switch byte {
            case 0x61...0x7A, 0x30...0x39, 0x2D, 0x2E, 0x5F: break
            case 0x41...0x5A: hasCapitals = true
            default: return .unknown
            }
        }
        if end < authority.endIndex {
            let port = authority[(end + 1)...]
            if port.first == 0x30 || port.contains(where: { $0 < 0x30 || $0 > 0x39 }) { return .unknown }
            if port.isEmpty || (colon == 5 ? "443" : "80").utf8.elementsEqual(port) { return .close }
        }
        return hasCapitals ? .close : .canonical
    }
}
