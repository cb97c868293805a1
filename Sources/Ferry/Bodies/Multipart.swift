import FerryTransport
public import FoundationEssentials

/// A form with parts, `multipart/form-data` (RFC 7578): text, bytes, files and streams. The parts are sent one after
/// another, and the form is never in memory as a whole.
///
///     var form = Multipart()
///     form.append("title", "Holidays")
///     form.append("photo", file: "/srv/photos/1.jpg", contentType: "image/jpeg")
///
/// The arguments of the request come first, as text parts. The length is announced if the lengths of all parts are
/// known; otherwise the body is chunked. Names and file names are sent as UTF-8, with `"` and line breaks escaped as in
/// browsers. Files are opened when the run starts: if a file cannot be read, the run fails with `uploadSource` before
/// anything is sent.
public struct Multipart: Sendable {
    struct Part: Sendable {
        var name: String
        var filename: String?
        var contentType: String?
        var headers = Headers()
        var body: any PulledBody
    }

    /// The text that separates the parts: 1 to 70 letters, digits and characters of `'()+_,-./:=?`, a subset of RFC
    /// 2046 (5.1.1). Any other boundary fails the run with `invalidRequest(body)`. No part may contain the boundary.
    public let boundary: String

    private(set) var parts: [Part] = []

    /// Creates a form without parts. By default the boundary is random; tests can set it.
    public init(boundary: String? = nil) { self.boundary = boundary ?? Self.randomBoundary() }

    /// The number of parts.
    public var count: Int { parts.count }

    /// Whether there are no parts. Such a form is sent as its closing boundary alone.
    public var isEmpty: Bool { parts.isEmpty }

    /// Appends text, which is sent unchanged as UTF-8, without a content type.
    public mutating func append(_ name: String, _ value: String) {
        parts.append(Part(name: name, body: MemoryBody(bytes: Array(value.utf8))))
    }

    /// Appends bytes, as `application/octet-stream` unless you set another type. `headers` are additional fields of the
    /// part.
    public mutating func append(
        _ name: String, _ bytes: some ContiguousBytes & Sendable, filename: String? = nil,
        contentType: String = "application/octet-stream", headers: Headers = Headers()
    ) {
        parts.append(
            Part(
                name: name, filename: filename, contentType: contentType, headers: headers,
                body: MemoryBody(bytes: bytes)))
    }

    /// Appends a file, under its own name unless you pass another one, and as `application/octet-stream` unless you set
    /// another type: none is derived from the name.
    public mutating func append(
        _ name: String, file path: String, filename: String? = nil,
        contentType: String = "application/octet-stream", headers: Headers = Headers()
    ) {
        let own = path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? ""
        parts.append(
            Part(
                name: name, filename: filename ?? own, contentType: contentType, headers: headers,
                body: FileBody(path: path)))
    }

    /// Appends the pieces of a sequence, as `application/octet-stream` unless you set another type: see
    /// ``RequestBody/stream(length:contentType:_:)``.
    public mutating func append<Bytes: AsyncSequence>(
        _ name: String, length: UInt64? = nil, filename: String? = nil,
        contentType: String = "application/octet-stream", headers: Headers = Headers(),
        stream makeSequence: @escaping @Sendable () -> Bytes
    )
    where
        Bytes: SendableMetatype, Bytes.AsyncIterator: SendableMetatype,
        Bytes.Element: ContiguousBytes & SendableMetatype
    {
        parts.append(
            Part(
                name: name, filename: filename, contentType: contentType, headers: headers,
                body: StreamBody(length: length, makeSequence)))
    }

    /// Appends a sequence that can be read only once, as `application/octet-stream` unless you set another type: see
    /// ``RequestBody/stream(once:length:contentType:)``.
    public mutating func append<Bytes: AsyncSequence & Sendable>(
        _ name: String, once sequence: Bytes, length: UInt64? = nil, filename: String? = nil,
        contentType: String = "application/octet-stream", headers: Headers = Headers()
    )
    where
        Bytes: SendableMetatype, Bytes.AsyncIterator: SendableMetatype,
        Bytes.Element: ContiguousBytes & SendableMetatype
    {
        parts.append(
            Part(
                name: name, filename: filename, contentType: contentType, headers: headers,
                body: OnceBody(length: length, sequence)))
    }

    /// The same form with these arguments before its parts.
    func following(_ arguments: Arguments) -> Multipart {
        if arguments.isEmpty { return self }
        var form = Multipart(boundary: boundary)
        for (name, value) in arguments.fields { form.append(name, value) }
        form.parts += parts
        return form
    }

    private static func randomBoundary() -> String {
        let digits = String(UInt128.random(in: 0 ... .max), radix: 36)
        return "ferry-" + String(repeating: "0", count: 25 - digits.count) + digits
    }
}

