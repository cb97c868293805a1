package import FerryTransport
public import FoundationEssentials

/// The response of a server. Head and body stay in the core's memory and are copied only when they are read.
public struct Response: Sendable {
    package let result: TransferResult

    /// `nil` if it is the first response of the run and came from the network.
    let origin: ResponseOrigin?

    /// The URL of the response, after redirects, without credentials.
    public let url: String

    init(_ result: TransferResult, url: String, origin: ResponseOrigin? = nil) {
        self.result = result
        self.url = url
        self.origin = origin
    }

    /// Whether the response came from a cache instead of the network.
    public var isFromCache: Bool { origin?.isFromCache ?? false }

    /// Whether a server sent it to this run, rather than the cache or an interceptor.
    var isFromServer: Bool { origin?.isIntercepted != true }

    /// The transfer that provides the measurements: that of the validation, if there was one, not the one that stored
    /// the response.
    private var measured: TransferResult { origin?.validation ?? result }

    /// The redirects that were followed, in order.
    public var redirects: [Redirect] { origin?.redirects ?? [] }

    /// The status code.
    public var status: Int { result.status }

    /// The header fields as received. In a response that the cache stored by RFC 9111, `Age` is its current age.
    public var headers: Headers {
        guard let cache = origin?.cache, cache.isHTTP, let age = cache.age else { return Headers(result) }
        return Headers(result, age: age.components.seconds)
    }

    /// The size of the body after decoding, in bytes.
    public var bodyLength: Int { Int(clamping: result.bodyLength) }

    /// The body after decoding. A small body is copied; a large one shares the response's memory.
    public var body: Data {
        let bytes = result.body
        guard let start = bytes.baseAddress else { return Data() }
        if bytes.count <= Self.copied { return Data(bytes: start, count: bytes.count) }
        return Data(sharing: result, start: start, count: bytes.count)
    }

    /// For smaller bodies, copying is cheaper than sharing.
    private static let copied = 4096

    /// A copy of the body after decoding.
    public var bytes: [UInt8] { Array(result.body) }

    /// The body as text, decoded with the charset of its `Content-Type`, or as UTF-8 if there is none or it is unknown
    /// on this machine. Invalid bytes are replaced by U+FFFD.
    public var text: String { text(as: TextEncoding(contentType: headers["Content-Type"]) ?? .utf8) }

    /// The body as text in this encoding, whatever its `Content-Type` says. Invalid bytes are replaced by U+FFFD.
    public func text(as encoding: TextEncoding) -> String {
        withExtendedLifetime(result) { encoding.decode(result.body) ?? String(decoding: result.body, as: UTF8.self) }
    }

    /// Calls `body` with the bytes of the body, without a copy. The bytes are valid until it returns.
    public func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        defer { withExtendedLifetime(result) {} }
        return try body(result.body)
    }

    /// How the end of the body was determined.
    public var framing: Framing { result.isFramedByClose ? .untilClose : .exact }

    /// How the end of a body is determined (RFC 9112, 6.3).
    public enum Framing: Sendable, Hashable {
        /// By a length or by chunks, or because there is no body.
        case exact
        /// By the end of the connection: it is unknown whether the body is complete.
        case untilClose
    }

    /// Address and port of the server; `nil` without a connection.
    public var peer: Peer? {
        if origin?.cache?.isHit == true { return nil }
        return Peer(measured)
    }

    /// The remote end of a connection.
    public struct Peer: Sendable, Hashable {
        /// The IPv4 or IPv6 address as text.
        public let address: String
        /// The port.
        public let port: Int
    }

    /// The HTTP version of the response.
    public var httpVersion: HTTPVersion { HTTPVersion(rawValue: result.httpVersion) ?? .http11 }

    /// A version of HTTP.
    public enum HTTPVersion: Int, Sendable, Hashable, CustomStringConvertible {
        /// HTTP/1.0.
        case http10 = 10
        /// HTTP/1.1.
        case http11 = 11
        /// HTTP/2.
        case http2 = 20

        /// The version as in a status line.
        public var description: String {
            switch self {
            case .http10: "HTTP/1.0"
            case .http11: "HTTP/1.1"
            case .http2: "HTTP/2"
            }
        }
    }

    /// Whether the response came over a reused connection.
    public var isReusedConnection: Bool { measured.isReusedConnection && origin?.cache?.isHit != true }

    /// The number of attempts, including retries and, unlike in ``RequestMetrics/attempts``, redirects. An attempt that
    /// did not reach a server counts.
    public var attempts: Int { origin?.attempts(measured) ?? result.attempts }

    /// Durations and bytes. The duration of a cache hit is not known here; observers receive it.
    public var metrics: RequestMetrics { RequestMetrics(result, origin) }
}

