import FerryTransport

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
    public var informational: [InformationalResponse] {
        var found: [InformationalResponse] = []
        for line in result.informationalLines {
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
