internal import COpenSSL
internal import Glibc

/// A SHA-256 digest (FIPS 180-4).
package struct CacheDigest: Hashable, Sendable {
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    package static let count = 32

    /// The empty digest: no known text has it.
    package static var none: CacheDigest { CacheDigest() }

    private init() {}

    /// Reads 32 bytes of a record.
    package init(bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count == Self.count, "a digest has 32 bytes")
        withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) }
    }

    /// Reads 64 hexadecimal digits in lower case; `nil` if the text is anything else.
    package init?(hexadecimal text: String) {
        let digits = Array(text.utf8)
        guard digits.count == 2 * Self.count else { return nil }
        var bytes: [UInt8] = []
        for digit in digits {
            let value: UInt8
            switch digit {
            case 0x30...0x39: value = digit - 0x30
            case 0x61...0x66: value = digit - 0x57
            default: return nil
            }
            bytes.append(value)
        }
        let pairs = stride(from: 0, to: bytes.count, by: 2).map { bytes[$0] << 4 | bytes[$0 + 1] }
        self = pairs.withUnsafeBytes { CacheDigest(bytes: $0) }
    }

    /// The digest of these bytes.
    package init(of bytes: UnsafeRawBufferPointer) {
        var length: UInt32 = 0
        // OpenSSL rejects a null pointer, even if nothing is read from it.
        let empty: UInt8 = 0
        let made = withUnsafePointer(to: empty) { empty in
            withUnsafeMutableBytes(of: &words) { words in
                EVP_Digest(
                    bytes.baseAddress ?? UnsafeRawPointer(empty), bytes.count,
                    words.baseAddress?.assumingMemoryBound(to: UInt8.self), &length, Self.algorithm.pointer, nil)
            }
        }
        precondition(made == 1, "OpenSSL has no SHA-256")
    }

    /// The digest of these bytes.
    package init(of bytes: [UInt8]) { self = bytes.withUnsafeBytes { CacheDigest(of: $0) } }

    /// The digest of a text as UTF-8.
    package init(of text: String) { self.init(of: Array(text.utf8)) }

    /// The first eight bytes, used as the number of a row.
    package var number: Int64 { Int64(bitPattern: UInt64(littleEndian: words.0)) }

    package func withBytes<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R { withUnsafeBytes(of: words, body) }

    /// The digest as 64 hexadecimal digits in lower case.
    var hexadecimal: String {
        withBytes { bytes in
            String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
                let digits: StaticString = "0123456789abcdef"
                for (index, byte) in bytes.enumerated() {
                    text[2 * index] = digits.utf8Start[Int(byte >> 4)]
                    text[2 * index + 1] = digits.utf8Start[Int(byte & 15)]
                }
                return 2 * bytes.count
            }
        }
    }

    package static func == (left: CacheDigest, right: CacheDigest) -> Bool { left.words == right.words }

    package func hash(into hasher: inout Hasher) { hasher.combine(words.0) }

    private static let algorithm = Algorithm()

    /// The algorithm, fetched once: otherwise OpenSSL looks it up by name for each digest (EVP_MD_fetch(3)).
    ///
    /// Sendable because OpenSSL only reads it; it is never freed.
    private struct Algorithm: @unchecked Sendable {
        let pointer: OpaquePointer?

        init() { pointer = EVP_MD_fetch(nil, "SHA256", nil) ?? EVP_sha256() }
    }
}
