public import FerryJSON
public import FoundationEssentials
import Glibc
import Synchronization

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
    /// How it is compressed when it is sent.
    var coding: Coding?

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

/// A file, or a range of its bytes.
struct FileBody: PulledBody {
    let path: String
    var range: Range<UInt64>?
    /// Tests have all of it read from the disk.
    var looksInMemory = true

    /// Opens the file: one that is not there, cannot be read, is no regular file or is too short is found out here.
    func makeSource() throws(BodyFault) -> any BodySource {
        // As a C string it would end there, and be the path of another file.
        if path.utf8.contains(0) { throw fault(EINVAL) }
        // Not blocking, or a FIFO nobody writes to would hold the caller; with a regular file it means nothing.
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        if descriptor < 0 { throw fault(errno) }
        do throws(BodyFault) {
            let bounds = try bounds(of: descriptor)
            return FileSource(descriptor, bounds, path: path, looksInMemory: looksInMemory)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
    }

    private func bounds(of descriptor: Int32) throws(BodyFault) -> Range<UInt64> {
        var status = stat()
        if fstat(descriptor, &status) != 0 { throw fault(errno) }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw fault(EISDIR)
        default: throw BodyFault(message: "\(path) is not a regular file")
        }
        let size = UInt64(clamping: status.st_size)
        let range = range ?? 0..<size
        if range.upperBound > size {
            throw BodyFault(message: "\(path) has \(size) bytes, and \(range.upperBound) were to be sent")
        }
        return range
    }

    private func fault(_ code: Int32) -> BodyFault { BodyFault(file: path, errno: code) }
}

extension BodyFault {
    /// What the system says of a file.
    init(file path: String, errno code: Int32) {
        self.init(message: "\(path): \(String(cString: strerror(code)))", errno: code)
    }
}

/// A sequence of pieces that is made anew for each attempt.
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

    func makeSource() throws(BodyFault) -> any BodySource {
        try StreamSource.check(length)
        return StreamSource(length: length, pump)
    }
}

/// A sequence of pieces that is there once. The second who wants it is refused, unless the first has not begun to read.
final class OnceBody: PulledBody {
    private let length: UInt64?
    private let pump: StreamSource.Pump
    private let isTaken = Atomic(false)

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

    var isReplayable: Bool { !isTaken.load(ordering: .acquiring) }

    func makeSource() throws(BodyFault) -> any BodySource {
        try StreamSource.check(length)
        guard isTaken.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
        else {
            throw BodyFault(code: .bodyNotReplayable, message: "the stream of the body can be read once only")
        }
        return StreamSource(length: length, whenUnread: { self.isTaken.store(false, ordering: .releasing) }, pump)
    }
}

/// What is wrong with a body, in Ferry's own words.
struct BodyFault: Error {
    var code = RequestError.Code.uploadSource
    var message: String
    var errno: Int32 = 0
}

extension RequestError {
    /// A body that was refused before anything was sent.
    init(_ fault: BodyFault, url: String) {
        self = RequestError(preparing: fault.code, message: fault.message, url: url).explained(by: fault)
    }

    /// The same error, with what the source of its body says: its own words, or what the application's code threw.
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
