package import FoundationEssentials

/// Names one transfer of a transport; unique among those not yet answered, and never 0. Its top byte is the number of
/// the loop that carries it (`Transporting.chooseLoop`), the rest is the caller's.
package typealias TransferID = UInt64

/// The waiting ring a transfer stands in.
package enum PriorityRing: UInt8, Sendable {
    case low = 0
    case normal = 1
    case high = 2
}

/// Where in a file a body goes.
package struct TransferSink: Sendable, Equatable {
    /// Stays the caller's, who must not close it before the result. It may block: threads of their own write to it.
    package var descriptor: Int32
    /// Of the first byte.
    package var offset: Int64
    /// More bytes than this are a fault, `bodyTooLarge`; 0 = as the request says.
    package var most: UInt64

    package init(descriptor: Int32, offset: Int64, most: UInt64 = 0) {
        self.descriptor = descriptor
        self.offset = offset
        self.most = most
    }
}

/// One transfer, complete: what the core needs to know, and nothing of the request it came from.
package struct TransferRequest: Sendable {
    package enum Body: Sendable {
        case none
        case bytes([UInt8])
        case data(Data)
        /// Asked of the receiver's `fill` piece by piece; `nil` when the length is not known beforehand.
        case pull(length: UInt64?)
    }

    package enum ResponseBody: Sendable {
        /// Arrives with the result.
        case collect
        /// Arrives by the receiver's `receivedHead` and `receivedChunk`.
        case stream
        /// Likewise, but the body waits behind its head for a `resume`, or for a `write`.
        case held
    }

    /// All in milliseconds, 0 = none. `deadline` counts from the submit, the others from the start.
    package struct Timeouts: Sendable, Equatable {
        package var connect: UInt32 = 0
        package var idle: UInt32 = 0
        package var total: UInt32 = 0
        package var deadline: UInt32 = 0
        /// A fault when fewer bytes a second than this came over `lowSpeedTime`.
        package var lowSpeedBytes: UInt32 = 0
        package var lowSpeedTime: UInt32 = 0

        package init() {}
    }

    package var url: String
    package var method = "GET"
    package var headers = HeaderBlock()
    package var body = Body.none
    package var responseBody = ResponseBody.collect
    package var ring = PriorityRing.normal
    package var timeouts = Timeouts()
    /// Bytes of all heads together; 0 = the core's own bound of 64 KiB.
    package var maxHeadBytes: UInt32 = 0
    /// Bytes of the body after decoding; 0 = no bound.
    package var maxBodyBytes: UInt64 = 0
    /// Bytes received a second, on average; 0 = no bound.
    package var maxRate: UInt64 = 0
    /// May be sent again on a new connection when a kept one turns out to be dead (RFC 9110, 9.2.2).
    package var isIdempotent = true
    /// Whether `transferStarted` is called.
    package var reportsStart = false
    /// Whether the receiver is told of informational responses.
    package var reportsInformational = false
    /// The response is read while the request is sent: `answered` tells when it is whole before the request is.
    package var isDuplex = false
    /// Fields follow the body, which is pulled and of unknown length: the receiver is asked for them.
    package var sendsTrailers = false
    /// Connects to addresses of the public internet only; `FERRY_PUBLIC_ONLY` in CFerry.h says what that means.
    package var publicOnly = false
    /// Sends nothing and opens a connection for others, unless so many are unused or being opened already.
    package var connections: UInt32?
    /// What few requests say, so that copying the others stays cheap.
    var extras: Extras?

    package init(url: String) {
        self.url = url
    }
}

/// What challenges of the server (401) are answered with: the best of the schemes that is asked for.
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

/// A proxy that one transfer goes through.
package struct TransferProxy: Sendable, Hashable {
    package enum Kind: UInt8, Sendable {
        /// Spoken to in plain; asked to CONNECT for https.
        case http = 1
        /// SOCKS version 5 (RFC 1928); the server's name is looked up here.
        case socks5
        /// SOCKS version 5; the server's name is looked up by the proxy.
        case socks5h
    }

    package var kind: Kind
    /// `name:port` or `[v6]:port`.
    package var address: String
    /// Without schemes sent at once, without a challenge; no colon in it then.
    package var user: String?
    package var password: String?
    /// What challenges of an HTTP proxy (407) are answered with: the best of these that is asked for.
    package var schemes: TransferCredentials.Schemes = []

    package init(kind: Kind, address: String, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.address = address
        self.user = user
        self.password = password
    }
}

extension TransferRequest {
    /// The rare settings together, behind one reference; never changed, but replaced.
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

    /// The way to the server; `nil` is the direct one.
    package var proxy: TransferProxy? {
        get { extras?.proxy }
        set { extras = Extras(proxy: newValue, credentials: credentials, encodings: acceptedEncodings) }
    }

    /// What challenges of the server are answered with, within the transfer.
    package var credentials: TransferCredentials? {
        get { extras?.credentials }
        set { extras = Extras(proxy: proxy, credentials: newValue, encodings: acceptedEncodings) }
    }

    /// The `Accept-Encoding` sent. One among the headers wins.
    package var acceptedEncodings: TransferEncodings {
        get { extras?.encodings ?? .standard }
        set { extras = Extras(proxy: proxy, credentials: credentials, encodings: newValue) }
    }
}

/// Which encodings of the body a request asks for.
package enum TransferEncodings: Sendable, Hashable {
    /// The transport's own.
    case standard
    /// None is asked for.
    case none
    /// This text.
    case these(String)
}

/// Header fields in the form in which the core takes them: one block of bytes, no object per field.
///
/// For each field two native 32-bit lengths, then the name's and the value's bytes. The lengths make a line break in a
/// value visible to the core, which refuses it; nothing is ever escaped or cut.
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

    /// A field whose value of so many bytes is written here.
    package mutating func append(
        _ name: StaticString, count: Int, _ write: (UnsafeMutableBufferPointer<UInt8>) -> Void
    ) {
        name.withUTF8Buffer { begin($0, count) }
        bytes.append(contentsOf: repeatElement(0, count: count))
        bytes.withUnsafeMutableBufferPointer { write(UnsafeMutableBufferPointer(rebasing: $0.suffix(count))) }
    }

    private mutating func begin(_ name: UnsafeBufferPointer<UInt8>, _ count: Int) {
        let needed = bytes.count + 8 + name.count + count
        // Asked for exactly what is needed, an array would move for each field.
        if bytes.capacity < needed { bytes.reserveCapacity(max(needed, 2 * bytes.capacity, 128)) }
        appendLength(name.count)
        appendLength(count)
        bytes.append(contentsOf: name)
    }

    private mutating func appendLength(_ length: Int) {
        withUnsafeBytes(of: UInt32(clamping: length)) { bytes.append(contentsOf: $0) }
    }
}
