package import FerryTransport
public import FoundationEssentials

/// What the server answered. Head and body lie where the core put them and are copied only when asked for.
public struct Response: Sendable {
    package let result: TransferResult

    /// `nil` when it was the first answer, and came from the network.
    let trail: Trail?

    /// The URL that it came from, after redirects, without the credentials in it.
    public let url: String

    init(_ result: TransferResult, url: String, trail: Trail? = nil) {
        self.result = result
        self.url = url
        self.trail = trail
    }

    /// Whether it came from a cache and not from the network.
    public var isFromCache: Bool { trail?.isFromCache ?? false }

    /// Whether a server gave it to this run: neither the cache nor an interceptor did.
    var isFromServer: Bool { trail?.isIntercepted != true }

    /// The redirects that were followed, in their order.
    public var redirects: [Redirect] { trail?.redirects ?? [] }

    /// The status code.
    public var status: Int { result.status }

    /// The header fields, as they came.
    public var headers: Headers { Headers(result) }

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

    /// The body as UTF-8, with what is not UTF-8 repaired.
    public var text: String { String(decoding: result.body, as: UTF8.self) }

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
        if trail?.cache?.isHit == true { return nil }
        let address = result.peer
        return address.isEmpty ? nil : Peer(address: address, port: result.peerPort)
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
    public var isReusedConnection: Bool { result.isReusedConnection && trail?.cache?.isHit != true }

    /// How often the request was tried, redirects and retries included; an attempt that did not reach a server counts.
    public var attempts: Int { trail?.attempts(result) ?? result.attempts }

    /// Times and bytes. How long a hit in the cache took is not known here: observers are told.
    public var metrics: RequestMetrics { RequestMetrics(result, trail) }
}
