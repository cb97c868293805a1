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
