/// Why a text is not a valid URL of a request.
enum URLFault: Error, Equatable {
    case invalid
    case unsupportedScheme
    /// The CDN is to be used, but no CDN URL is configured.
    case noCDN
}

/// A URL ready for a request, and the credentials that it contained.
struct JoinedURL: Equatable {
    var url: String
    var credentials: Authorization?
    /// The URL is neither below the base URL nor below the CDN URL, so it must not receive secrets of the
    /// configuration.
    var isForeign = false
    /// Whether the spelling of the origin is known to be that of ``CanonicalOrigin``.
    var isCanonical = false
}

/// Makes one URL from a base URL and a path (RFC 3986). It has no state.
enum URLJoiner {
    /// Joins the path, or returns it unchanged if it is an absolute URL.
    static func join(_ path: String, to base: BaseURL?) throws(URLFault) -> JoinedURL {
        var path = path
        // The usual case: a path below the base URL with nothing to change.
        if let base, base.query.isEmpty, path.withUTF8({ $0.first == 0x2F && isPlain($0) }) {
            return base.joined(base.prefix + path)
        }
        let outcome = path.withUTF8 { bytes -> Result<JoinedURL?, URLFault> in
            if let scheme = schemeLength(bytes) {
                return Result { () throws(URLFault) in try absolute(bytes, scheme: scheme) }
            }
            if bytes.contains(where: isControl) { return .failure(.invalid) }
            guard let base else { return .failure(faultWithoutBase(bytes)) }
            // Nothing to escape or remove: the two texts are joined below.
            if base.query.isEmpty, isPlain(bytes) { return .success(nil) }
            return .success(base.joined(relative(bytes, to: base)))
        }
        switch outcome {
        case .failure(let fault): throw fault
        case .success(let joined?): return joined
        case .success(nil): break
        }
        guard let base else { throw .invalid }
        if path.isEmpty { return base.joined(base.whole) }
        let first = path.utf8.first
        if first == 0x3F { return base.joined(base.whole + path) }
        let url = first == 0x2F ? base.prefix + path : base.prefix + "/" + path
        return base.joined(url)
    }

    /// Appends `a=b&c` to the query, before a fragment, with `?` or `&` as needed.
    static func append(query: [UInt8], to url: String) -> String {
        if query.isEmpty { return url }
        let bytes = url.utf8
        let end = bytes.firstIndex(of: 0x23) ?? bytes.endIndex
        let head = bytes[..<end]
        var made = String(head) ?? ""
        if let mark = head.firstIndex(of: 0x3F) {
            if bytes.index(after: mark) != end, head.last != 0x26 { made += "&" }
        } else {
            made += "?"
        }
        made += String(decoding: query, as: UTF8.self)
        made += String(bytes[end...]) ?? ""
        return made
    }

    /// The length of the scheme if the text has one and a host may follow.
    static func schemeLength(_ bytes: UnsafeBufferPointer<UInt8>) -> Int? {
        var index = 0
        while index < bytes.count, isSchemeByte(bytes[index], first: index == 0) { index += 1 }
        guard index > 0, index + 2 < bytes.count else { return nil }
        return bytes[index] == 0x3A && bytes[index + 1] == 0x2F && bytes[index + 2] == 0x2F ? index : nil
    }

    private static func isSchemeByte(_ byte: UInt8, first: Bool) -> Bool {
        switch lowercased(byte) {
        case 0x61...0x7A: true
        case 0x30...0x39, 0x2B, 0x2D, 0x2E: !first
        default: false
        }
    }

    private static func faultWithoutBase(_ bytes: UnsafeBufferPointer<UInt8>) -> URLFault {
        let text = String(decoding: bytes, as: UTF8.self).lowercased()
        if text.isEmpty || text.hasPrefix("http:") || text.hasPrefix("https:") { return .invalid }
        return .unsupportedScheme
    }

