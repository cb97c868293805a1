public import FerryJSON
import FerrySynchronization
import FerryTransport
public import FoundationEssentials
import Glibc

/// The body of a request.
public struct RequestBody: Sendable {
    // Indirect, so that it costs nothing to pass the body that most requests do not have.
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
    /// How it is compressed when it is sent.
    var coding: Coding?

    /// A body of bytes. No content type is sent unless you set it here or in the header fields.
    public static func data(_ data: Data, contentType: String? = nil) -> RequestBody {
        RequestBody(content: .data(data), contentType: contentType)
    }

    /// A body of bytes. No content type is sent unless you set it here or in the header fields.
    public static func bytes(_ bytes: [UInt8], contentType: String? = nil) -> RequestBody {
        RequestBody(content: .bytes(bytes), contentType: contentType)
    }

    /// A body of text, sent as UTF-8.
    public static func string(_ text: String, contentType: String = "text/plain; charset=utf-8") -> RequestBody {
        RequestBody(content: .string(text), contentType: contentType)
    }

    /// A body with a value as JSON, encoded by an encoder with the strategies that you need. A value that cannot be
    /// JSON (a number that is not finite, an `encode` that throws) fails the run with `invalidRequest(body)` before
    /// anything is sent. The content type is `application/json`.
    @_disfavoredOverload  // A literal becomes a `JSON`, which keeps the order of its members.
    public static func json(
        _ value: any Encodable & Sendable, encoder: FerryJSONEncoder = FerryJSONEncoder()
    ) -> RequestBody {
        RequestBody(content: .json(value, encoder), contentType: "application/json")
    }

    /// A body with a JSON value: a literal like `.json(["id": 7, "tags": ["a"], "owner": .null])`, or a part of another
    /// document. The content type is `application/json`.
    public static func json(_ value: JSON) -> RequestBody {
        RequestBody(content: .bytes(value.bytes()), contentType: "application/json")
    }

    /// A body from a file, or from a range of its bytes, read as the socket accepts them. The content type is
    /// `application/octet-stream` unless you set another one; with `nil` none is sent.
    ///
    /// The file is opened once when the run starts and closed when it ends: every attempt sends the same file, even if
    /// another has taken its place. If it does not exist, cannot be read, is not a regular file or is shorter than the
    /// range, the run fails with `uploadSource` before anything is sent. If it becomes shorter during the upload, the
    /// run fails with `uploadSource`, and the server sees an incomplete request. If it grows, only its initial size is
    /// sent.
    ///
    /// The thread that starts a run opens the file, so a missing file is an error at once. If a network file system
    /// hangs, that thread waits for it. Runs that do more before they send (adapters, an authenticator, groups) open it
    /// on another thread, and end at their deadline. Threads of the file's device open, read and close the file: if it
    /// hangs, only files on the same device wait. (If the system cannot tell the device of a directory without asking a
    /// server, files of a few other such directories may wait, too.) If hundreds wait, further runs fail with
    /// `uploadSource`.
    public static func file(
        _ path: String, range: Range<UInt64>? = nil, contentType: String? = "application/octet-stream"
    ) -> RequestBody {
        RequestBody(content: .pulled(FileBody(path: path, range: range)), contentType: contentType)
    }

    /// A body with a multipart form. The request's arguments come first, unless they go into the query. The content
    /// type is `multipart/form-data`.
    public static func multipart(_ form: Multipart) -> RequestBody {
        RequestBody(content: .multipart(form), contentType: form.contentType)
    }

    /// A body from the pieces of a sequence, read as the socket accepts them. At most 256 KiB are buffered. No content
    /// type is sent unless you set it here or in the header fields.
    ///
    /// `makeSequence` is called once for each attempt, in a task that starts when the first bytes are needed and is
    /// cancelled if the attempt ends early. Without a length the body is chunked. If the sequence throws, or its number
    /// of bytes differs from the announced length, the run fails with `uploadSource`, and the server sees an incomplete
    /// request: with an announced length, the last byte is not sent before the sequence has ended.
    public static func stream<Bytes: AsyncSequence>(
        length: UInt64? = nil, contentType: String? = nil, _ makeSequence: @escaping @Sendable () -> Bytes
    ) -> RequestBody
    where
        Bytes: SendableMetatype, Bytes.AsyncIterator: SendableMetatype,
        Bytes.Element: ContiguousBytes & SendableMetatype
    {
        RequestBody(content: .pulled(StreamBody(length: length, makeSequence)), contentType: contentType)
    }

    /// A body from a sequence that can be read only once. Unless nothing of the sequence was read, a second run and a
    /// redirect that keeps the body fail with `bodyNotReplayable`, and there is no retry: the run ends with the
    /// response or the error of its first attempt. A second run also fails while the first one has the body, and the
    /// first if the second takes the body between two attempts.
    ///
    /// Keep the body itself: a second body from the same sequence does not know that it was read. No content type is
    /// sent unless you set it here or in the header fields.
    public static func stream<Bytes: AsyncSequence & Sendable>(
        once sequence: Bytes, length: UInt64? = nil, contentType: String? = nil
    ) -> RequestBody
    where
        Bytes: SendableMetatype, Bytes.AsyncIterator: SendableMetatype,
        Bytes.Element: ContiguousBytes & SendableMetatype
    {
        RequestBody(content: .pulled(OnceBody(length: length, sequence)), contentType: contentType)
    }

