import FerryTransport
import FoundationEssentials

extension NetworkAgent {
    /// Server-sent events (WHATWG HTML, 9.2) as a sequence that reconnects.
    ///
    ///     for try await event in agent.events(HTTPRequest(.get, "/prices")) {
    ///         print(event.event, event.data)
    ///     }
    ///
    /// Nothing is sent before the first event is read. The request is sent with `Accept: text/event-stream` and
    /// `Cache-Control: no-cache`, unless it sets these fields, and after a reconnect with `Last-Event-ID`. The sequence
    /// ends when the server responds with 204; with ``EventReconnection/none`` it also ends with the body. It throws if
    /// the status is not 200, if the content type is not `text/event-stream`, if a line or an event is longer than
    /// `maxEventBytes` (`responseTooLarge`), and if connecting has failed too often: see ``EventReconnection``.
    ///
    /// If the server is silent for longer than the request's ``Timeouts/idle`` (60 seconds by default), the connection
    /// counts as lost. The request's own deadline applies to each connection and ends the sequence; the configuration's
    /// deadline does not apply. Cancelling the task, or releasing the iterator, ends the exchange.
    public func events<R: Request>(
        _ request: R, reconnection: EventReconnection = EventReconnection(), maxEventBytes: Int = 1 << 20
    ) -> EventStream {
        EventStream(
            reconnection: reconnection, maxEventBytes: max(maxEventBytes, 1),
            closing: { [core] in await core.awaitClose() }
        ) { [self] (lastEventID) async throws(RequestError) in
            var call = Call(beginning: request, by: core) { built in
                var headers = Headers(built.transfer.headers)
                // The configuration's `Accept` field is for other requests.
                if !built.ownsAccept || !headers.contains("Accept") { headers["Accept"] = "text/event-stream" }
                if !headers.contains("Cache-Control") { headers.append("Cache-Control", "no-cache") }
                // The id was a line, so it contains no line break; other control characters cannot be sent. The
                // request's own id applies until the server has set one.
                if let lastEventID {
                    let isSent = !lastEventID.isEmpty && !lastEventID.utf8.contains(where: isControl)
                    headers["Last-Event-ID"] = isSent ? lastEventID : nil
                }
                built.transfer.headers = HeaderBlock()
                for field in headers { built.transfer.headers.append(field.name, field.value) }
            }
            call.deadline = call.settings?.deadline
            return try await stream(request, call)
        }
    }
}

/// When an ``EventStream`` reconnects.
///
/// It reconnects after the end of the body, after a silence, and after the failures that ``RetryPolicy`` retries by
/// default (no connection, a lost connection, 408, 429, 502, 503, 504). A compressed body that is cut off counts as a
/// lost connection. Any other failure is thrown.
///
/// After the end of the body it waits for ``delay``, or for the time in the server's last `retry` field, at least 100
/// ms and at most ``maxDelay``. Each consecutive failure doubles the wait, up to ``maxDelay``, and half of the wait is
/// random. A `Retry-After` field is honoured, up to ``maxDelay``. If ``delay`` is longer than ``maxDelay``, it is also
/// the maximum.
public struct EventReconnection: Sendable, Hashable {
    /// The wait before a reconnect, unless the server sets one. A negative wait is none. The default is 3 seconds.
    public var delay: Duration
    /// The maximum wait, whatever the server sets, unless ``delay`` is longer. The default is 60 seconds.
    public var maxDelay: Duration
    /// The number of consecutive failures after which it still reconnects. The next failure is thrown. The default is
    /// 10.
    public var maxFailures: Int

    /// Creates a reconnection policy. Parameters that are left out have their defaults.
    public init(delay: Duration = .seconds(3), maxDelay: Duration = .seconds(60), maxFailures: Int = 10) {
        (self.delay, self.maxDelay, self.maxFailures) = (delay, maxDelay, maxFailures)
    }

    /// No reconnect: the sequence ends with the body, and throws the first failure.
    public static let none = EventReconnection(delay: .zero, maxDelay: .zero, maxFailures: -1)

