public import FerryJSON
public import FoundationEssentials

/// What a request carries.
public struct RequestBody: Sendable {
    // Indirect, so that the body that most requests do not have costs nothing to pass on.
    indirect enum Content: Sendable {
        case data(Data)
        case bytes([UInt8])
        case string(String)
        case json(any Encodable & Sendable, FerryJSONEncoder)
        case pulled(any PulledBody)
        case multipart(Multipart)
    }

    let content: Content
    let contentType: String?

    /// Bytes. No content type is sent unless one is named here or in the headers.
    public static func data(_ data: Data, contentType: String? = nil) -> RequestBody {
        RequestBody(content: .data(data), contentType: contentType)
    }

    /// Bytes. No content type is sent unless one is named here or in the headers.
    public static func bytes(_ bytes: [UInt8], contentType: String? = nil) -> RequestBody {
        RequestBody(content: .bytes(bytes), contentType: contentType)
    }

    /// Text as UTF-8.
    public static func string(_ text: String, contentType: String = "text/plain; charset=utf-8") -> RequestBody {
        RequestBody(content: .string(text), contentType: contentType)
    }

    /// A value as JSON, by an encoder with the strategies that it needs. One that cannot be JSON (a number that is not
    /// finite, an `encode` that throws) fails the run with `invalidRequest(.body)` before anything is sent.
    ///
    /// Disfavoured, so that a literal is a `JSON`, which keeps the order of its members.
    @_disfavoredOverload
    public static func json(
        _ value: any Encodable & Sendable, encoder: FerryJSONEncoder = FerryJSONEncoder()
    ) -> RequestBody {
        RequestBody(content: .json(value, encoder), contentType: "application/json")
    }

    /// A JSON value, a literal like `.json(["id": 7, "tags": ["a"], "owner": .null])`, or a part of another document.
    public static func json(_ value: JSON) -> RequestBody {
        RequestBody(content: .bytes(value.bytes()), contentType: "application/json")
    }

    /// A file, or a range of its bytes, read as the socket takes them.
    ///
    /// It is opened when the run is started and stays open until that ends. One that is not there, cannot be read, is
    /// no regular file or is shorter than the range fails the run with `uploadSource` before anything is sent; one that
    /// becomes shorter meanwhile does so too, and the server sees a message that was broken off. Of one that grows only
    /// what was there at the start is sent.
    public static func file(
        _ path: String, range: Range<UInt64>? = nil, contentType: String? = "application/octet-stream"
    ) -> RequestBody {
        RequestBody(content: .pulled(FileBody(path: path, range: range)), contentType: contentType)
    }

    /// A form of parts; the arguments of the request come first, unless they go into the query.
    public static func multipart(_ form: Multipart) -> RequestBody {
        RequestBody(content: .multipart(form), contentType: form.contentType)
    }

    /// The pieces of a sequence, taken as the socket takes them; at most 256 KiB are held ahead.
    ///
    /// `makeSequence` is called once for each attempt, in a task, when the first bytes are wanted; that task is
    /// cancelled when the attempt ends early. Without a length the body is sent in chunks. A sequence that throws, or
    /// gives another number of bytes than announced, fails the run with `uploadSource`, and the server sees a message
    /// that was broken off: where a length is announced, the last byte leaves when the sequence has ended.
    public static func stream<Bytes: AsyncSequence>(
        length: UInt64? = nil, contentType: String? = nil, _ makeSequence: @escaping @Sendable () -> Bytes
    ) -> RequestBody
    where
        Bytes: SendableMetatype, Bytes.AsyncIterator: SendableMetatype,
        Bytes.Element: ContiguousBytes & SendableMetatype
    {
        RequestBody(content: .pulled(StreamBody(length: length, makeSequence)), contentType: contentType)
    }

    /// Likewise a sequence that can be read once only. Where it would have to be sent again (a second run, a retry, a
    /// redirect that keeps the body) that fails with `bodyNotReplayable`, unless nothing had been read of it.
    ///
    /// Keep the body itself: another one made of the same sequence does not know that it was read.
    public static func stream<Bytes: AsyncSequence & Sendable>(
        once sequence: Bytes, length: UInt64? = nil, contentType: String? = nil
    ) -> RequestBody
    where
        Bytes: SendableMetatype, Bytes.AsyncIterator: SendableMetatype,
        Bytes.Element: ContiguousBytes & SendableMetatype
    {
        RequestBody(content: .pulled(OnceBody(length: length, sequence)), contentType: contentType)
    }

    /// Whether it can be sent once more.
    var isReplayable: Bool {
        switch content {
        case .data, .bytes, .string, .json: true
        case .pulled(let body): body.isReplayable
        case .multipart(let form): form.isReplayable
        }
    }
}
