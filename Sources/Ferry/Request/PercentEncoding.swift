import COpenSSL
import Glibc

/// Percent-encoding of bytes as `%XX` (RFC 3986, 2.1).
package enum PercentEncoding {
    /// Escapes everything except the unreserved characters (RFC 3986, 2.3).
    package static func encoded(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var encoded: [UInt8] = []
        for byte in bytes {
            if ByteSet.unreserved.contains(byte) { encoded.append(byte) } else { encoded.appendEscaped(byte) }
        }
        return encoded
    }

    /// Escapes the UTF-8 bytes of a text in the same way.
    package static func encoded(_ text: String) -> String { String(decoding: encoded(text.utf8), as: UTF8.self) }

    /// Decodes escapes. An incomplete escape stays as it is.
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

    /// Decodes escapes; `nil` if one is malformed.
    static func strictlyDecoded(_ text: some Sequence<UInt8>) -> [UInt8]? {
        let bytes = Array(text)
        for index in bytes.indices where bytes[index] == 0x25 && escaped(bytes[(index + 1)...]) == nil { return nil }
        return decoded(bytes)
    }

    /// The byte of two hexadecimal digits.
    private static func escaped(_ rest: ArraySlice<UInt8>) -> UInt8? {
        guard rest.count >= 2, let high = hexValue(rest[rest.startIndex]), let low = hexValue(rest[rest.startIndex + 1])
        else { return nil }
        return high << 4 | low
    }
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

/// SHA-256 with OpenSSL (EVP_DigestInit(3)).
package struct SHA256: ~Copyable {
    private let context: OpaquePointer

    init() {
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
            preconditionFailure("OpenSSL has no SHA-256, or memory is exhausted")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    mutating func add(_ bytes: UnsafeRawBufferPointer) {
        if let start = bytes.baseAddress { EVP_DigestUpdate(context, start, bytes.count) }
    }

    /// The digest as 64 hexadecimal digits. Call it once.
    mutating func hexadecimal() -> String {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(context, &digest, nil)
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// The digest as 64 lower-case hexadecimal digits.
    package static func hexadecimal(of bytes: UnsafeRawBufferPointer) -> String {
        var digest = SHA256()
        digest.add(bytes)
        return digest.hexadecimal()
    }

    package static func hexadecimal(of bytes: [UInt8]) -> String { bytes.withUnsafeBytes { hexadecimal(of: $0) } }

    /// Whether a text is such a digest, in upper or lower case, with ASCII digits only.
    package static func isHexadecimal(_ text: String) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { hexValue($0) != nil }
    }
}
