package import FoundationEssentials

<<<<<<< HEAD
/// Identifies one transfer of a transport. It is unique among unfinished transfers, and never 0. Its top byte is the
/// number of the event loop (`Transporting.chooseLoop`); the caller chooses the rest.
package typealias TransferID = UInt64

/// The waiting ring of a transfer.
=======
/// The id of one transfer of a transport: unique among those that have not ended, and never 0. Its top byte is the
/// number of the loop that carries it (`Transporting.chooseLoop`); the caller chooses the rest.
package typealias TransferID = UInt64

/// The queue in which a transfer waits.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
package enum PriorityRing: UInt8, Sendable {
    case low = 0
    case normal = 1
    case high = 2
}

<<<<<<< HEAD
/// Where in a file a body is written.
package struct TransferSink: Sendable, Equatable {
    /// Owned by the caller, who must not close it before the result. Writes may block, because they have their own
    /// threads.
    package var descriptor: Int32
    /// The offset of the first byte.
    package var offset: Int64
    /// More bytes than this are an error, `bodyTooLarge`; 0 means the limit of the request.
=======
/// A descriptor and an offset in it, where a body is written.
package struct TransferSink: Sendable, Equatable {
    /// The descriptor. It stays the caller's, who must not close it before the result. It may block: separate threads
    /// write to it.
    package var descriptor: Int32
    /// The offset of the first byte.
    package var offset: Int64
    /// The maximum number of bytes; more are an error, `bodyTooLarge`. 0 = the request's limit.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    package var most: UInt64

    package init(descriptor: Int32, offset: Int64, most: UInt64 = 0) {
        self.descriptor = descriptor
        self.offset = offset
        self.most = most
    }
}

<<<<<<< HEAD
/// One complete transfer: what the core needs to know, independent of the original request.
=======
/// One complete transfer: everything the core needs, independent of the request it came from.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
package struct TransferRequest: Sendable {
    package enum Body: Sendable {
        case none
        case bytes([UInt8])
        case data(Data)
<<<<<<< HEAD
        /// The receiver's `fill` provides it piece by piece; `nil` if the length is not known in advance.
=======
        /// Pulled piece by piece with the receiver's `fill`; `nil` if the length is not known beforehand.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
        case pull(length: UInt64?)
    }

    package enum ResponseBody: Sendable {
<<<<<<< HEAD
        /// It is part of the result.
        case collect
        /// The receiver's `receivedHead` and `receivedChunk` deliver it.
        case stream
        /// The same, but after the head the body waits for a `resume` or a `write`.
        case held
    }

    /// In milliseconds, 0 means none. `deadline` counts from the submit, the others from the start.
=======
        /// Delivered with the result.
        case collect
        /// Delivered with the receiver's `receivedHead` and `receivedChunk`.
        case stream
        /// Streamed, but the body is held after the head until a `resume` or a `write`.
        case held
    }

    /// The limits in milliseconds, 0 = none. `deadline` counts from the submit, the others from the start.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    package struct Timeouts: Sendable, Equatable {
        package var connect: UInt32 = 0
        package var idle: UInt32 = 0
        package var total: UInt32 = 0
        package var deadline: UInt32 = 0
<<<<<<< HEAD
        /// The minimum rate over `lowSpeedTime` in bytes per second; a lower one is an error.
=======
        /// The transfer fails if fewer bytes a second than this arrive over `lowSpeedTime`.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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
<<<<<<< HEAD
    /// The maximum size of all heads together in bytes; 0 means the core's limit of 64 KiB.
    package var maxHeadBytes: UInt32 = 0
    /// The maximum size of the body after decoding in bytes; 0 means no limit.
    package var maxBodyBytes: UInt64 = 0
    /// The average rate limit in bytes per second; 0 means no limit.
    package var maxRate: UInt64 = 0
    /// Whether it may be sent again on a new connection if a kept one turns out to be dead (RFC 9110, 9.2.2).
    package var isIdempotent = true
    /// Whether `transferStarted` is called.
    package var reportsStart = false
    /// Whether only addresses of the public internet are permitted; see `FERRY_PUBLIC_ONLY` in CFerry.h.
    package var publicOnly = false
    /// Sends nothing, but opens a connection unless this many are unused or being opened.
    package var connections: UInt32?
    /// Rarely used settings, so that copying other requests stays cheap.
=======
    /// The maximum size of all heads together, in bytes; 0 = the core's default of 64 KiB.
    package var maxHeadBytes: UInt32 = 0
    /// The maximum size of the body after decoding, in bytes; 0 = no limit.
    package var maxBodyBytes: UInt64 = 0
    /// The maximum rate of receiving, in bytes a second on average; 0 = no limit.
    package var maxRate: UInt64 = 0
    /// Whether the request may be sent again on a new connection if a kept one turns out to be dead (RFC 9110, 9.2.2).
    package var isIdempotent = true
    /// Whether `transferStarted` is called.
    package var reportsStart = false
    /// Whether to connect to addresses of the public internet only; see `FERRY_PUBLIC_ONLY` in CFerry.h.
    package var publicOnly = false
    /// Sends nothing and opens a connection for others, unless this many are already idle or being opened.
    package var connections: UInt32?
    /// Rarely used options, kept apart so that copying a request stays cheap.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    var extras: Extras?

    package init(url: String) {
        self.url = url
    }
}

