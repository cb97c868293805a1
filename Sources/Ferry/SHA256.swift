import COpenSSL
import Glibc

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
