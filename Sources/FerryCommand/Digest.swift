internal import COpenSSL

/// SHA-256 by OpenSSL's digest interface (EVP_Digest(3)).
enum Digest {
    /// 64 hexadecimal digits; `nil` when OpenSSL was built without it.
    static func sha256(_ bytes: UnsafeRawBufferPointer) -> String? {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var length: UInt32 = 0
        // A null pointer is not a piece of data to OpenSSL, even if nothing is read from it.
        let empty: UInt8 = 0
        let done = withUnsafePointer(to: empty) { empty in
            EVP_Digest(bytes.baseAddress ?? UnsafeRawPointer(empty), bytes.count, &digest, &length, EVP_sha256(), nil)
        }
        return done == 1 ? hexadecimal(digest.prefix(Int(length))) : nil
    }

    private static func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
        var text = ""
        for byte in bytes {
            if byte < 16 { text.append("0") }
            text.append(String(byte, radix: 16))
        }
        return text
    }
}