    /// Whether a relative path needs neither escaping nor the removal of dot segments.
    private static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var previous: UInt8 = 0x2F
        for (index, byte) in bytes.enumerated() {
            if byte == 0x3F { return bytes[(index + 1)...].allSatisfy(ByteSet.query.contains) }
            if !ByteSet.path.contains(byte) || (byte == 0x2E && previous == 0x2F) { return false }
            previous = byte
        }
        return true
    }

    private static func relative(_ bytes: UnsafeBufferPointer<UInt8>, to base: BaseURL) -> String {
        let parts = Parts(bytes[...])
        var path: [UInt8] = []
        path.appendEscaping(parts.path, ByteSet.path)
        var made = Array(base.prefix.utf8)
        if path.isEmpty { made = Array(base.whole.utf8) } else { made.append(contentsOf: withoutDots(path)) }
        var query = Array(base.query.utf8)
        if let own = parts.query {
            if !query.isEmpty { query.append(0x26) }
            query.appendEscaping(own, ByteSet.query)
        }
        if !query.isEmpty || parts.query != nil {
            made.append(0x3F)
            made.append(contentsOf: query)
        }
        if let fragment = parts.fragment {
            made.append(0x23)
            made.appendEscaping(fragment, ByteSet.query)
        }
        return String(decoding: made, as: UTF8.self)
    }

    /// Removes `.` and `..`, also escaped ones. The result never climbs above the first slash (RFC 3986, 5.2.4).
    private static func withoutDots(_ path: [UInt8]) -> [UInt8] {
        var kept: [ArraySlice<UInt8>] = []
        var endsInDirectory = false
        let body = path.first == 0x2F ? path[1...] : path[...]
        for segment in body.split(separator: 0x2F, omittingEmptySubsequences: false) {
            let dots = dotCount(segment)
            endsInDirectory = dots > 0
            if dots == 2 { _ = kept.popLast() } else if dots == 0 { kept.append(segment) }
        }
        if endsInDirectory { kept.append([]) }
        var made: [UInt8] = []
        made.reserveCapacity(path.count + 1)
        for segment in kept {
            made.append(0x2F)
            made.append(contentsOf: segment)
        }
        return made.isEmpty ? [0x2F] : made
    }

    /// 1 for `.`, 2 for `..`, 0 for anything else.
    private static func dotCount(_ segment: ArraySlice<UInt8>) -> Int {
        guard !segment.isEmpty, segment.count <= 6 else { return 0 }
        var rest = segment
        var dots = 0
        while let byte = rest.first {
            if byte == 0x2E {
                rest = rest.dropFirst()
            } else if byte == 0x25, rest.count >= 3, rest[rest.startIndex + 1] == 0x32,
                lowercased(rest[rest.startIndex + 2]) == 0x65
            {
                rest = rest.dropFirst(3)
            } else {
                return 0
            }
            dots += 1
        }
        return dots <= 2 ? dots : 0
    }

    /// Path, query and fragment of the rest of a URL.
    struct Parts {
        let path: Slice<UnsafeBufferPointer<UInt8>>
        let query: Slice<UnsafeBufferPointer<UInt8>>?
        let fragment: Slice<UnsafeBufferPointer<UInt8>>?

        init(_ rest: Slice<UnsafeBufferPointer<UInt8>>) {
            let mark = rest.firstIndex(of: 0x23)
            let head = rest[..<(mark ?? rest.endIndex)]
            fragment = mark.map { rest[($0 + 1)...] }
            let question = head.firstIndex(of: 0x3F)
            path = head[..<(question ?? head.endIndex)]
            query = question.map { head[($0 + 1)...] }
        }
    }
}

extension [UInt8] {
    /// Appends the bytes in `allowed` and existing escapes unchanged, and escapes the rest.
    mutating func appendEscaping(_ bytes: Slice<UnsafeBufferPointer<UInt8>>, _ allowed: ByteSet) {
        for index in bytes.indices {
            let byte = bytes[index]
            let isEscape =
                byte == 0x25 && index + 2 < bytes.endIndex && hexValue(bytes[index + 1]) != nil
                && hexValue(bytes[index + 2]) != nil
            if isEscape || allowed.contains(byte) { append(byte) } else { appendEscaped(byte) }
        }
    }
}