<<<<<<< HEAD
/// The credentials for challenges of the server (401), with the permitted schemes; the best requested one is used.
=======
/// Credentials for the server's challenges (401): the best of the schemes that the server offers is used.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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

<<<<<<< HEAD
/// The proxy of one transfer.
package struct TransferProxy: Sendable, Hashable {
    package enum Kind: UInt8, Sendable {
        /// An HTTP proxy over plain TCP, with CONNECT for https.
=======
/// A proxy for one transfer.
package struct TransferProxy: Sendable, Hashable {
    package enum Kind: UInt8, Sendable {
        /// An HTTP proxy: requests are sent in plain text, and CONNECT for https.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
        case http = 1
        /// SOCKS 5 (RFC 1928) with local name resolution.
        case socks5
        /// SOCKS 5 with name resolution by the proxy.
        case socks5h
    }

    package var kind: Kind
    /// The address, `name:port` or `[v6]:port`.
    package var address: String
<<<<<<< HEAD
    /// Without schemes it is sent at once, without a challenge; then it must not contain a colon.
    package var user: String?
    package var password: String?
    /// The permitted schemes for challenges of an HTTP proxy (407); the best requested one is used.
=======
    /// The user. Without schemes, user and password are sent at once, without a challenge; the user has no colon then.
    package var user: String?
    package var password: String?
    /// Schemes for the challenges of an HTTP proxy (407): the best that it offers is used.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    package var schemes: TransferCredentials.Schemes = []

    package init(kind: Kind, address: String, user: String? = nil, password: String? = nil) {
        self.kind = kind
        self.address = address
        self.user = user
        self.password = password
    }
}

extension TransferRequest {
<<<<<<< HEAD
    /// The rarely used settings, behind one reference. It is replaced, and never changed.
=======
    /// The rarely used options together, behind one reference; immutable, so they are replaced as a whole.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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

<<<<<<< HEAD
    /// The proxy; `nil` for a direct connection.
=======
    /// The proxy to the server; `nil` connects directly.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    package var proxy: TransferProxy? {
        get { extras?.proxy }
        set { extras = Extras(proxy: newValue, credentials: credentials, encodings: acceptedEncodings) }
    }

<<<<<<< HEAD
    /// The credentials for challenges of the server, within the transfer.
=======
    /// The credentials for the server's challenges, within the transfer.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    package var credentials: TransferCredentials? {
        get { extras?.credentials }
        set { extras = Extras(proxy: proxy, credentials: newValue, encodings: acceptedEncodings) }
    }

<<<<<<< HEAD
    /// The `Accept-Encoding` field. One among the header fields takes precedence.
=======
    /// The `Accept-Encoding` to send. One among the headers takes precedence.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    package var acceptedEncodings: TransferEncodings {
        get { extras?.encodings ?? .standard }
        set { extras = Extras(proxy: proxy, credentials: credentials, encodings: newValue) }
    }
}

<<<<<<< HEAD
/// The content codings that a request accepts.
package enum TransferEncodings: Sendable, Hashable {
    /// Those of the transport.
    case standard
    /// None.
=======
/// The encodings of the body that a request accepts.
package enum TransferEncodings: Sendable, Hashable {
    /// Those of the transport.
    case standard
    /// No `Accept-Encoding` is sent.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    case none
    /// This value.
    case these(String)
}

<<<<<<< HEAD
/// Header fields in the core's format: one block of bytes, without an object per field.
///
/// Each field has two native 32-bit lengths, followed by the bytes of name and value. Because of the lengths the core
/// sees a line break in a value, and refuses it; nothing is escaped or cut.
=======
/// Header fields in the core's form: one block of bytes, without an object for each field.
///
/// Each field has two native 32-bit lengths, then the name's and the value's bytes. With explicit lengths the core can
/// see a line break in a value, and refuses it. Nothing is ever escaped or cut.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
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

<<<<<<< HEAD
    /// Appends a field and returns space for a value of this many bytes.
=======
    /// Appends a field whose value has this many bytes, which the closure writes.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
    package mutating func append(
        _ name: StaticString, count: Int, _ write: (UnsafeMutableBufferPointer<UInt8>) -> Void
    ) {
        name.withUTF8Buffer { begin($0, count) }
        bytes.append(contentsOf: repeatElement(0, count: count))
        bytes.withUnsafeMutableBufferPointer { write(UnsafeMutableBufferPointer(rebasing: $0.suffix(count))) }
    }

    private mutating func begin(_ name: UnsafeBufferPointer<UInt8>, _ count: Int) {
        let needed = bytes.count + 8 + name.count + count
<<<<<<< HEAD
        // With the exact capacity, the array would be reallocated for each field.
=======
        // If exactly the needed capacity were reserved, the array would be copied for each field.
>>>>>>> 897fb2c0c6669c1b0079ad10e05491d56daaa05c
        if bytes.capacity < needed { bytes.reserveCapacity(max(needed, 2 * bytes.capacity, 128)) }
        appendLength(name.count)
        appendLength(count)
        bytes.append(contentsOf: name)
    }

    private mutating func appendLength(_ length: Int) {
        withUnsafeBytes(of: UInt32(clamping: length)) { bytes.append(contentsOf: $0) }
    }
}
