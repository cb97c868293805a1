package import FoundationEssentials

/// The id of one transfer of a transport: unique among those that have not ended, and never 0. Its top byte is the
/// number of the loop that carries it (`Transporting.chooseLoop`); the caller chooses the rest.
package typealias TransferID = UInt64

/// The queue in which a transfer waits.
package enum PriorityRing: UInt8, Sendable {
    case low = 0
    case normal = 1
    case high = 2
}

/// A descriptor and an offset in it, where a body is written.
package struct TransferSink: Sendable, Equatable {
    /// The descriptor. It stays the caller's, who must not close it before the result. It may block: separate threads
    /// write to it.
    package var descriptor: Int32
    /// The offset of the first byte.
    package var offset: Int64
    /// The maximum number of bytes; more are an error, `bodyTooLarge`. 0 = the request's limit.
    package var most: UInt64

    package init(descriptor: Int32, offset: Int64, most: UInt64 = 0) {
        self.descriptor = descriptor
        self.offset = offset
        self.most = most
    }
}

/// One complete transfer: everything the core needs, independent of the request it came from.
package struct TransferRequest: Sendable {
    package enum Body: Sendable {
        case none
        case bytes([UInt8])
        case data(Data)
        /// Pulled piece by piece with the receiver's `fill`; `nil` if the length is not known beforehand.
        case pull(length: UInt64?)
    }

    package enum ResponseBody: Sendable {
        /// Delivered with the result.
        case collect
        /// Delivered with the receiver's `receivedHead` and `receivedChunk`.
        case stream
        /// Streamed, but the body is held after the head until a `resume` or a `write`.
        case held
    }

    /// The limits in milliseconds, 0 = none. `deadline` counts from the submit, the others from the start.
    package struct Timeouts: Sendable, Equatable {
        package var connect: UInt32 = 0
        package var idle: UInt32 = 0
        package var total: UInt32 = 0
        package var deadline: UInt32 = 0
        /// The transfer fails if fewer bytes per second than this arrive over `lowSpeedTime`.
        package var lowSpeedBytes: UInt32 = 0
        package var lowSpeedTime: UInt32 = 0

        package init() {}
    }

    package var url: String
    package var method = "GET"
    package var headers = HeaderBlock()
    /// Its `traceparent` field, besides the headers.
    package var trace: TraceField?
    package var body = Body.none
    package var responseBody = ResponseBody.collect
    package var ring = PriorityRing.normal
    package var timeouts = Timeouts()
    /// The maximum size of all heads together, in bytes; 0 = the core's default of 64 KiB.
    package var maxHeadBytes: UInt32 = 0
    /// The maximum size of the body after decoding, in bytes; 0 = no limit.
    package var maxBodyBytes: UInt64 = 0
    /// The maximum rate of receiving, in bytes per second on average; 0 = no limit.
    package var maxRate: UInt64 = 0
    /// Whether the request may be sent again on a new connection if a reused one turns out to be dead (RFC 9110,
    /// 9.2.2).
    package var isIdempotent = true
    /// Whether `transferStarted` is called.
    package var reportsStart = false
    /// Whether the receiver gets informational responses.
    package var reportsInformational = false
    /// Whether the response is read while the request is sent. Then `answered` reports a response that is complete
    /// before its request.
    package var isDuplex = false
    /// Whether trailers follow the body, which must be pulled and have no length. The receiver supplies them.
    package var sendsTrailers = false
    /// Whether it starts before all others and beyond all limits, because transfers that hold their places wait for it.
    package var passesLimits = false
    /// Whether to connect to addresses of the public internet only; see `FERRY_PUBLIC_ONLY` in CFerry.h.
    package var publicOnly = false
    /// Sends nothing and opens a connection for others, unless this many are already idle or being opened.
    package var connections: UInt32?
    /// Rarely used options, kept apart so that copying a request stays cheap.
    var extras: Extras?

    package init(url: String) {
        self.url = url
    }
}

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

extension TransferRequest {
    /// The rarely used options together, behind one reference; immutable, so they are replaced as a whole.
    final class Extras: Sendable {
        let proxy: TransferProxy?
        let credentials: TransferCredentials?
        let encodings: TransferEncodings

        init?(proxy: TransferProxy?, credentials: TransferCredentials?, encodings: TransferEncodings) {
            if proxy == nil && credentials == nil && encodings == .standard { return nil }
            self.proxy = proxy
            self.credentials = credentials
            self.encodings = encodings
        }
    }

    /// The proxy to the server; `nil` connects directly.
    package var proxy: TransferProxy? {
        get { extras?.proxy }
        set { extras = Extras(proxy: newValue, credentials: credentials, encodings: acceptedEncodings) }
    }

    /// The credentials for the server's challenges, within the transfer.
    package var credentials: TransferCredentials? {
        get { extras?.credentials }
        set { extras = Extras(proxy: proxy, credentials: newValue, encodings: acceptedEncodings) }
    }

    /// The `Accept-Encoding` to send. One among the headers takes precedence.
    package var acceptedEncodings: TransferEncodings {
        get { extras?.encodings ?? .standard }
        set { extras = Extras(proxy: proxy, credentials: credentials, encodings: newValue) }
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

/// Header fields in the core's form: one block of bytes, without an object for each field.
///
/// Each field has two native 32-bit lengths, then the name's and the value's bytes. With explicit lengths the core can
/// see a line break in a value, and refuses it. Nothing is ever escaped or cut.
package struct HeaderBlock: Sendable, Equatable {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func append(_ name: String, _ value: String) {
        var name = name
        var value = value
        name.withUTF8 { name in
            value.withUTF8 { value in
                begin(name, value.count)
                bytes.append(contentsOf: value)
            }
        }
    }

    /// Appends all fields of another block.
    package mutating func append(_ other: HeaderBlock) { bytes.append(contentsOf: other.bytes) }

    /// Calls `body` with the block and one more field, without a copy on the heap.
    func withBytes<R>(adding trace: TraceField?, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        guard let trace else { return bytes.withUnsafeBytes(body) }
        return withUnsafeTemporaryAllocation(byteCount: bytes.count + trace.blockCount, alignment: 4) { all in
            bytes.withUnsafeBytes { all.copyMemory(from: $0) }
            trace.writeBlock(to: UnsafeMutableRawBufferPointer(rebasing: all[bytes.count...]))
            return body(UnsafeRawBufferPointer(all))
        }
    }

    private mutating func begin(_ name: UnsafeBufferPointer<UInt8>, _ count: Int) {
        let needed = bytes.count + 8 + name.count + count
        // If exactly the needed capacity were reserved, the array would be copied for each field.
        if bytes.capacity < needed { bytes.reserveCapacity(max(needed, 2 * bytes.capacity, 128)) }
        appendLength(name.count)
        appendLength(count)
        bytes.append(contentsOf: name)
    }

    private mutating func appendLength(_ length: Int) {
        withUnsafeBytes(of: UInt32(clamping: length)) { bytes.append(contentsOf: $0) }
    }
}

extension TransferRequest {
    /// All fields that are sent, with that of the trace.
    package var allHeaders: HeaderBlock {
        guard let trace else { return headers }
        var all = headers
        all.append("traceparent", trace.text)
        return all
    }
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
    fileprivate var blockCount: Int { 8 + Self.name.utf8CodeUnitCount + Self.count }

    fileprivate func writeBlock(to block: UnsafeMutableRawBufferPointer) {
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
