internal import CLoopback

/// A request as the server received it.
public struct LoopbackRequest: Sendable, Equatable {
    /// `GET`, `POST`, …
    public var method: String
    /// The target of the request line: path and query, or whatever stood there.
    public var target: String
    /// The fields, in order and with duplicates.
    public var headers: LoopbackHeaders
    /// The body, chunked framing undone; of a recorded request not more than
    /// ``LoopbackServer/Options/recordedBodyBytes``.
    public var body: [UInt8]
    /// How many bytes of the body were received.
    public var bodyLength: UInt64
    /// On which connection it came, 1 for the first accepted.
    public var connection: UInt64

    /// The target without its query.
    public var path: String { String(target.prefix { $0 != "?" }) }

    /// What follows the question mark, still escaped; nil without one.
    public var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// The body read as UTF-8.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Copies what C shows only until its callback returns.
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
    /// `Name: value`; nil of a line without a colon, such as the empty one.
    fileprivate init?(line: Slice<UnsafeRawBufferPointer>) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        var value = line[line.index(after: colon)...]
        while let first = value.first, first == 0x20 || first == 0x09 { value = value.dropFirst() }
        while let last = value.last, last == 0x20 || last == 0x09 { value = value.dropLast() }
        self.init(name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: value, as: UTF8.self))
    }
}