extension Multipart: PulledBody {
    /// The boundary is quoted if it is not a token (RFC 2046, 5.1.1).
    var contentType: String {
        let isToken = boundary.utf8.allSatisfy(ByteSet.token.contains)
        return "multipart/form-data; boundary=" + (isToken ? boundary : "\"\(boundary)\"")
    }

    var isReplayable: Bool { parts.allSatisfy(\.body.isReplayable) }

    var files: [FileBody] { parts.flatMap(\.body.files) }

    func makeSource(from files: BodyFiles) throws(BodyFault) -> any BodySource {
        guard (1...70).contains(boundary.utf8.count), boundary.utf8.allSatisfy(ByteSet.boundary.contains) else {
            throw BodyFault(code: .invalidRequest(.body), message: "the multipart boundary is invalid (RFC 2046)")
        }
        var sources: [any BodySource] = []
        // Heads and small parts are joined: a source object for each would be larger than its bytes.
        var pending: [UInt8] = []
        for part in parts {
            pending.append(text: "--\(boundary)\r\n")
            try part.appendHead(to: &pending)
            let source = try part.body.makeSource(from: files)
            if let length = source.length, length <= Self.smallPart, source is MemorySource<[UInt8]> {
                pending.append(contentsOf: source.wholeInMemory)
            } else {
                sources.append(MemorySource(pending))
                sources.append(source)
                pending = []
            }
            pending.append(text: "\r\n")
        }
        pending.append(text: "--\(boundary)--\r\n")
        sources.append(MemorySource(pending))
        return SourceSequence(sources)
    }

    private static let smallPart = 4096
}

extension Multipart.Part {
    /// The head of a part (RFC 7578, 4.2), with the escapes of WHATWG's form encoding.
    fileprivate func appendHead(to bytes: inout [UInt8]) throws(BodyFault) {
        bytes.append(text: "Content-Disposition: form-data; name=\"")
        bytes.append(quoted: name)
        if let filename {
            bytes.append(text: "\"; filename=\"")
            bytes.append(quoted: filename)
        }
        bytes.append(text: "\"\r\n")
        if let contentType { try bytes.append(field: "Content-Type", contentType) }
        for field in headers {
            if equalNames(field.name, "Content-Disposition") || equalNames(field.name, "Content-Type") {
                throw BodyFault(
                    code: .invalidRequest(.headerName), message: "\(field.name) cannot be set in the headers of a part")
            }
            try bytes.append(field: field.name, field.value)
        }
        bytes.append(text: "\r\n")
    }
}

extension ByteSet {
    /// The characters of RFC 2046, 5.1.1, without the space, which invites mistakes.
    fileprivate static let boundary = ByteSet(
        "'()+_,-./:=?0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
}

extension [UInt8] {
    fileprivate mutating func append(text: String) { append(contentsOf: text.utf8) }

    /// Escapes what would end the quotes or the line, so that a name cannot add fields.
    fileprivate mutating func append(quoted text: String) {
        for byte in text.utf8 {
            switch byte {
            case 0x22, 0x0D, 0x0A: appendEscaped(byte)
            default: append(byte)
            }
        }
    }

    fileprivate mutating func append(field name: String, _ value: String) throws(BodyFault) {
        guard !name.isEmpty, name.utf8.allSatisfy(ByteSet.token.contains) else {
            throw BodyFault(
                code: .invalidRequest(.headerName), message: "the name of a header field of a part is not a token")
        }
        for byte in value.utf8 where isControl(byte) && byte != 0x09 {
            throw BodyFault(
                code: .invalidRequest(.headerValue),
                message: "the value of the header field \(name) of a part contains a control character")
        }
        append(text: "\(name): \(value)\r\n")
    }
}

extension Arguments {
    /// The arguments as fields of a form: names are sorted and nested as in a query (`a[b]`, `a[]`), but not escaped;
    /// `null` is an empty value.
    var fields: [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for (name, value) in values.sorted(by: { $0.key < $1.key }) { Self.append(value, under: name, to: &fields) }
        return fields
    }

    private static func append(_ value: Value, under name: String, to fields: inout [(name: String, value: String)]) {
        switch value {
        case .object(let members):
            for (member, value) in members.sorted(by: { $0.key < $1.key }) {
                append(value, under: "\(name)[\(member)]", to: &fields)
            }
        case .array(let elements):
            for element in elements { append(element, under: "\(name)[]", to: &fields) }
        case .null: fields.append((name, ""))
        case .bool(let value): fields.append((name, value ? "true" : "false"))
        case .integer(let value): fields.append((name, String(value)))
        case .number(let value): fields.append((name, text(of: value)))
        case .string(let value): fields.append((name, value))
        }
    }
}