    var isOff: Bool { maxFailures < 0 }

    /// The wait that no other wait exceeds.
    var longest: Duration { max(delay, maxDelay, .zero) }
}

/// The events of a server, over any number of connections. Each iterator has its own connections.
public struct EventStream: AsyncSequence, Sendable {
    /// An event.
    public typealias Element = ServerSentEvent
    /// The errors that ``NetworkAgent/events(_:reconnection:maxEventBytes:)`` lists.
    public typealias Failure = RequestError

    let reconnection: EventReconnection
    let maxEventBytes: Int
    /// Returns when the agent is shut down, or the task is cancelled.
    let closing: @Sendable () async -> Void
    /// Sends the request, after a lost connection with the id of the last event; `nil` if the server has set none.
    let connect: @Sendable (String?) async throws(RequestError) -> StreamedResponse

    /// Starts an iteration with its own connection.
    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    /// Reads one event after another.
    public struct Iterator: AsyncIteratorProtocol {
        private struct Connection {
            let head: Response
            let body: ResponseBody
            var parser: EventStreamParser
        }

        private let stream: EventStream
        private var connection: Connection?
        /// The parsed events, and how many of them were returned.
        private var events: [ServerSentEvent] = []
        private var given = 0
        private var lastEventID: String?
        private var delay: Duration
        private var failures = 0
        /// The wait before the next connection.
        private var wait: Duration?
        /// The URL of the last connection.
        private var url = ""
        private var isOver = false
        private var failure: RequestError?

        fileprivate init(_ stream: EventStream) {
            self.stream = stream
            delay = Swift.max(stream.reconnection.delay, .zero)
        }

        /// The next event; `nil` when the server has ended the stream for good.
        public mutating func next() async throws(RequestError) -> ServerSentEvent? { try await nextEvent() }

        /// The next event; `nil` when the server has ended the stream for good.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(RequestError) -> ServerSentEvent? {
            try await nextEvent()
        }

        private nonisolated(nonsending) mutating func nextEvent() async throws(RequestError) -> ServerSentEvent? {
            while given == events.count {
                if let failure = failure.take() { throw failure }
                if isOver { return nil }
                events.removeAll(keepingCapacity: true)
                given = 0
                do throws(RequestError) {
                    try await read()
                } catch {
                    try recover(from: error)
                }
            }
            defer { given += 1 }
            return events[given]
        }

        /// Reads one piece of the body, or connects.
        private nonisolated(nonsending) mutating func read() async throws(RequestError) {
            guard let head = connection?.head else { return try await connect() }
            guard let piece = try await connection?.body.next() else {
                connection = nil
                (isOver, wait) = (stream.reconnection.isOff, delay)
                return
            }
            failures = 0
            do {
                try piece.withUnsafeBytes { try connection?.parser.take($0, into: &events) }
            } catch {
                // After the events that came before it.
                let error = RequestError(
                    .responseTooLarge, message: "an event is longer than \(stream.maxEventBytes) bytes",
                    response: head)
                failure = connection?.body.reject(with: error)
                (isOver, connection) = (true, nil)
                return
            }
            lastEventID = connection?.parser.lastEventID
            if let asked = connection?.parser.retry {
                delay = Swift.min(Swift.max(asked, Self.leastRetry), stream.reconnection.longest)
            }
        }

        private nonisolated(nonsending) mutating func connect() async throws(RequestError) {
            if let wait = wait.take(), wait > .zero {
                await pause(wait)
                if Task.isCancelled {
                    isOver = true
                    throw .cancelled(nil, url: url)
                }
            }
            let response = try await stream.connect(lastEventID)
            url = response.head.url
            if response.status == 204 {
                isOver = true
                // A response that is read to its end counts as a success.
                _ = try? await response.body.next()
                return
            }
            guard response.status == 200 else {
                throw response.body.reject(
                    with: RequestError(
                        .invalidStatusCode(response.status),
                        message: "expected status 200 for an event stream, found \(response.status)",
                        response: response.head))
            }
            let type = response.headers["Content-Type"].flatMap(MediaType.init)
            guard let type, type.matches("text/event-stream") else {
                throw response.body.reject(
                    with: RequestError(
                        .invalidContentType,
                        message: "expected content type text/event-stream, found \(type?.description ?? "none")",
                        response: response.head))
            }
            connection = Connection(
                head: response.head, body: response.body,
                parser: EventStreamParser(limit: stream.maxEventBytes, lastEventID: lastEventID))
        }

