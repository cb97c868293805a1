package import FerryTransport
public import FoundationEssentials

/// What the server answered. Head and body lie where the core put them and are copied only when asked for.
public struct Response: Sendable {
    package let result: TransferResult

    /// `nil` when it was the first answer, and came from the network.
    let origin: ResponseOrigin?

    /// The URL that it came from, after redirects, without the credentials in it.
    public let url: String

    init(_ result: TransferResult, url: String, origin: ResponseOrigin? = nil) {
        self.result = result
        self.url = url
        self.origin = origin
    }

    /// Whether it came from a cache and not from the network.
    public var isFromCache: Bool { origin?.isFromCache ?? false }

    /// Whether a server gave it to this run: neither the cache nor an interceptor did.
    var isFromServer: Bool { origin?.isIntercepted != true }

    /// The transfer that it was measured by: where the server has validated it, not the one that brought it.
    private var measured: TransferResult { origin?.validation ?? result }

    /// The redirects that were followed, in their order.
    public var redirects: [Redirect] { origin?.redirects ?? [] }

    /// The status code.
    public var status: Int { result.status }

    /// The header fields, as they came. Of a response that the cache stored by RFC 9111, `Age` says how old it is now.
    public var headers: Headers {
        guard let cache = origin?.cache, cache.isHTTP, let age = cache.age else { return Headers(result) }
        return Headers(result, age: age.components.seconds)
    }

    /// Bytes of the body, after decoding.
    public var bodyLength: Int { Int(clamping: result.bodyLength) }

    /// The body, after decoding. A small one is copied, a large one shares the response's memory.
    public var body: Data {
        let bytes = result.body
        guard let start = bytes.baseAddress else { return Data() }
        if bytes.count <= Self.copied { return Data(bytes: start, count: bytes.count) }
        return Data(sharing: result, start: start, count: bytes.count)
    }

    /// Below this a copy costs less than sharing.
    private static let copied = 4096

    /// The body, after decoding, copied.
    public var bytes: [UInt8] { Array(result.body) }

    /// The body as text, by the charset of its `Content-Type`. Without one, and with one that this machine does not
    /// know, it is UTF-8. What is not text in this encoding is repaired.
    public var text: String { text(as: TextEncoding(contentType: headers["Content-Type"]) ?? .utf8) }

    /// The body as text in this encoding, whatever its `Content-Type` says. What is not text in it is repaired.
    public func text(as encoding: TextEncoding) -> String {
        withExtendedLifetime(result) { encoding.decode(result.body) ?? String(decoding: result.body, as: UTF8.self) }
    }

    /// Calls `body` with the bytes of the body, without a copy; they live until it returns.
    public func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        defer { withExtendedLifetime(result) {} }
        return try body(result.body)
    }

    /// How the end of the body was known.
    public var framing: Framing { result.isFramedByClose ? .untilClose : .exact }

    /// How the end of a body is known (RFC 9112, 6.3).
    public enum Framing: Sendable, Hashable {
        /// By a length, by chunks, or because there is none.
        case exact
        /// By the end of the connection: whether all of it came cannot be known.
        case untilClose
    }

    /// The address and port connected to; `nil` without a connection.
    public var peer: Peer? {
        if origin?.cache?.isHit == true { return nil }
        return Peer(measured)
    }

    /// Where a connection led.
    public struct Peer: Sendable, Hashable {
        /// IPv4 or IPv6 address as text.
        public let address: String
        /// The port.
        public let port: Int
    }

    /// The protocol the answer came by.
    public var httpVersion: HTTPVersion { HTTPVersion(rawValue: result.httpVersion) ?? .http11 }

    /// A version of HTTP.
    public enum HTTPVersion: Int, Sendable, Hashable, CustomStringConvertible {
        /// HTTP/1.0
        case http10 = 10
        /// HTTP/1.1
        case http11 = 11
        /// HTTP/2
        case http2 = 20

        /// As it is written in a status line.
        public var description: String {
            switch self {
            case .http10: "HTTP/1.0"
            case .http11: "HTTP/1.1"
            case .http2: "HTTP/2"
            }
        }
    }

    /// Whether it came over a kept connection.
    public var isReusedConnection: Bool { measured.isReusedConnection && origin?.cache?.isHit != true }

    /// How often the request was tried, redirects and retries included; an attempt that did not reach a server counts.
    public var attempts: Int { origin?.attempts(measured) ?? result.attempts }

    /// Times and bytes. How long a hit in the cache took is not known here: observers are told.
    public var metrics: RequestMetrics { RequestMetrics(result, origin) }
}