extension URLJoiner {
    /// Checks an absolute URL, takes out user and password, and leaves the rest unchanged as far as possible.
    static func absolute(_ bytes: UnsafeBufferPointer<UInt8>, scheme: Int) throws(URLFault) -> JoinedURL {
        let found = try Absolute(bytes, scheme: scheme)
        if found.isPlain { return JoinedURL(url: String(decoding: bytes, as: UTF8.self)) }
        var made = found.origin
        made.append(contentsOf: found.path.isEmpty ? [0x2F] : found.path)
        if let query = found.query {
            made.append(0x3F)
            made.append(contentsOf: query)
        }
        if let fragment = found.fragment {
            made.append(0x23)
            made.append(contentsOf: fragment)
        }
        return JoinedURL(url: String(decoding: made, as: UTF8.self), credentials: found.credentials)
    }

    /// The parts of an absolute URL, escaped where necessary.
    struct Absolute {
        /// `http://host:port`
        private(set) var origin: [UInt8] = []
        private(set) var path: [UInt8] = []
        private(set) var query: [UInt8]?
        private(set) var fragment: [UInt8]?
        private(set) var credentials: Authorization?
        /// Whether the text can be used unchanged.
        let isPlain: Bool

        init(_ bytes: UnsafeBufferPointer<UInt8>, scheme: Int) throws(URLFault) {
            let isLocal = Self.isLocal(bytes[..<scheme])
            guard isLocal || Self.isCarried(bytes[..<scheme]) else { throw .unsupportedScheme }
            let start = scheme + 3
            var end = start
            var at: Int?
            while end < bytes.count, bytes[end] != 0x2F, bytes[end] != 0x3F, bytes[end] != 0x23 {
                // Some parsers take a backslash for a slash. The host must not depend on the parser.
                if bytes[end] == 0x5C { throw .invalid }
                if bytes[end] == 0x40 { at = end }
                end += 1
            }
            for byte in bytes where byte <= 0x20 || byte == 0x7F { throw .invalid }
            let host = (at.map { $0 + 1 } ?? start)..<end
            guard isLocal ? at == nil && Self.isSocket(bytes[host]) : Self.isHost(bytes[host]) else { throw .invalid }

            if isLocal {
                isPlain = false
                origin = Array(bytes[..<start]) + Self.socket(bytes[host])
            } else if at == nil, end < bytes.count, bytes[end] == 0x2F, Self.isPlain(bytes[end...]) {
                isPlain = true
                return
            } else {
                isPlain = false
                origin = Array(bytes[..<start]) + Array(bytes[host])
            }
            let parts = Parts(bytes[end...])
            path.appendEscaping(parts.path, ByteSet.path)
            query = parts.query.map { Self.escaped($0) }
            fragment = parts.fragment.map { Self.escaped($0) }
            if let at { credentials = Self.credentials(bytes[start..<at]) }
        }

        private static func escaped(_ part: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8] {
            var bytes: [UInt8] = []
            bytes.appendEscaping(part, ByteSet.query)
            return bytes
        }

        private static func isCarried(_ scheme: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
            guard scheme.count == 4 || scheme.count == 5 else { return false }
            return zip(scheme, "https".utf8).allSatisfy { lowercased($0) == $1 }
        }

        /// `http+unix`, `https+unix`
        private static func isLocal(_ scheme: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
            scheme.count > 5 && isCarried(scheme.dropLast(5))
                && zip(scheme.suffix(5), "+unix".utf8).allSatisfy { lowercased($0) == $1 }
        }

        /// Whether this is the escaped path of a socket: without a port and without a NUL byte.
        private static func isSocket(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
            !text.isEmpty && text.allSatisfy { ByteSet.authority.contains($0) && !":[]".utf8.contains($0) }
                && PercentEncoding.strictlyDecoded(text)?.contains(0) == false
        }

