import FerryJSON
public import FoundationEssentials

/// Recorded exchanges in the format HAR 1.2 (HTTP archive), which browsers and proxies also use. A ``Recorder`` creates
/// it, and `StubTransport` of FerryTesting responds from it.
///
/// Members that HAR requires but Ferry does not know are -1 or empty, as the format specifies.
public struct HTTPArchive: Codable, Sendable {
    /// The exchanges, in the order of their starts.
    public var entries: [Entry]

    /// Creates an archive of these exchanges.
    public init(entries: [Entry] = []) { self.entries = entries }

    /// Parses an archive. Throws a `JSONSyntaxError` if it is not JSON, and a `DecodingError` if it is not an archive.
    public init(json: [UInt8]) throws { self = try FerryJSONDecoder().decode(HTTPArchive.self, from: Data(json)) }

    /// Reads an archive from a file. Throws file errors, too.
    public init(contentsOf path: String) throws {
        self = try FerryJSONDecoder().decode(HTTPArchive.self, from: try Data(contentsOf: URL(filePath: path)))
    }

    /// The archive as indented JSON.
    public func json() throws -> Data {
        var encoder = FerryJSONEncoder()
        encoder.outputFormatting = [.prettyPrinted]
        return try encoder.encode(self)
    }

    /// Writes the archive to a file atomically: an existing file is replaced by a complete one.
    public func write(to path: String) throws { try json().write(to: URL(filePath: path), options: .atomic) }

    private struct Log: Codable {
        struct Creator: Codable {
            var name = "Ferry"
            var version = "0.1"
        }

        var version = "1.2"
        var creator: Creator? = Creator()
        var entries: [Entry]
    }

    private enum CodingKeys: String, CodingKey { case log }

    /// Decodes an archive.
    public init(from decoder: any Decoder) throws {
        entries = try decoder.container(keyedBy: CodingKeys.self).decode(Log.self, forKey: .log).entries
    }

    /// Encodes the archive.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(Log(entries: entries), forKey: .log)
    }
}

extension HTTPArchive {
    /// One exchange. A run with a redirect and a retry has three.
    public struct Entry: Codable, Sendable {
        /// When the request was handed to the network, in ISO 8601.
        public var startedDateTime: String
        /// Milliseconds from the start to the end of the response.
        public var time: Double
        /// The request.
        public var request: Request
        /// The response. If the exchange failed, the status is 0.
        public var response: Response
        /// Required by the format; empty.
        public var cache = Cache()
        /// The parts of ``time``.
        public var timings: Timings
        /// The address of the server.
        public var serverIPAddress: String?
        /// The code of the error, like `timeout(connect)`; an extension of Ferry's.
        public var _error: String?
    }

    /// Required by the format.
    public struct Cache: Codable, Sendable {}

    /// A header field or a query argument.
    public struct Pair: Codable, Sendable, Hashable {
        /// The name.
        public var name: String
        /// The value; `***` if it was secret.
        public var value: String

        /// Creates a pair.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The request of an exchange.
    public struct Request: Codable, Sendable {
        /// The method.
        public var method: String
        /// The absolute URL.
        public var url: String
        /// Always `HTTP/1.1`.
        public var httpVersion = "HTTP/1.1"
        /// Empty: the header fields contain the cookies.
        public var cookies: [Pair]? = []
        /// The header fields, without those that the core adds.
        public var headers: [Pair]
        /// The arguments of the query.
        public var queryString: [Pair]? = []
        /// The body; `nil` if there is none.
        public var postData: PostData?
        /// Always -1, unknown.
        public var headersSize: Int? = -1
        /// The number of body bytes that were sent.
        public var bodySize: Int? = -1
    }

    /// The body of a request.
    public struct PostData: Codable, Sendable {
        /// The media type.
        public var mimeType: String
        /// The body as text, or in Base64 if it is not UTF-8.
        public var text: String?
        /// `base64` or `nil`; an extension of Ferry's.
        public var _encoding: String?
    }

    /// The response of an exchange.
    public struct Response: Codable, Sendable {
        /// The status; 0 if there was no response.
        public var status: Int
        /// Empty.
        public var statusText = ""
        /// `HTTP/1.1` or `HTTP/2`.
        public var httpVersion = "HTTP/1.1"
        /// Empty: the header fields contain the cookies.
        public var cookies: [Pair]? = []
        /// The header fields.
        public var headers: [Pair]
        /// The body.
        public var content: Content
        /// The `Location` field of the response.
        public var redirectURL: String? = ""
        /// The size of the head in bytes.
        public var headersSize: Int? = -1
        /// The size of the body before decoding, in bytes.
        public var bodySize: Int? = -1
    }

    /// The body of a response, after decoding, unless `_isCoded` says otherwise.
    public struct Content: Codable, Sendable {
        /// The size in bytes.
        public var size: Int
        /// The media type.
        public var mimeType: String? = ""
        /// The body as text in ``encoding``; `nil` if it was not recorded.
        public var text: String?
        /// `base64`, or `nil` for UTF-8.
        public var encoding: String?
        /// Why the body is incomplete.
        public var comment: String?
        /// Whether the body is still in the codings of the `Content-Encoding` field, because the core does not decode
        /// them; an extension of Ferry's.
        public var _isCoded: Bool?
    }

    /// The parts of the duration in milliseconds; -1 if a part did not take place.
    public struct Timings: Codable, Sendable {
        /// The wait in the queue.
        public var blocked: Double? = -1
        /// The name lookup.
        public var dns: Double? = -1
        /// The connect, including TLS.
        public var connect: Double? = -1
        /// The TLS handshake.
        public var ssl: Double? = -1
        /// Always 0, because it is not measured separately.
        public var send: Double = 0
        /// The time until the first byte of the response.
        public var wait: Double = 0
        /// The rest of the response.
        public var receive: Double = 0
    }
}

extension HTTPArchive.Content {
    /// The original body; `nil` if it was not recorded or is not valid Base64.
    public var bytes: [UInt8]? {
        guard let text else { return size == 0 ? [] : nil }
        return encoding == "base64" ? Data(base64Encoded: text).map { Array($0) } : Array(text.utf8)
    }
}

extension HTTPArchive.PostData {
    /// The original body; `nil` if it was not recorded or is not valid Base64.
    public var bytes: [UInt8]? {
        guard let text else { return nil }
        return _encoding == "base64" ? Data(base64Encoded: text).map { Array($0) } : Array(text.utf8)
    }
}
