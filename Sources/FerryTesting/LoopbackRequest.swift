internal import CLoopback

/// A request as received by the server.
public struct LoopbackRequest: Sendable, Equatable {
    /// The method: `GET`, `POST`, …
    public var method: String
    /// The target of the request line, as received: normally path and query.
    public var target: String
    /// The header fields, in order and with duplicates.
    public var headers: LoopbackHeaders
    /// The body, without chunked framing. A recorded request has at most ``LoopbackServer/Options/recordedBodyBytes``
    /// of it.
    public var body: [UInt8]
    /// The number of bytes of the body that were received.
    public var bodyLength: UInt64
    /// The number of the connection it came on, 1 for the first accepted.
    public var connection: UInt64

    /// The target without its query.
    public var path: String { String(target.prefix { $0 != "?" }) }

    /// The part after the question mark, still escaped; `nil` if there is none.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The body decoded as UTF-8.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Copies what C provides only until its callback returns.
    init(_ request: loopback_request) {
        let head = UnsafeRawBufferPointer(start: request.head, count: request.head_length)
        let lines = head.split(separator: UInt8(ascii: "\n")).map { line in
            line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        }
        let words = lines.first?.split(separator: UInt8(ascii: " "), maxSplits: 2) ?? []
        method = words.isEmpty ? "" : String(decoding: words[0], as: UTF8.self)
        target = words.count < 2 ? "" : String(decoding: words[1], as: UTF8.self)
        headers = LoopbackHeaders(lines.dropFirst().compactMap(LoopbackHeaders.Field.init(line:)))
        body = request.body.map { Array(UnsafeRawBufferPointer(start: $0, count: request.body_length)) } ?? []
        bodyLength = request.body_total
        connection = request.connection
    }
}

extension LoopbackHeaders.Field {
    /// Parses `Name: value`; `nil` for a line without a colon, such as the empty one.
    fileprivate init?(line: Slice<UnsafeRawBufferPointer>) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        var value = line[line.index(after: colon)...]
        while let first = value.first, first == 0x20 || first == 0x09 { value = value.dropFirst() }
        while let last = value.last, last == 0x20 || last == 0x09 { value = value.dropLast() }
        self.init(name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: value, as: UTF8.self))
    }
}

/// The header fields of a message, in order and with duplicates.
///
/// ```swift
/// let headers: LoopbackHeaders = ["Content-Type": "text/plain"]
/// let type = headers["content-type"]  // "text/plain"
/// ```
public struct LoopbackHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral, CustomStringConvertible {
    /// One header field.
    public struct Field: Sendable, Equatable {
        /// The name, in its original case.
        public var name: String
        /// The value, without surrounding white space.
        public var value: String

        /// Creates a field.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The fields, in order.
    public var fields: [Field]

    /// Creates headers from these fields.
    public init(_ fields: [Field] = []) {
        self.fields = fields
    }

    /// Creates headers from names and values; a name may be used twice.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }

    /// The first value of a name, regardless of case. Setting it replaces all fields of that name; `nil` removes them.
    public subscript(name: String) -> String? {
        get { fields.first { $0.name.lowercased() == name.lowercased() }?.value }
        set {
            fields.removeAll { $0.name.lowercased() == name.lowercased() }
            if let newValue { fields.append(Field(name: name, value: newValue)) }
        }
    }

    /// All values of a name, in order.
    public func values(of name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// One `Name: value` for each line.
    public var description: String {
        fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
    }
}

/// The response of a handler.
///
/// ```swift
/// LoopbackResponse(status: 201, headers: ["Location": "/orders/7"], text: "made")
/// ```
public struct LoopbackResponse: Sendable, Equatable {
    /// The status, from 200 to 999.
    public var status: Int
    /// The reason phrase after the status; `nil` for the usual one.
    public var reason: String?
    /// The fields, sent unchanged. `Content-Length` is added unless it or `Transfer-Encoding` is among them, so a
    /// handler can announce a wrong length. `Connection: close` closes the connection after the response.
    public var headers: LoopbackHeaders
    /// The body; it is not sent in response to HEAD.
    public var body: [UInt8]

    /// Creates a response.
    public init(status: Int = 200, reason: String? = nil, headers: LoopbackHeaders = [:], body: [UInt8] = []) {
        self.status = status
        self.reason = reason
        self.headers = headers
        self.body = body
    }

    /// Creates a response with text, as `text/plain` unless the headers say otherwise.
    public init(status: Int = 200, headers: LoopbackHeaders = [:], text: String) {
        self.init(status: status, headers: headers, body: Array(text.utf8))
        if headers["Content-Type"] == nil { self.headers["Content-Type"] = "text/plain; charset=utf-8" }
    }

    /// Creates a response with JSON text.
    public init(status: Int = 200, headers: LoopbackHeaders = [:], json: String) {
        self.init(status: status, headers: headers, body: Array(json.utf8))
        self.headers["Content-Type"] = "application/json"
    }
}