extension Response: CustomStringConvertible, CustomReflectable {
    /// One line without secrets, like `200 http://h/x?token=***, 12 bytes`.
    public var description: String { "\(status) \(Redaction.url(url)), \(bodyLength) bytes" }

    /// Status, URL and body length, without header fields and body.
    public var customMirror: Mirror {
        Mirror(self, children: ["status": status, "url": Redaction.url(url), "bodyLength": bodyLength])
    }
}

/// The result of a run: the value, and the response it was created from. The members of the response are members of the
/// reply, too.
@dynamicMemberLookup
public struct Reply<Value: Sendable>: Sendable {
    /// The value that ``Request/value(from:)`` created.
    public let value: Value

    /// The response of the server.
    public let response: Response

    /// Creates a reply.
    public init(value: Value, response: Response) {
        self.value = value
        self.response = response
    }

    /// A member of the response.
    public subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { response[keyPath: member] }
}

/// The format of a response body, and the check that a body must pass before a value is created.
///
/// The set is open: a module for another format can add a member.
public struct ResponseFormat: Sendable, CustomStringConvertible {
    /// The name, like `json`.
    public let name: String

    private let check: @Sendable (Response) throws(RequestError) -> Void

    /// Creates a format. `check` throws for a body in another format. It runs where the value is created, and not for
    /// an empty body.
    public init(_ name: String, check: @escaping @Sendable (Response) throws(RequestError) -> Void) {
        self.name = name
        self.check = check
    }

    /// Any bytes, without a check.
    public static let data = ResponseFormat("data") { _ in }

    /// JSON. It is parsed to check a schema or to create a value; without a schema, a value of bytes or text accepts
    /// any body.
    public static let json = ResponseFormat("json") { _ in }

    /// The name.
    public var description: String { name }

    func validate(_ response: Response) throws(RequestError) {
        if response.bodyLength > 0 { try check(response) }
    }
}

extension Data {
    /// Shares the bytes of a result without a copy.
    ///
    /// The result is retained here, and released by the deallocator when the last `Data` with this storage is released.
    /// Nothing writes to the bytes, because `Data` copies memory that it did not allocate before it changes it.
    init(sharing result: TransferResult, start: UnsafeRawPointer, count: Int) {
        let owner = Unmanaged.passRetained(result)
        self.init(
            bytesNoCopy: UnsafeMutableRawPointer(mutating: start), count: count,
            deallocator: .custom { _, _ in owner.release() })
    }
}

/// An informational response (RFC 9110, 15.2): a head without a body that arrived before the response, like `103 Early
/// Hints` (RFC 8297).
public struct InformationalResponse: Sendable, Hashable {
    /// The status, from 100 to 199.
    public let status: Int
    /// The header fields.
    public let headers: Headers

    /// Compares status and header fields.
    public static func == (left: InformationalResponse, right: InformationalResponse) -> Bool {
        left.status == right.status && left.headers.fields == right.headers.fields
    }

    /// Hashes status and header fields.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(status)
        hasher.combine(headers.fields)
    }
}

extension Response {
    /// The trailer fields after the body (RFC 9110, 6.5), as received. Empty if there are none, as in most responses,
    /// and if the response comes from a cache. They are not merged into ``headers``, and Ferry does not act on them.
    /// For a streamed response see ``ResponseBody/trailers``.
    public var trailers: Headers { result.trailerFields }

    /// The informational responses that arrived before this one, in order. Most servers send none.
    public var informational: [InformationalResponse] { InformationalResponse.all(in: result.informationalLines) }
}

extension InformationalResponse {
    /// The responses with these lines as their heads.
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
    /// `Name: value`, as checked by the core; `nil` for the empty line at the end of a head.
    fileprivate init?(line: [UInt8]) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        var value = line[(colon + 1)...]
        while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
        while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
        self.init(name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: value, as: UTF8.self))
    }
}
