internal import CFerry
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

extension TransferRequest {
    /// Calls `body` with the request in the core's form. Everything it points to is valid until `body` returns; the
    /// core copies it before that.
    func withCore<R>(id: TransferID, _ body: (UnsafePointer<ferry_request>) -> R) -> R {
        var core = ferry_request()
        core.id = id
        core.priority = ring.rawValue
        core.connect_ms = timeouts.connect
        core.idle_ms = timeouts.idle
        core.total_ms = timeouts.total
        core.deadline_ms = timeouts.deadline
        core.low_speed_bytes = timeouts.lowSpeedBytes
        core.low_speed_ms = timeouts.lowSpeedTime
        core.max_head = maxHeadBytes
        core.max_body = maxBodyBytes
        core.max_rate = maxRate
        core.flags = flags
        core.connections = connections ?? 0
        switch responseBody {
        case .collect: core.response_kind = UInt8(FERRY_COLLECT)
        case .stream, .held: core.response_kind = UInt8(FERRY_STREAM)
        }
        var url = url
        var method = method
        return url.withUTF8 { url in
            method.withUTF8 { method in
                headers.withBytes(adding: trace) { headers in
                    self.body.withBytes { kind, bytes, length in
                        core.body_kind = kind
                        core.body = bytes
                        core.body_length = length
                        core.headers = headers.baseAddress
                        core.headers_length = headers.count
                        return url.withMemoryRebound(to: CChar.self) { url in
                            method.withMemoryRebound(to: CChar.self) { method in
                                core.url = url.baseAddress
                                core.url_length = url.count
                                core.method = method.baseAddress
                                core.method_length = method.count
                                guard let extras else { return body(&core) }
                                return extras.withCore {
                                    core.extras = $0
                                    return body(&core)
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    private var flags: UInt32 {
        var flags = UInt32(FERRY_DECODE)
        if isIdempotent { flags |= UInt32(FERRY_IDEMPOTENT) }
        if reportsStart { flags |= UInt32(FERRY_NOTIFY_START) }
        if case .held = responseBody { flags |= UInt32(FERRY_HOLD_BODY) }
        if publicOnly { flags |= UInt32(FERRY_PUBLIC_ONLY) }
        if connections != nil { flags |= UInt32(FERRY_CONNECT) }
        if isDuplex { flags |= UInt32(FERRY_DUPLEX) }
        if sendsTrailers { flags |= UInt32(FERRY_TRAILERS) }
        if reportsInformational { flags |= UInt32(FERRY_NOTIFY_INFORMATIONAL) }
        if passesLimits { flags |= UInt32(FERRY_UNLIMITED) }
        return flags
    }
}

extension TransferRequest.Extras {
    fileprivate func withCore<R>(_ body: (UnsafePointer<ferry_extras>) -> R) -> R {
        var core = ferry_extras()
        let text: String?
        switch encodings {
        case .standard: (core.encodings_kind, text) = (UInt8(FERRY_ENCODINGS_OPTION), nil)
        case .none: (core.encodings_kind, text) = (UInt8(FERRY_ENCODINGS_NONE), nil)
        case .these(let these): (core.encodings_kind, text) = (UInt8(FERRY_ENCODINGS_THESE), these)
        }
        return proxy.withCore { proxy in
            credentials.withCore { credentials in
                text.withOptionalCString { text in
                    core.proxy = proxy
                    core.credentials = credentials
                    core.encodings = text
                    return body(&core)
                }
            }
        }
    }
}

extension TransferProxy? {
    fileprivate func withCore<R>(_ body: (UnsafePointer<ferry_proxy>?) -> R) -> R {
        guard let self else { return body(nil) }
        return self.address.withCString { address in
            self.user.withOptionalCString { user in
                self.password.withOptionalCString { password in
                    var core = ferry_proxy(
                        address: address, user: user, password: password, kind: self.kind.rawValue,
                        schemes: self.schemes.rawValue)
                    return body(&core)
                }
            }
        }
    }
}

extension TransferCredentials? {
    fileprivate func withCore<R>(_ body: (UnsafePointer<ferry_credentials>?) -> R) -> R {
        guard let self else { return body(nil) }
        return self.user.withCString { user in
            self.password.withCString { password in
                var core = ferry_credentials(
                    user: user, password: password, schemes: self.schemes.rawValue)
                return body(&core)
            }
        }
    }
}

extension TransferRequest.Body {
    fileprivate func withBytes<R>(_ body: (UInt8, UnsafeRawPointer?, UInt64) -> R) -> R {
        switch self {
        case .none: body(UInt8(FERRY_BODY_NONE), nil, 0)
        case .bytes(let bytes):
            bytes.withUnsafeBytes { body(UInt8(FERRY_BODY_BYTES), $0.baseAddress, UInt64($0.count)) }
        case .data(let data):
            data.withUnsafeBytes { body(UInt8(FERRY_BODY_BYTES), $0.baseAddress, UInt64($0.count)) }
        case .pull(let length): body(UInt8(FERRY_BODY_PULL), nil, length ?? UInt64.max)
        }
    }
}

extension String? {
    /// Calls `body` with the C string, `nil` for `nil`; it is valid until `body` returns.
    func withOptionalCString<R>(_ body: (UnsafePointer<CChar>?) -> R) -> R {
        guard let self else { return body(nil) }
        return self.withCString(body)
    }
}
