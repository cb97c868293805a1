import COpenSSL
import Glibc

/// Bytes as `%XX` in a text (RFC 3986, 2.1).
package enum PercentEncoding {
    /// All but the unreserved characters (RFC 3986, 2.3) are escaped.
    package static func encoded(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var encoded: [UInt8] = []
        for byte in bytes {
            if ByteSet.unreserved.contains(byte) { encoded.append(byte) } else { encoded.appendEscaped(byte) }
        }
        return encoded
    }

    /// Likewise, of a text as UTF-8.
    package static func encoded(_ text: String) -> String { String(decoding: encoded(text.utf8), as: UTF8.self) }

    /// What is no whole escape stands for itself.
    package static func decoded(_ text: some Sequence<UInt8>) -> [UInt8] {
        var rest = Array(text)[...]
        var decoded: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == 0x25, let escaped = escaped(rest) {
                decoded.append(escaped)
                rest = rest.dropFirst(2)
            } else {
                decoded.append(byte)
            }
        }
        return decoded
    }

    /// `nil` where an escape is broken.
    static func strictlyDecoded(_ text: some Sequence<UInt8>) -> [UInt8]? {
        let bytes = Array(text)
        for index in bytes.indices where bytes[index] == 0x25 && escaped(bytes[(index + 1)...]) == nil { return nil }
        return decoded(bytes)
    }

    /// The byte that two digits stand for.
    private static func escaped(_ rest: ArraySlice<UInt8>) -> UInt8? {
        guard rest.count >= 2, let high = hexValue(rest[rest.startIndex]), let low = hexValue(rest[rest.startIndex + 1])
        else { return nil }
        return high << 4 | low
    }
}

/// A set of ASCII characters as two words; what is not ASCII is never in it.
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

    /// RFC 9110, 5.6.2.
    static let token = ByteSet("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    /// RFC 3986, 2.3.
    static let unreserved = ByteSet("-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    /// RFC 3986, 2.3, and the two others that stay as they are in arguments.
    static let argument = ByteSet("-._~?/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    /// RFC 3986, 3.3: what a path may hold unescaped, slashes included.
    static let path = ByteSet("-._~!$&'()*+,;=:@/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    /// RFC 3986, 3.4 and 3.5.
    static let query = ByteSet("-._~!$&'()*+,;=:@/?0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    /// What may stand in a host or a port, brackets of an address literal included; beyond ASCII is the core's to
    /// judge.
    static let authority = ByteSet("-._~!$&'()*+,;=:[]%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

@inline(__always) func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }

@inline(__always) func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: nil
    }
}

extension [UInt8] {
    /// Appends `%XX`.
    mutating func appendEscaped(_ byte: UInt8) {
        append(0x25)
        append(hexDigit(byte >> 4))
        append(hexDigit(byte & 15))
    }
}

private func hexDigit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x41 + value - 10 }

/// SHA-256 by OpenSSL (EVP_DigestInit(3)).
package struct SHA256: ~Copyable {
    private let context: OpaquePointer

    init() {
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
            preconditionFailure("OpenSSL has no SHA-256, or there is no memory")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        if let start = bytes.baseAddress { EVP_DigestUpdate(context, start, bytes.count) }
    }

    /// 64 hexadecimal digits. Once.
    mutating func hexadecimal() -> String {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(context, &digest, nil)
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// 64 hexadecimal digits, in lower case.
    package static func hexadecimal(of bytes: UnsafeRawBufferPointer) -> String {
        var digest = SHA256()
        digest.add(bytes)
        return digest.hexadecimal()
    }

    package static func hexadecimal(of bytes: [UInt8]) -> String { bytes.withUnsafeBytes { hexadecimal(of: $0) } }

    /// Whether a text is such a digest, in either case. Only the digits of ASCII are any.
    package static func isHexadecimal(_ text: String) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { hexValue($0) != nil }
    }
}