        /// Waits until the time has passed, the task is cancelled, or the agent is shut down, which then refuses the
        /// connection.
        private nonisolated(nonsending) func pause(_ wait: Duration) async {
            await withTaskGroup(of: Void.self) { [closing = stream.closing] group in
                // The clock traps if it cannot represent the time.
                group.addTask { try? await Task.sleep(for: Swift.min(wait, .seconds(1_000_000_000))) }
                group.addTask { await closing() }
                await group.next()
                group.cancelAll()
            }
        }

        /// Schedules the next connection, or throws.
        private mutating func recover(from error: RequestError) throws(RequestError) {
            connection = nil
            // The status that ends a stream for good, even if the request does not accept it.
            if error.is(.invalidStatusCode), error.response?.status == 204 { return isOver = true }
            failures += 1
            let policy = stream.reconnection
            guard !isOver, failures <= policy.maxFailures, Self.isPassing(error) else {
                isOver = true
                throw error
            }
            url = error.url
            let factor = Double(sign: .plus, exponent: Swift.min(failures - 1, 32), significand: 1)
            // Avoids a product that is too long for a duration.
            let doubled = delay < policy.longest / factor ? delay * factor : policy.longest
            var wait = doubled * Double.random(in: 0.5...1)
            let now = HTTPDate(secondsSince1970: Int64(Date.now.timeIntervalSince1970))
            if let asked = error.response.flatMap({ RetryAfter.wait($0.headers.values(of: "Retry-After"), now: now) }) {
                wait = Swift.max(wait, Swift.min(asked, policy.longest))
            }
            self.wait = wait
        }

        /// Whether another connection may succeed.
        private static func isPassing(_ error: RequestError) -> Bool {
            if error.is(.invalidStatusCode) { return usual.statuses.contains(error.response?.status ?? 0) }
            if error.is(.timeout(.read)) || error.is(.timeout(.responseHead)) { return true }
            // Without compression, most cuts of an endless body are its end.
            if error.is(.contentDecoding(.truncated)) { return true }
            return usual.retryableErrors.contains { error.is($0) }
        }

        /// A server that sets no wait and closes the connection must not keep its client busy.
        private static let leastRetry = Duration.milliseconds(100)

        private static let usual = RetryPolicy.exponential()
    }
}

/// One server-sent event (WHATWG HTML, 9.2).
public struct ServerSentEvent: Sendable, Hashable {
    /// The type of the event from the field `event`; `message` if the server sets none.
    public let event: String
    /// The data: the `data` fields, joined by line feeds.
    public let data: String
    /// The latest `id` that the server has sent, with this event or before; empty if there was none.
    public let id: String

    /// Creates an event.
    public init(event: String = "message", data: String, id: String = "") {
        self.event = event
        self.data = data
        self.id = id
    }
}

/// Parses the bytes of `text/event-stream` into events (WHATWG HTML, 9.2.5 and 9.2.6), in pieces of any length.
///
/// It holds one line and one event in memory; more than `limit` bytes are an error. Invalid UTF-8 is repaired. An event
/// at the end of the stream without a following empty line is dropped, as the standard requires.
struct EventStreamParser {
    /// The line, or the data of the event, is longer than the limit.
    struct TooLong: Error {}

    private let limit: Int
    /// The beginning of an incomplete line.
    private var line: [UInt8] = []
    /// The `data` fields so far, each followed by a line feed.
    private var data: [UInt8] = []
    private var event: [UInt8] = []
    /// The value of the last `id` field, for the next event; `nil` if there was none.
    private var id: String?
    /// The last line ended with CR: a following LF belongs to it.
    private var skipsLineFeed = false
    /// At the start of the stream a byte order mark is skipped.
    private var isAtStart = true

