/// Credentials for the server's challenges (401): the best of the schemes that the server offers is used.
package struct TransferCredentials: Sendable, Hashable {
    package struct Schemes: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let basic = Schemes(rawValue: 1 << 0)
        package static let digest = Schemes(rawValue: 1 << 1)
        package static let ntlm = Schemes(rawValue: 1 << 2)
        package static let negotiate = Schemes(rawValue: 1 << 3)
    }

    package var user: String
    package var password: String
    package var schemes: Schemes

    package init(user: String, password: String, schemes: Schemes) {
        self.user = user
        self.password = password
        self.schemes = schemes
    }
}

/// A proxy for one transfer.
package struct TransferProxy: Sendable, Hashable {
    package enum Kind: UInt8, Sendable {
        /// An HTTP proxy: requests are sent in plain text, and CONNECT for https.
        case http = 1
        /// SOCKS 5 (RFC 1928) with local name resolution.
        case socks5
        /// SOCKS 5 with name resolution by the proxy.
        case socks5h
    }

    package var kind: Kind
    /// The address, `name:port` or `[v6]:port`.
    package var address: String
    /// The user. Without schemes, user and password are sent at once, without a challenge; the user has no colon then.
    package var user: String?
    package var password: String?
    /// Schemes for the challenges of an HTTP proxy (407): the best that it offers is used.
    package var schemes: TransferCredentials.Schemes = []

    package init(kind: Kind, address: String, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.address = address
        self.user = user
        self.password = password
    }
}

/// The encodings of the body that a request accepts.
package enum TransferEncodings: Sendable, Hashable {
    /// The encodings that the transport supports.
    case standard
    /// No `Accept-Encoding` is sent.
    case none
    /// This value of `Accept-Encoding`.
    case these(String)
}

/// A `traceparent` field of version 00 (W3C Trace Context, 3.2). Each attempt of a run has another, so it is written
/// where it is needed.
package struct TraceField: Sendable, Equatable {
    /// The halves of the trace's id.
    package var high, low: UInt64
    package var span: UInt64
    package var isSampled: Bool

    package init(high: UInt64, low: UInt64, span: UInt64, isSampled: Bool) {
        (self.high, self.low, self.span, self.isSampled) = (high, low, span, isSampled)
    }

    /// The length of the value.
    package static let count = 55

    private static let name: StaticString = "traceparent"

    var text: String {
        String(unsafeUninitializedCapacity: Self.count) { text in
            write(to: UnsafeMutableRawBufferPointer(text))
            return Self.count
        }
    }

    /// The length of the field in a ``HeaderBlock``.
    var blockCount: Int { 8 + Self.name.utf8CodeUnitCount + Self.count }

    func writeBlock(to block: UnsafeMutableRawBufferPointer) {
        let length = Self.name.utf8CodeUnitCount
        // The fields before it have any length.
        block.storeBytes(of: UInt32(clamping: length), as: UInt32.self)
        block.storeBytes(of: UInt32(clamping: Self.count), toByteOffset: 4, as: UInt32.self)
        UnsafeMutableRawBufferPointer(rebasing: block[8...]).copyMemory(
            from: UnsafeRawBufferPointer(start: Self.name.utf8Start, count: length))
        write(to: UnsafeMutableRawBufferPointer(rebasing: block[(8 + length)...]))
    }

    /// Writes the value.
    package func write(to text: UnsafeMutableRawBufferPointer) {
        text[0] = 0x30
        text[1] = 0x30
        text[2] = 0x2D
        Self.write(high, to: text, at: 3)
        Self.write(low, to: text, at: 19)
        text[35] = 0x2D
        Self.write(span, to: text, at: 36)
        text[52] = 0x2D
        text[53] = 0x30
        text[54] = isSampled ? 0x31 : 0x30
    }

    /// Writes the 16 hexadecimal digits of a number.
    package static func write(_ number: UInt64, to text: UnsafeMutableRawBufferPointer, at start: Int) {
        text.storeBytes(of: digits(of: UInt32(number >> 32)), toByteOffset: start, as: UInt64.self)
        text.storeBytes(of: digits(of: UInt32(truncatingIfNeeded: number)), toByteOffset: start + 8, as: UInt64.self)
    }

    /// Eight digits in memory order, all at once, because every traced request needs 32 of them.
    private static func digits(of number: UInt32) -> UInt64 {
        // One byte for each four bits.
        var values = UInt64(number)
        values = (values << 16 | values) & 0x0000_FFFF_0000_FFFF
        values = (values << 8 | values) & 0x00FF_00FF_00FF_00FF
        values = (values << 4 | values) & 0x0F0F_0F0F_0F0F_0F0F
        // 1 where the digit is a letter.
        let letters = (values + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return (values + 0x3030_3030_3030_3030 + letters * 0x27).bigEndian
    }
}
