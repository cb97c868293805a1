import Dispatch
import FerrySynchronization
import FerryTransport
import FoundationEssentials

extension RequestBody {
    /// Returns the same body, followed by trailer fields (RFC 9110, 6.5). Use them for what is known only at the end of
    /// the body, like a digest.
    ///
    ///     .stream { [rows, counter] in counter.counting(rows) }
    ///         .withTrailers(["X-Row-Count"]) { [counter] in ["X-Row-Count": String(counter.count)] }
    ///
    /// `names` are announced in the `Trailer` field. Ferry calls `fields` once for each attempt, in a task of its own,
    /// after the last byte of the body has been read. `fields` may omit names. The run fails with `uploadSource` if
    /// `fields` throws, returns a name that was not announced or a value with control characters, or if all fields
    /// together have more than 16,384 bytes. The server then sees an incomplete request.
    ///
    /// A body that has trailers already keeps them: the new names and fields follow the others.
    ///
    /// The body is sent in chunks and over HTTP/1.1, even if HTTP/2 could be negotiated, because libcurl cannot send
    /// trailers over HTTP/2. With ``HTTP2Policy/priorKnowledge`` the run fails with `invalidRequest`. Only an exchange
    /// (``NetworkAgent/exchange(_:trailers:onInformational:_:)``) sends trailers over HTTP/2. Arguments of the
    /// request cannot be parts of such a body. Fields for framing, routing, authentication, caching or the description
    /// of the content cannot be trailers (RFC 9110, 6.5.1): the run fails with `invalidRequest(headerName)`.
    public func withTrailers(
        _ names: [String], _ fields: @escaping @Sendable () async throws -> Headers
    ) -> RequestBody {
        if names.isEmpty { return self }
        var body = RequestBody(
            content: .pulled(TrailedBody(body: self, names: names, fields: fields)), contentType: contentType)
        // The source of the new body is compressed, and the original one is not.
        body.coding = coding
        return body
    }
}

/// The rules for trailer fields: which names are allowed, and how the fields are written.
enum TrailerRules {
    /// The maximum size of all fields together, including names and line ends.
    static let mostBytes = 16_384

    /// Fields that a recipient needs before the body, or must not accept after it.
    private static let forbidden: Set<String> = [
        // Framing and the connection.
        "transfer-encoding", "content-length", "trailer", "te", "connection", "keep-alive", "proxy-connection",
        "upgrade", "http2-settings",
        // Routing, controls and conditions.
        "host", "forwarded", "max-forwards", "via", "expect", "range", "if-match", "if-none-match",
        "if-modified-since", "if-unmodified-since", "if-range", "cache-control", "pragma",
        // Credentials and the sender.
        "authorization", "proxy-authorization", "authentication-info", "proxy-authentication-info",
        "www-authenticate", "proxy-authenticate", "cookie", "cookie2", "set-cookie", "set-cookie2", "origin",
        "referer", "from",
        // Description of the content.
        "content-encoding", "content-type", "content-range", "content-location", "content-language",
        // Fields of responses.
        "age", "date", "expires", "location", "retry-after", "vary", "warning", "idempotency-key",
    ]

    /// The reason why these names cannot be announced; `nil` if they can.
    static func fault(in names: [String]) -> String? {
        for name in names {
            guard !name.isEmpty, name.utf8.allSatisfy(ByteSet.token.contains) else {
                return "the name of a trailer field is not a token"
            }
            if forbidden.contains(name.lowercased()) { return "\(name) cannot be a trailer field" }
        }
        return nil
    }

    /// The fields as lines. Throws if a field was not announced, or if a value could end its line.
    static func lines(of fields: Headers, announced names: [String]) throws(BodyFault) -> [UInt8] {
        var lines: [UInt8] = []
        for field in fields {
            guard names.contains(where: { equalNames($0, field.name) }) else {
                throw BodyFault(message: "the trailer field \(field.name) was not announced")
            }
            if field.value.utf8.contains(where: { isControl($0) && $0 != 0x09 }) {
                throw BodyFault(message: "the value of the trailer field \(field.name) contains a control character")
            }
            lines += "\(field.name): \(field.value)\r\n".utf8
        }
        if let fault = fault(inSize: lines.count) { throw fault }
        return lines
    }

    /// The reason why fields of this size together cannot be sent; `nil` if they can.
    static func fault(inSize count: Int) -> BodyFault? {
        if count <= mostBytes { return nil }
        return BodyFault(message: "the trailer fields have \(count) bytes (limit \(mostBytes))")
    }
}