    /// The id of the last complete event: the `Last-Event-ID` of a reconnect. `nil` if the server has set none.
    private(set) var lastEventID: String?
    /// The value of the last `retry` field.
    private(set) var retry: Duration?

    /// Continues after a broken stream whose last event had this id.
    init(limit: Int, lastEventID: String? = nil) {
        self.limit = limit
        self.lastEventID = lastEventID
        id = lastEventID
    }

    /// Parses a piece of the stream, and adds the events that it completes.
    mutating func take(_ bytes: UnsafeRawBufferPointer, into events: inout [ServerSentEvent]) throws {
        var rest = bytes[...]
        while let first = rest.first {
            if skipsLineFeed {
                skipsLineFeed = false
                if first == UInt8(ascii: "\n") {
                    rest.removeFirst()
                    continue
                }
            }
            guard let end = Self.endOfLine(rest) else {
                if line.count + rest.count > limit { throw TooLong() }
                line.append(contentsOf: rest)
                return
            }
            skipsLineFeed = rest[end] == UInt8(ascii: "\r")
            if line.isEmpty {
                if end - rest.startIndex > limit { throw TooLong() }
                try take(line: UnsafeRawBufferPointer(rebasing: rest[..<end]), &events)
            } else {
                if line.count + (end - rest.startIndex) > limit { throw TooLong() }
                line.append(contentsOf: rest[..<end])
                let whole = line
                line.removeAll(keepingCapacity: true)
                try whole.withUnsafeBytes { try take(line: $0, &events) }
            }
            rest = rest[(end + 1)...]
        }
    }

    private static func endOfLine(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int? {
        bytes.firstIndex { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    }

    /// Parses a line without its end.
    private mutating func take(line: UnsafeRawBufferPointer, _ events: inout [ServerSentEvent]) throws {
        var line = line
        if isAtStart {
            isAtStart = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line = UnsafeRawBufferPointer(rebasing: line[3...]) }
        }
        if line.isEmpty { return dispatch(into: &events) }
        let colon = line.firstIndex(of: UInt8(ascii: ":"))
        // A comment.
        if colon == 0 { return }
        let name = UnsafeRawBufferPointer(rebasing: line[..<(colon ?? line.count)])
        var value = UnsafeRawBufferPointer(rebasing: line[(colon.map { $0 + 1 } ?? line.count)...])
        if value.first == UInt8(ascii: " ") { value = UnsafeRawBufferPointer(rebasing: value[1...]) }
        try set(name, to: value)
    }

    private mutating func set(_ name: UnsafeRawBufferPointer, to value: UnsafeRawBufferPointer) throws {
        if name.elementsEqual("data".utf8) {
            if data.count + value.count >= limit { throw TooLong() }
            data.append(contentsOf: value)
            data.append(UInt8(ascii: "\n"))
        } else if name.elementsEqual("event".utf8) {
            event = Array(value)
        } else if name.elementsEqual("id".utf8) {
            if !value.contains(0) { id = String(decoding: value, as: UTF8.self) }
        } else if name.elementsEqual("retry".utf8) {
            let isNumber = !value.isEmpty && value.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
            guard isNumber, let time = Int64(String(decoding: value, as: UTF8.self)) else { return }
            retry = .milliseconds(time)
        }
    }

    /// [empty line] The event is complete. An event without data is dropped, but its id counts.
    private mutating func dispatch(into events: inout [ServerSentEvent]) {
        defer {
            data.removeAll(keepingCapacity: true)
            event.removeAll(keepingCapacity: true)
        }
        lastEventID = id
        if data.isEmpty { return }
        let text = data.withUnsafeBytes { String(decoding: $0.dropLast(), as: UTF8.self) }
        let type = event.isEmpty ? "message" : String(decoding: event, as: UTF8.self)
        events.append(ServerSentEvent(event: type, data: text, id: id ?? ""))
    }
}
