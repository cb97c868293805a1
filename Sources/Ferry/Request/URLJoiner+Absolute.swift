extension URLJoiner {
    /// An absolute URL: looked through, its user and password taken out, and left as it is as far as it can be.
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

    /// The parts of an absolute URL, escaped where they need it.
    struct Absolute {
        /// `http://host:port`
        private(set) var origin: [UInt8] = []
        private(set) var path: [UInt8] = []
        private(set) var query: [UInt8]?
        private(set) var fragment: [UInt8]?
        private(set) var credentials: Authorization?
        /// The text itself will do.
        let isPlain: Bool

        init(_ bytes: UnsafeBufferPointer<UInt8>, scheme: Int) throws(URLFault) {
            guard Self.isCarried(bytes[..<scheme]) else { throw .unsupportedScheme }
            let start = scheme + 3
            var end = start
            var at: Int?
            while end < bytes.count, bytes[end] != 0x2F, bytes[end] != 0x3F, bytes[end] != 0x23 {
                // Some readers take a backslash for a slash: what the host is must not depend on the reader.
                if bytes[end] == 0x5C { throw .invalid }
                if bytes[end] == 0x40 { at = end }
                end += 1
            }
            for byte in bytes where byte <= 0x20 || byte == 0x7F { throw .invalid }
            let host = (at.map { $0 + 1 } ?? start)..<end
            guard Self.isHost(bytes[host]) else { throw .invalid }

            if at == nil, end < bytes.count, bytes[end] == 0x2F, Self.isPlain(bytes[end...]) {
                isPlain = true
                return
            }
            isPlain = false
            origin = Array(bytes[..<start]) + Array(bytes[host])
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

        /// A host is there, and a port that is a number where there is one. What names exist is not judged here.
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
                // A lone percent sign needs escaping, a whole escape does not: let the long way tell them apart.
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