    /// The names of the fields that may follow it.
    var trailerNames: [String] { if case .pulled(let body) = content { body.trailerNames } else { [] } }

    /// Whether it is this body, perhaps with trailers after it.
    func isMade(of writer: WriterBody) -> Bool {
        guard case .pulled(let body) = content else { return false }
        if let trailed = body as? TrailedBody { return trailed.body.isMade(of: writer) }
        return (body as? WriterBody) === writer
    }

    /// Whether the body can be sent again.
    var isReplayable: Bool {
        switch content {
        case .data, .bytes, .string, .json: true
        case .pulled(let body): body.isReplayable
        case .multipart(let form): form.isReplayable
        }
    }
}

/// A file, or a range of its bytes.
struct FileBody: PulledBody {
    let path: String
    var range: Range<UInt64>?
    /// Tests set it to `false` to read everything from the disk, like a file of a network file system.
    var looksInMemory = true

    var files: [FileBody] { [self] }

    var isLocal: Bool? { looksInMemory ? nil : false }

    /// Throws if the file does not exist, cannot be read, is not a regular file or is too short.
    func makeSource(from files: BodyFiles) throws(BodyFault) -> any BodySource {
        let file = try files.open(path, isLocal: isLocal)
        let range = range ?? 0..<file.size
        if range.upperBound > file.size {
            throw BodyFault(message: "\(path) has \(file.size) bytes, but the range ends at \(range.upperBound)")
        }
        return FileSource(file, range, path: path, looksInMemory: looksInMemory)
    }
}

extension BodyFault {
    /// The system's error for a file.
    init(file path: String, errno code: Int32) {
        self.init(message: "\(path): \(String(cString: strerror(code)))", errno: code)
    }
}

/// A sequence of pieces that is created again for each attempt.
struct StreamBody: PulledBody {
    let length: UInt64?
    private let pump: StreamSource.Pump

    init<Bytes: AsyncSequence>(
        length: UInt64?, _ makeSequence: @escaping @Sendable () -> Bytes
    )
    where
        Bytes: SendableMetatype, Bytes.AsyncIterator: SendableMetatype,
        Bytes.Element: ContiguousBytes & SendableMetatype
    {
        self.length = length
        pump = { pipe in
            for try await bytes in makeSequence() { try await pipe.write(bytes) }
        }
    }

    func makeSource(from files: BodyFiles) throws(BodyFault) -> any BodySource {
        try StreamSource.check(length)
        return StreamSource(length: length, pump)
    }
}

/// A sequence that can be read once. There is one source at a time, and none after one that has begun to read.
final class OnceBody: PulledBody {
    private struct State {
        var isTaken = false
        var wasRead = false
    }

    private let length: UInt64?
    private let pump: StreamSource.Pump
    private let state = Mutex(State())

    init<Bytes: AsyncSequence & Sendable>(
        length: UInt64?, _ sequence: Bytes
    )
    where
        Bytes: SendableMetatype, Bytes.AsyncIterator: SendableMetatype,
        Bytes.Element: ContiguousBytes & SendableMetatype
    {
        self.length = length
        pump = { pipe in
            for try await bytes in sequence { try await pipe.write(bytes) }
        }
    }

    var isReplayable: Bool { state.withLock { !$0.wasRead } }

    func makeSource(from files: BodyFiles) throws(BodyFault) -> any BodySource {
        try StreamSource.check(length)
        let isFree = state.withLock { state in
            defer { state.isTaken = true }
            return !state.isTaken
        }
        guard isFree else { throw BodyFault(code: .bodyNotReplayable, message: "the body can be read only once") }
        return StreamSource(
            length: length,
            whenDecided: { isRead in
                self.state.withLock { ($0.isTaken, $0.wasRead) = (isRead, isRead) }
            }, pump)
    }
}

/// The reason why a body cannot be sent, in Ferry's own words.
struct BodyFault: Error {
    var code = RequestError.Code.uploadSource
    var message: String
    var errno: Int32 = 0
}

extension RequestError {
    /// The error for a body that was refused before anything was sent.
    init(_ fault: BodyFault, url: String) {
        self = RequestError(preparing: fault.code, message: fault.message, url: url).explained(by: fault)
    }

    /// The same error with the reason of the body's source: its own message, or the error of the application's code.
    func explained(by failure: any Error) -> RequestError {
        var facts = facts
        switch failure {
        case let fault as BodyFault:
            facts.message = fault.message
            facts.errno = fault.errno
        default:
            facts.message = "the stream of the body threw \(type(of: failure))"
            facts.cause = failure
        }
        return RequestError(facts)
    }
}
