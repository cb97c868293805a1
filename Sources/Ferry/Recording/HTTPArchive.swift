import FerryJSON
public import FoundationEssentials

/// Exchanges as they went over the network, in the format HAR 1.2 (HTTP archive), which browsers and proxies read and
/// write, too. A ``Recorder`` makes it; `StubTransport` of FerryTesting answers from it.
///
/// Members that HAR requires and Ferry does not know are -1 or empty, as the format says.
public struct HTTPArchive: Codable, Sendable {
    /// The exchanges, in the order of their starts.
    public var entries: [Entry]

    /// An archive of these exchanges.
    public init(entries: [Entry] = []) { self.entries = entries }

    /// Reads an archive. Throws a `JSONSyntaxError` for what is no JSON, a `DecodingError` for what is no archive.
    public init(json: [UInt8]) throws { self = try FerryJSONDecoder().decode(HTTPArchive.self, from: Data(json)) }

    /// Reads an archive from a file. Throws the error of the file, too.
    public init(contentsOf path: String) throws {
        self = try FerryJSONDecoder().decode(HTTPArchive.self, from: try Data(contentsOf: URL(filePath: path)))
    }

    /// The archive as JSON, indented.
    public func json() throws -> Data {
        var encoder = FerryJSONEncoder()
        encoder.outputFormatting = [.prettyPrinted]
        return try encoder.encode(self)
    }

    /// Writes the archive to a file, in one step: a file that is there is replaced by a complete one.
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
    /// One exchange: a run with a redirect and a retry has three.
    public struct Entry: Codable, Sendable {
        /// When the request was handed to the network, in ISO 8601.
        public var startedDateTime: String
        /// Milliseconds from then to the end of the response.
        public var time: Double
        /// What was sent.
        public var request: Request
        /// What was received; of an exchange that failed the status is 0.
        public var response: Response
        /// Required by the format, and empty.
        public var cache = Cache()
        /// The parts of ``time``.
        public var timings: Timings
        /// The address connected to.
        public var serverIPAddress: String?
        /// The code of the failure, like `timeout(connect)`; a member of Ferry's own.
        public var _error: String?
    }

    /// Required by the format.
    public struct Cache: Codable, Sendable {}

    /// A header field, or an argument of a query.
    public struct Pair: Codable, Sendable, Hashable {
        /// The name.
        public var name: String
        /// The value; `***` where it was a secret.
        public var value: String

        /// A pair of its parts.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// What was sent.
    public struct Request: Codable, Sendable {
        /// The method.
        public var method: String
        /// The absolute URL.
        public var url: String
        /// `HTTP/1.1`
        public var httpVersion = "HTTP/1.1"
        /// Not filled in: the fields have them.
        public var cookies: [Pair]? = []
        /// The fields, without those that the core adds.
        public var headers: [Pair]
        /// The arguments of the query.
        public var queryString: [Pair]? = []
        /// The body; `nil` when there is none.
        public var postData: PostData?
        /// -1
        public var headersSize: Int? = -1
        /// Bytes of the body that were sent.
        public var bodySize: Int? = -1
    }

    /// A request's body.
    public struct PostData: Codable, Sendable {
        /// Its media type.
        public var mimeType: String
        /// The body as text; what is not UTF-8 is in base 64.
        public var text: String?
        /// `base64`, or `nil`; a member of Ferry's own.
        public var _encoding: String?
    }

    /// What was received.
    public struct Response: Codable, Sendable {
        /// The status; 0 when there was no response.
        public var status: Int
        /// Empty.
        public var statusText = ""
        /// `HTTP/1.1` or `HTTP/2`
        public var httpVersion = "HTTP/1.1"
        /// Not filled in: the fields have them.
        public var cookies: [Pair]? = []
        /// The fields.
        public var headers: [Pair]
        /// The body.
        public var content: Content
        /// The `Location` of the response.
        public var redirectURL: String? = ""
        /// Bytes of the head.
        public var headersSize: Int? = -1
        /// Bytes of the body, before decoding.
        public var bodySize: Int? = -1
    }

    /// A response's body, after decoding.
    public struct Content: Codable, Sendable {
        /// Its bytes.
        public var size: Int
        /// Its media type.
        public var mimeType: String? = ""
        /// The body as text, by ``encoding``; `nil` when it was not recorded.
        public var text: String?
        /// `base64`, or `nil` for UTF-8.
        public var encoding: String?
        /// Why the body is not all here.
        public var comment: String?
    }

    /// Parts of the time, in milliseconds; -1 where a part did not take place.
    public struct Timings: Codable, Sendable {
        /// In the queue.
        public var blocked: Double? = -1
        /// The lookup of the name.
        public var dns: Double? = -1
        /// The connection, TLS included.
        public var connect: Double? = -1
        /// TLS.
        public var ssl: Double? = -1
        /// Not measured by itself.
        public var send: Double = 0
        /// Until the first byte of the response.
        public var wait: Double = 0
        /// The rest.
        public var receive: Double = 0
    }
}

extension HTTPArchive.Content {
    /// The body as it was; `nil` when it was not recorded, or is not base 64.
    public var bytes: [UInt8]? {
        guard let text else { return size == 0 ? [] : nil }
        return encoding == "base64" ? Data(base64Encoded: text).map { Array($0) } : Array(text.utf8)
    }
}

extension HTTPArchive.PostData {
    /// The body as it was; `nil` when it was not recorded, or is not base 64.
    public var bytes: [UInt8]? {
        guard let text else { return nil }
        return _encoding == "base64" ? Data(base64Encoded: text).map { Array($0) } : Array(text.utf8)
    }
}
