public import FoundationEssentials

/// A form of parts, `multipart/form-data` (RFC 7578): text, bytes, files and streams, sent one after another and never
/// held in memory whole.
///
///     var form = Multipart()
///     form.append("title", "Holidays")
///     form.append("photo", file: "/srv/photos/1.jpg", contentType: "image/jpeg")
///
/// The arguments of the request come first, as parts of text. The length is announced when all parts know theirs,
/// otherwise the body is sent in chunks. Names and file names are sent as UTF-8, with `"` and line breaks escaped as
/// browsers do it. Files are opened when the run is started: one that cannot be read fails it with `uploadSource`
/// before anything is sent.
public struct Multipart: Sendable {
    struct Part: Sendable {
        var name: String
        var filename: String?
        var contentType: String?
        var headers = Headers()
        var body: any PulledBody
    }

    /// What stands between the parts: 1 to 70 characters, of which RFC 2046 (5.1.1) allows letters, digits and
    /// `'()+_,-./:=?`; any other fails the run with `invalidRequest(.body)`. Nothing of the parts may contain it.
    public let boundary: String

    private(set) var parts: [Part] = []

    /// A form without parts. The boundary is random unless one is given, as tests may want it.
    public init(boundary: String? = nil) { self.boundary = boundary ?? Self.randomBoundary() }

    /// The number of parts.
    public var count: Int { parts.count }

    /// Whether there is no part; such a form is sent as its closing boundary alone.
    public var isEmpty: Bool { parts.isEmpty }

    /// Adds text, sent as UTF-8 and as it stands.
    public mutating func append(_ name: String, _ value: String) {
        parts.append(Part(name: name, body: MemoryBody(bytes: Array(value.utf8))))
    }

    /// Adds bytes. `headers` are further fields of the part.
    public mutating func append(
        _ name: String, _ bytes: some ContiguousBytes & Sendable, filename: String? = nil,
        contentType: String = "application/octet-stream", headers: Headers = Headers()
    ) {
        parts.append(
            Part(
                name: name, filename: filename, contentType: contentType, headers: headers,
                body: MemoryBody(bytes: bytes)))
    }

    /// Adds a file, under its own name unless another is given. Nothing is guessed from that name.
    public mutating func append(
        _ name: String, file path: String, filename: String? = nil,
        contentType: String = "application/octet-stream", headers: Headers = Headers()
    ) {
        let own = path.split(separator: "/").last.map(String.init) ?? ""
        parts.append(
            Part(
                name: name, filename: filename ?? own, contentType: contentType, headers: headers,
                body: FileBody(path: path)))
    }

    /// Adds the pieces of a sequence, as ``RequestBody/stream(length:contentType:_:)`` says.
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

    /// Likewise a sequence that can be read once only, as ``RequestBody/stream(once:length:contentType:)`` says.
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

    /// The same form, these arguments before its parts.
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
