import FerryTransport
public import FoundationEssentials
import Synchronization

/// A response whose head has come, and whose body comes as it is read. The head's members show through.
@dynamicMemberLookup
public struct StreamedResponse: Sendable {
    /// Status, headers and what was measured so far; its own body is empty.
    public let head: Response

    /// The body, decoded, piece by piece.
    public let body: ResponseBody

    init(head: Response, body: ResponseBody) {
        self.head = head
        self.body = body
    }

    /// The length that the server has announced, before decoding; `nil` when it has not.
    public var contentLength: Int64? { head.result.contentLength }

    /// A member of the head.
    public subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { head[keyPath: member] }
}

/// The body of a streamed response: pieces in their order, of any length, none empty.
///
/// Who reads slowly slows the server down: beyond half a megabyte that nobody has read, the socket is left alone. To be
/// read once, by one task at a time. When the last copy of it and of its response goes, what was not read is given up:
/// the exchange ends.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A piece.
    public typealias Element = Data
    /// `incompleteBody`, `contentDecoding`, `timeout`, `cancelled` and the like.
    public typealias Failure = RequestError

    private let reading: BodyReader

    init(_ reading: BodyReader) { self.reading = reading }

    /// Reads on where another iterator has stopped.
    public func makeAsyncIterator() -> Iterator { Iterator(reading) }

    /// Reads piece by piece.
    public struct Iterator: AsyncIteratorProtocol {
        private let reading: BodyReader

        fileprivate init(_ reading: BodyReader) { self.reading = reading }

        /// The next piece; `nil` after the last.
        public mutating func next() async throws(RequestError) -> Data? { try await reading.next() }

        /// The next piece; `nil` after the last.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(RequestError) -> Data? {
            try await reading.next()
        }
    }

    /// The fields behind the body (RFC 9110, 6.5), once it was read to its end; empty before that, and where there are
    /// none.
    public var trailers: Headers { reading.trailers }

    func next() async throws(RequestError) -> Data? { try await reading.next() }

    func conclude(_ failure: RequestError?, isCancelled: Bool) {
        reading.conclude(failure, isCancelled: isCancelled)
    }

    /// All that is left, in memory. More than `limit` bytes are `responseTooLarge`, and the rest is not read.
    public func collect(upTo limit: Int) async throws(RequestError) -> Data {
        var collected = Data()
        while let piece = try await reading.next() {
            guard collected.count + piece.count <= limit else { throw reading.tooLarge(limit) }
            collected.append(piece)
        }
        return collected
    }
}

/// The reading of one body. The last reference to it is the reader's: when that goes, what is left is abandoned.
final class BodyReader: Sendable {
    /// Where the pieces come from.
    enum Source: Sendable {
        case run(StreamRun)
        /// It was there as a whole, from no network.
        case whole(Data)
    }

    private let source: Source
    private let head: Response
    private let request: any Request
    private let watch: RunWatch?
    private let core: AgentCore
    private let isOver = Mutex(false)
    /// A whole body was given out, of a run that does not end with that.
    private let wasGiven = Atomic(false)
    /// The run ends with the body. That of an exchange ends with its closure.
    private let endsItself: Bool

    init(
        _ source: Source, head: Response, of request: any Request, _ watch: RunWatch?, endsItself: Bool = true,
        by core: AgentCore
    ) {
        self.source = source
        self.endsItself = endsItself
        self.head = head
        self.request = request
        self.watch = watch
        self.core = core
    }

    deinit { abandon(.cancelled(head.result, url: head.url, origin: head.origin)) }

    func next() async throws(RequestError) -> Data? {
        switch source {
        case .whole(let data):
            guard endsItself ? stop() : wasGiven.exchange(true, ordering: .relaxed) == false else { return nil }
            return data.isEmpty ? nil : data
        case .run(let run):
            switch await run.next() {
            case .chunk(let data): return data
            case .end:
                if endsItself { stop() }
                return nil
            case .failure(let error):
                let error = error.behind(head)
                if stop(error) { core.health.failed(head.url, error) }
                throw error
            }
        }
    }

    /// The exchange that it belongs to is over.
    func conclude(_ failure: RequestError?, isCancelled: Bool) {
        let end = isCancelled ? RequestError.cancelled(head.result, url: head.url, origin: head.origin) : nil
        stop(failure?.behind(head) ?? end)
    }

    /// Gives up a body that is longer than its reader takes.
    func tooLarge(_ limit: Int) -> RequestError {
        let error = RequestError(
            .responseTooLarge, message: "the body is larger than \(limit) bytes", response: head)
        abandon(error)
        return error
    }

    private func abandon(_ error: @autoclosure () -> RequestError) {
        guard stop(error()), case .run(let run) = source else { return }
        let isEncoded = head.headers.contains("Content-Encoding")
        run.abandon(expecting: head.result.contentLength, isEncoded: isEncoded)
    }

    /// Tells of the end, the first time; without an error it is a good one. False afterwards.
    @discardableResult
    private func stop(_ error: @autoclosure () -> RequestError? = nil) -> Bool {
        let isFirst = isOver.withLock { isOver in
            defer { isOver = true }
            return !isOver
        }
        guard isFirst else { return false }
        let failure = error()
        if let failure { request.failurePreprocessor(failure) }
        RunEnd.deliver(watch, failure.map { RunOutcome($0) } ?? RunOutcome(head), metrics) {
            if let failure { request.willDeliver(failure) }
        }
        return true
    }

    var trailers: Headers { if case .run(let run) = source { run.trailers } else { head.trailers } }

    private var metrics: RequestMetrics { if case .run(let run) = source { run.metrics(head) } else { head.metrics } }
}