        /// In a spelling that does not change in lower case, because hosts are compared that way.
        private static func socket(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8] {
            var made: [UInt8] = []
            for byte in PercentEncoding.decoded(text) {
                switch byte {
                case 0x61...0x7A, 0x30...0x39, 0x2D, 0x2E, 0x5F, 0x7E: made.append(byte)
                default:
                    made.append(0x25)
                    made.append(contentsOf: [byte >> 4, byte & 15].map { $0 < 10 ? 0x30 + $0 : 0x57 + $0 })
                }
            }
            return made
        }

        /// Whether there is a host, and if there is a port, whether it is a number. Whether the name exists is not
        /// checked here.
        private static func isHost(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
            guard let first = text.first, first != 0x3A else { return false }
            for byte in text where byte < 0x80 && !ByteSet.authority.contains(byte) { return false }
            var afterHost = text.firstIndex(of: 0x3A) ?? text.endIndex
            if first == 0x5B {
                guard let close = text.firstIndex(of: 0x5D), close > text.startIndex + 1 else { return false }
                afterHost = close + 1
            }
            let port = text[afterHost...]
            if port.isEmpty { return true }
            guard port.first == 0x3A, port.count <= 6 else { return false }
            var number = 0
            for byte in port.dropFirst() {
                guard byte >= 0x30, byte <= 0x39 else { return false }
                number = number * 10 + Int(byte - 0x30)
            }
            return number <= 65535
        }

        private static func isPlain(_ rest: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
            var inQuery = false
            for byte in rest {
                if byte == 0x3F { inQuery = true }
                // A lone percent sign needs escaping, a complete escape does not: the slow path tells them apart.
                if !(inQuery ? ByteSet.query.contains(byte) : ByteSet.path.contains(byte)) { return false }
            }
            return true
        }

        private static func credentials(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> Authorization? {
            if text.isEmpty { return nil }
            let colon = text.firstIndex(of: 0x3A) ?? text.endIndex
            return .basic(unescaped(text[..<colon]), unescaped(text[colon...].dropFirst()))
        }

        private static func unescaped(_ text: Slice<UnsafeBufferPointer<UInt8>>) -> String {
            String(decoding: PercentEncoding.decoded(text), as: UTF8.self)
        }
    }
}

/// A set of ASCII characters in two machine words. It never contains a byte beyond ASCII.
struct ByteSet: Sendable {
    private let low: UInt64
    private let high: UInt64

    init(_ members: StaticString) {
        var low: UInt64 = 0
        var high: UInt64 = 0
        members.withUTF8Buffer { bytes in
            for byte in bytes {
                if byte < 64 { low |= 1 << UInt64(byte) } else if byte < 128 { high |= 1 << UInt64(byte - 64) }
            }
        }
        self.low = low
        self.high = high
    }

    @inline(__always) func contains(_ byte: UInt8) -> Bool {
        if byte < 64 { return low & (1 << UInt64(byte)) != 0 }
        if byte < 128 { return high & (1 << UInt64(byte - 64)) != 0 }
        return false
    }

    /// The characters of a token (RFC 9110, 5.6.2).
    static let token = ByteSet("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    /// The unreserved characters (RFC 3986, 2.3).
    static let unreserved = ByteSet("-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    /// The unreserved characters (RFC 3986, 2.3) and the two others that are not escaped in arguments.
    static let argument = ByteSet("-._~?/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    /// The characters that a path may contain unescaped (RFC 3986, 3.3), including slashes.
    static let path = ByteSet("-._~!$&'()*+,;=:@/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    /// The characters of a query or fragment (RFC 3986, 3.4 and 3.5).
    static let query = ByteSet("-._~!$&'()*+,;=:@/?0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    /// The characters of a host or port, with the brackets of an address literal. The core checks bytes beyond ASCII.
    static let authority = ByteSet("-._~!$&'()*+,;=:[]%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