extension Headers {
    /// Announces these names in the `Trailer` field, except those that it has already.
    mutating func announce(_ names: [String]) {
        let announced = values(of: "Trailer").flatMap { $0.split(whereSeparator: { $0 == "," || $0 == " " }) }
        let new = names.filter { name in !announced.contains { equalNames(String($0), name) } }
        if !new.isEmpty { append("Trailer", new.joined(separator: ", ")) }
    }
}

/// A body that is followed by trailers.
struct TrailedBody: PulledBody {
    let body: RequestBody
    /// The names of its own trailers.
    let names: [String]
    let fields: @Sendable () async throws -> Headers

    var isReplayable: Bool { body.isReplayable }

    var files: [FileBody] { body.files }

    var trailerNames: [String] {
        let before = body.trailerNames
        return before + names.filter { name in !before.contains { equalNames($0, name) } }
    }

    func makeSource(from files: BodyFiles) throws(BodyFault) -> any BodySource {
        TrailedSource(try body.makeSource(from: files)) { [names, fields] in
            try TrailerRules.lines(of: try await fields(), announced: names)
        }
    }
}

extension RequestBody {
    /// The files that it reads as it is sent.
    var files: [FileBody] {
        switch content {
        case .data, .bytes, .string, .json: []
        case .pulled(let body): body.files
        case .multipart(let form): form.files
        }
    }

    fileprivate func makeSource(from files: BodyFiles) throws(BodyFault) -> any BodySource {
        switch content {
        case .data(let data): return MemorySource(data)
        case .bytes(let bytes): return MemorySource(bytes)
        case .string(let text): return MemorySource(Array(text.utf8))
        case .json(let value, let encoder):
            do {
                return MemorySource(try encoder.encode(value))
            } catch {
                throw BodyFault(code: .invalidRequest(.body), message: "the body cannot be encoded as JSON")
            }
        case .pulled(let body): return try body.makeSource(from: files)
        case .multipart(let form): return try form.makeSource(from: files)
        }
    }
}

/// A source that is followed by trailers. A task asks for them at the end of the inner source, whose own trailers come
/// first.
final class TrailedSource: BodySource {
    private enum Trailers {
        case unasked
        case asked(Task<Void, Never>)
        case here([UInt8])
        case failed(any Error)
        case closed
    }

    private struct State {
        var trailers = Trailers.unasked
        var resume: (@Sendable () -> Void)?
    }

    private let source: any BodySource
    private let make: @Sendable () async throws -> [UInt8]
    private let state = Mutex(State())

    init(_ source: any BodySource, _ make: @escaping @Sendable () async throws -> [UInt8]) {
        self.source = source
        self.make = make
    }

    deinit { close() }

    /// Unknown, so that the body is sent in chunks.
    var length: UInt64? { nil }

    var mayWaitForServer: Bool { source.mayWaitForServer }

    func giveWay() { source.giveWay() }

    func failure(sending errno: Int32) -> (any Error)? {
        if case .failed(let error) = state.withLock({ $0.trailers }) { return error }
        return source.failure(sending: errno)
    }

    func open(resume: @escaping @Sendable () -> Void) {
        state.withLock { $0.resume = resume }
        source.open(resume: resume)
    }

    func fill(_ space: UnsafeMutableRawBufferPointer) -> TransferFill {
        let fill = source.fill(space)
        guard case .end = fill else { return fill }
        return state.withLock { state in
            switch state.trailers {
            case .unasked:
                state.trailers = .asked(
                    Task { [weak self, make] in
                        do {
                            let lines = try await make()
                            self?.took(lines)
                        } catch {
                            self?.took(.failed(error))
                        }
                    })
                return .later
            case .asked: return .later
            case .here: return .end
            case .failed, .closed: return .failed
            }
        }
    }

    private func took(_ lines: [UInt8]) {
        let all = source.trailers + lines
        took(TrailerRules.fault(inSize: all.count).map { .failed($0) } ?? .here(all))
    }

    private func took(_ trailers: Trailers) {
        state.withLock { state in
            guard case .asked = state.trailers else { return nil as (@Sendable () -> Void)? }
            state.trailers = trailers
            return state.resume
        }?()
    }

    var trailers: [UInt8] {
        if case .here(let lines) = state.withLock({ $0.trailers }) { lines } else { [] }
    }

    func close() {
        let task = state.withLock { state -> Task<Void, Never>? in
            state.resume = nil
            defer { if case .failed = state.trailers {} else { state.trailers = .closed } }
            if case .asked(let task) = state.trailers { return task }
            return nil
        }
        // Not here, on the event loop's thread: the handlers of a cancellation are application code.
        if let task { DispatchQueue.global().async { task.cancel() } }
        source.close()
    }
}