extension Response: CustomStringConvertible, CustomReflectable {
    /// One line without secrets, like `200 http://h/x?token=***, 12 bytes`.
    public var description: String { "\(status) \(Redaction.url(url)), \(bodyLength) bytes" }

    /// Likewise; header fields and body are left out.
    public var customMirror: Mirror {
        Mirror(self, children: ["status": status, "url": Redaction.url(url), "bodyLength": bodyLength])
    }
}

/// What a run brings: the value, and the response it was made from, whose members show through.
@dynamicMemberLookup
public struct Reply<Value: Sendable>: Sendable {
    /// What ``Request/value(from:)`` made.
    public let value: Value

    /// What the server answered.
    public let response: Response

    /// A reply of its parts.
    public init(value: Value, response: Response) {
        self.value = value
        self.response = response
    }

    /// A member of the response.
    public subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { response[keyPath: member] }
}

/// What the body of an answer is taken for, and how it is checked before a value is made of it.
///
/// An open set: a module that can read another format adds a member of its own.
public struct ResponseFormat: Sendable, CustomStringConvertible {
    /// Its name, like `json`.
    public let name: String

    private let check: @Sendable (Response) throws(RequestError) -> Void

    /// A format of one's own. `check` throws for a body that is not of it; it runs where the value is made, and not for
    /// an empty body.
    public init(_ name: String, check: @escaping @Sendable (Response) throws(RequestError) -> Void) {
        self.name = name
        self.check = check
    }

    /// Bytes: nothing is looked at.
    public static let data = ResponseFormat("data") { _ in }

    /// JSON, which is read for a schema, or where the value is made of it: without a schema a value of bytes or text
    /// takes any body.
    public static let json = ResponseFormat("json") { _ in }

    /// Its name.
    public var description: String { name }

    func validate(_ response: Response) throws(RequestError) {
        if response.bodyLength > 0 { try check(response) }
    }
}

extension Data {
    /// Bytes of a result, without a copy.
    ///
    /// The result is retained here and released by the deallocator, once, when the last `Data` of this storage goes.
    /// Nobody writes to the bytes: `Data` copies before it changes memory that it did not allocate.
    init(sharing result: TransferResult, start: UnsafeRawPointer, count: Int) {
        let owner = Unmanaged.passRetained(result)
        self.init(
            bytesNoCopy: UnsafeMutableRawPointer(mutating: start), count: count,
            deallocator: .custom { _, _ in owner.release() })
    }
}

/// An informational response (RFC 9110, 15.2): a head without a body that came before the response itself, like
/// `103 Early Hints` (RFC 8297).
public struct InformationalResponse: Sendable, Hashable {
    /// From 100 to 199.
    public let status: Int
    /// Its header fields.
    public let headers: Headers

    /// By status and fields.
    public static func == (left: InformationalResponse, right: InformationalResponse) -> Bool {
        left.status == right.status && left.headers.fields == right.headers.fields
    }

    /// By status and fields.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(status)
        hasher.combine(headers.fields)
    }
}

extension Response {
    /// The fields behind the body (RFC 9110, 6.5), as the server sent them; empty where there are none, as in most
    /// responses, and where the response comes from a cache. They are not merged into ``headers``, and Ferry does not
    /// act on them. Of a streamed response see ``ResponseBody/trailers``.
    public var trailers: Headers { result.trailerFields }

    /// The informational responses that came before this one, in their order. The default of most servers is none.
    public var informational: [InformationalResponse] { InformationalResponse.all(in: result.informationalLines) }
}

extension InformationalResponse {
    /// Those whose heads these lines are.
    static func all(in lines: [[UInt8]]) -> [InformationalResponse] {
        var found: [InformationalResponse] = []
        for line in lines {
            if line.starts(with: "HTTP/".utf8) {
                let status = line.split(separator: UInt8(ascii: " ")).dropFirst().first
                found.append(
                    InformationalResponse(
                        status: status.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0, headers: Headers()))
            } else if let last = found.last, let field = Headers.Field(line: line) {
                var headers = last.headers
                headers.append(field.name, field.value)
                found[found.count - 1] = InformationalResponse(status: last.status, headers: headers)
            }
        }
        return found
    }
}

extension TransferResult {
    /// The trailers as fields.
    var trailerFields: Headers { Headers(trailerLines.compactMap { Headers.Field(line: $0) }) }
}

extension Headers.Field {
    /// `Name: value`, as the core has checked it. `nil` of the empty line at the end of a head.
    fileprivate init?(line: [UInt8]) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        var value = line[(colon + 1)...]
        while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
        while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
        self.init(name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: value, as: UTF8.self))
    }
}
