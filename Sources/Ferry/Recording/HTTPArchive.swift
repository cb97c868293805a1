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

    /// Reads an archive from a file. Throws the errors of ``init(json:)``, and Foundation's error if the file cannot be
    /// read.
    public init(contentsOf path: String) throws {
        self = try FerryJSONDecoder().decode(HTTPArchive.self, from: try Data(contentsOf: URL(filePath: path)))
    }

    /// The archive as indented JSON. Throws an `EncodingError` if a time is not a finite number.
    public func json() throws -> Data {
        var encoder = FerryJSONEncoder()
        encoder.outputFormatting = [.prettyPrinted]
        return try encoder.encode(self)
    }

    /// Writes the archive to a file atomically: an existing file is replaced by a complete one. Throws the error of
    /// ``json()``, and Foundation's error if the file cannot be written.
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

/// What a body consists of, by its media type. The recorder masks secrets in these pieces, and a replayed request is
/// compared with a recorded one piece by piece.
package enum BodyFormat: Equatable {
    case form, json
    /// Lines of JSON (application/x-ndjson, RFC 7464).
    case lines
    /// Server-sent events, whose data is often JSON.
    case events
    /// Parts between this boundary; `nil` if the type has none. Those of a form have names.
    case parts(boundary: String?, haveNames: Bool)
    /// An HTTP message, whose fields may be secret.
    case message
    case other

    private static let endsOfLines = ["ndjson", "jsonl", "jsonlines", "json-lines", "json-seq"]

    package init(type: String) {
        let bytes = type.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",") }
        let name = String(decoding: bytes.filter { $0 > 0x20 }.map(lowercased), as: UTF8.self)
        switch name {
        case "application/x-www-form-urlencoded": self = .form
        case "text/event-stream": self = .events
        case "application/http", "message/http": self = .message
        case let name where name.hasPrefix("multipart/"):
            let boundary = Self.parameters(of: type)?.first { equalNames($0.name, "boundary") }?.value
            self = .parts(boundary: boundary, haveNames: name == "multipart/form-data")
        case let name where Self.endsOfLines.contains(where: { name.hasSuffix($0) }): self = .lines
        default: self = name.contains("json") ? .json : .other
        }
    }

    /// The parameters of a header field's value, without quotation marks and escapes; `nil` if they are malformed.
    package static func parameters(of value: String) -> [(name: String, value: String)]? {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let (semicolon, quote) = (UInt8(ascii: ";"), UInt8(ascii: "\""))
        var parameters: [(name: String, value: String)] = []
        var rest = Array(value.utf8)[...].drop { $0 != semicolon }
        while rest.popFirst() != nil {
            rest = rest.drop(while: isBlank)
            if rest.isEmpty || rest.first == semicolon { continue }
            let name = rest.prefix { $0 != semicolon && $0 != UInt8(ascii: "=") }
            rest = rest.dropFirst(name.count)
            guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
            rest = rest.drop(while: isBlank)
            var text: [UInt8] = []
            if rest.first == quote {
                rest.removeFirst()
                while rest.first != quote {
                    if rest.first == UInt8(ascii: "\\") { rest.removeFirst() }
                    guard let byte = rest.popFirst() else { return nil }
                    text.append(byte)
                }
                rest = rest.dropFirst().drop(while: isBlank)
                if rest.first ?? semicolon != semicolon { return nil }
            } else {
                text = Array(rest.prefix { $0 != semicolon })
                rest = rest.dropFirst(text.count)
                while let last = text.last, isBlank(last) { text.removeLast() }
            }
            if name.contains(quote) || text.contains(where: isControl) { return nil }
            let bare = String(decoding: name.filter { !isBlank($0) }, as: UTF8.self)
            parameters.append((bare, String(decoding: text, as: UTF8.self)))
        }
        return parameters
    }

    // MARK: Lines

    package static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    package struct Line {
        package var text: ArraySlice<UInt8>
        /// Empty at the end of the body.
        package var end: ArraySlice<UInt8>
    }

    /// The lines of a text after its byte order mark. They end with CR, LF or both.
    package static func lines(of text: [UInt8]) -> [Line] {
        var (lines, start) = ([Line](), text.starts(with: byteOrderMark) ? byteOrderMark.count : 0)
        var index = start
        while index < text.count {
            guard text[index] == 0x0A || text[index] == 0x0D else {
                index += 1
                continue
            }
            let isPair = text[index] == 0x0D && index + 1 < text.count && text[index + 1] == 0x0A
            let end = index + (isPair ? 2 : 1)
            lines.append(Line(text: text[start..<index], end: text[index..<end]))
            (start, index) = (end, end)
        }
        lines.append(Line(text: text[start...], end: []))
        return lines
    }

    // MARK: Parts

    package struct Part {
        /// The header fields with the empty line after them.
        package var head: ArraySlice<UInt8>
        package var content: ArraySlice<UInt8>

        /// The header fields; `nil` if they are malformed.
        package var fields: [(name: String, value: String)]? {
            var lines: [[UInt8]] = []
            for line in head.split(separator: [0x0D, 0x0A]) {
                if line.contains(where: { $0 == 0x0A || $0 == 0x0D }) { return nil }
                // A line that begins with white space continues a field.
                let continues = line.first == 0x20 || line.first == 0x09
                if !continues { lines.append([]) }
                if lines.isEmpty { return nil }
                lines[lines.count - 1] += line
            }
            var fields: [(name: String, value: String)] = []
            for line in lines {
                guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
                let value = line[(colon + 1)...].drop { $0 <= 0x20 }
                fields.append(
                    (
                        String(decoding: line[..<colon].filter { $0 > 0x20 }, as: UTF8.self),
                        String(decoding: value, as: UTF8.self)
                    ))
            }
            return fields
        }

        /// The value of the field with this name, empty if there is none; `nil` if there are several, or if the head is
        /// malformed.
        package func field(_ name: String) -> String? {
            guard let values = fields?.filter({ equalNames($0.name, name) }) else { return nil }
            return values.count > 1 ? nil : values.first?.value ?? ""
        }
    }

    /// Beyond this number the parts of a body are not read.
    private static let mostParts = 1000

    /// The parts of a multipart body (RFC 2046, 5.1.1); `nil` if it is malformed, has too many parts, or has text
    /// outside of its parts.
    package static func parts(of body: [UInt8], between boundary: String) -> [Part]? {
        let pieces = ([0x0D, 0x0A] + body).split(
            separator: Array("\r\n--\(boundary)".utf8), maxSplits: mostParts + 2, omittingEmptySubsequences: false)
        // Beside the parts, what comes before the first and after the last.
        guard !boundary.isEmpty, (2...mostParts + 2).contains(pieces.count), let first = pieces.first,
            let last = pieces.last,
            first.allSatisfy({ $0 <= 0x20 }), last.starts(with: "--".utf8),
            last.dropFirst(2).allSatisfy({ $0 <= 0x20 })
        else { return nil }
        var parts: [Part] = []
        for piece in pieces.dropFirst().dropLast() {
            guard piece.starts(with: [0x0D, 0x0A]),
                let end = piece.firstRange(of: [0x0D, 0x0A, 0x0D, 0x0A])?.upperBound
            else { return nil }
            parts.append(Part(head: piece[..<end], content: piece[end...]))
        }
        return parts
    }
}
