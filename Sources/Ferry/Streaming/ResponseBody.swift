import FerrySynchronization
import FerryTransport
public import FoundationEssentials

/// A response whose head has arrived, and whose body is transferred as it is read. The members of the head are members
/// of the response.
@dynamicMemberLookup
public struct StreamedResponse: Sendable {
    /// Status, header fields and metrics so far. Its own body is empty.
    public let head: Response

    /// The decoded body, piece by piece.
    public let body: ResponseBody

    init(head: Response, body: ResponseBody) {
        self.head = head
        self.body = body
    }

    /// The length that the server announced, before decoding; `nil` if there is none.
    public var contentLength: Int64? { head.result.contentLength }

    /// A member of the head.
    public subscript<Member>(dynamicMember member: KeyPath<Response, Member>) -> Member { head[keyPath: member] }
}

/// The body of a streamed response: pieces of any length, in order, none of them empty.
///
/// A slow reader slows the server down: when half a megabyte is unread, the socket is no longer read. Read the body
/// once, in one task at a time. When the last copy of the body and of its response is released, the rest is discarded
/// and the exchange ends.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A piece.
    public typealias Element = Data
    /// Errors like `incompleteBody`, `contentDecoding`, `timeout` and `cancelled`.
    public typealias Failure = RequestError

    private let reading: BodyReader

    init(_ reading: BodyReader) { self.reading = reading }

    /// Continues where another iterator has stopped.
    public func makeAsyncIterator() -> Iterator { Iterator(reading) }

    /// Reads one piece after another.
    public struct Iterator: AsyncIteratorProtocol {
        private let reading: BodyReader

        fileprivate init(_ reading: BodyReader) { self.reading = reading }

        /// The next piece; `nil` at the end.
        public mutating func next() async throws(RequestError) -> Data? { try await reading.next() }

        /// The next piece; `nil` at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(RequestError) -> Data? {
            try await reading.next()
        }
    }

    /// The trailer fields after the body (RFC 9110, 6.5), available when it was read to its end. Empty before that, and
    /// if there are none.
    public var trailers: Headers { reading.trailers }

    func next() async throws(RequestError) -> Data? { try await reading.next() }

    func conclude(_ failure: RequestError?, isCancelled: Bool) {
        reading.conclude(failure, isCancelled: isCancelled)
    }

    /// Discards a body that its reader does not accept. Observers get the same error.
    func reject(with error: RequestError) -> RequestError {
        reading.abandon(error)
        return error
    }

    /// Collects the rest of the body in memory. More than `limit` bytes are `responseTooLarge`, and the rest is not
    /// read.
    public func collect(upTo limit: Int) async throws(RequestError) -> Data {
        var collected = Data()
        while let piece = try await reading.next() {
            guard collected.count + piece.count <= limit else { throw reading.tooLarge(limit) }
            collected.append(piece)
        }
        return collected
    }
}

/// Reads one body. The reader holds the last reference: when it is released, the rest is discarded.
final class BodyReader: Sendable {
    /// The source of the pieces.
    enum Source: Sendable {
        case run(StreamRun)
        /// The complete body, which did not come from the network.
        case whole(Data)
    }

    private let source: Source
    private let head: Response
    private let request: any Request
    private let watch: RunWatch?
    /// `nil` after the end was notified: who keeps the response does not keep the agent.
    private let core: Mutex<AgentCore?>
    /// A complete body was returned.
    private let wasGiven = Atomic(false)
    /// The run ends with the body. An exchange ends with its closure.
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
        self.core = Mutex(core)
    }

    deinit { abandon(.cancelled(head.result, url: head.url, origin: head.origin)) }

    func next() async throws(RequestError) -> Data? {
        switch source {
        case .whole(let data):
            if !wasGiven.exchange(true, ordering: .relaxed), !data.isEmpty { return data }
            if endsItself { stop() }
            return nil
        case .run(let run):
            switch await run.next() {
            case .chunk(let data): return data
            case .end:
                if endsItself { stop() }
                return nil
            case .failure(let error):
                let error = error.behind(head)
                if let core = stop(error) { core.health.failed(head.url, error) }
                throw error
            }
        }
    }

    /// The exchange that it belongs to is over.
    func conclude(_ failure: RequestError?, isCancelled: Bool) {
        let end = isCancelled ? RequestError.cancelled(head.result, url: head.url, origin: head.origin) : nil
        stop(failure?.behind(head) ?? end)
    }

    /// Discards a body that is longer than its reader accepts.
    func tooLarge(_ limit: Int) -> RequestError {
        let error = RequestError(
            .responseTooLarge, message: "the body is larger than \(limit) bytes", response: head)
        abandon(error)
        return error
    }

    /// Discards the rest of a body with this error.
    func abandon(_ error: @autoclosure () -> RequestError) {
        guard stop(error()) != nil, case .run(let run) = source else { return }
        let isEncoded = head.headers.contains("Content-Encoding")
        run.abandon(expecting: head.result.contentLength, isEncoded: isEncoded)
    }

    /// Notifies of the end, the first time; without an error it is a success. Returns `nil` afterwards.
    @discardableResult
    private func stop(_ error: @autoclosure () -> RequestError? = nil) -> AgentCore? {
        guard let core = core.withLock({ $0.take() }) else { return nil }
        let failure = error()
        if let failure { request.failurePreprocessor(failure) }
        RunEnd.deliver(watch, failure.map { RunOutcome($0) } ?? RunOutcome(head), metrics) {
            if let failure { request.willDeliver(failure) }
        }
        return core
    }

    var trailers: Headers { if case .run(let run) = source { run.trailers } else { head.trailers } }

    private var metrics: RequestMetrics { if case .run(let run) = source { run.metrics(head) } else { head.metrics } }
}
