import FerrySynchronization
import FerryTransport
import FoundationEssentials
import Glibc

/// Records the exchanges of an agent as an ``HTTPArchive``, for tools that read HAR, or to replay them in tests.
///
///     let recorder = Recorder()
///     configuration.recorder = recorder
///
/// Every exchange with a server is an entry, including redirects and retries. Responses of the cache or an interceptor
/// are not recorded. Secrets are replaced by `***`: user and password of URLs; query arguments and header fields that
/// are declared sensitive, here or for redirects, or whose name suggests it (`Authorization`, `Cookie`, `X-Api-Key`,
/// `access_token`, …); and members of JSON bodies, lines of JSON, events with JSON, forms, and parts of multipart
/// bodies (`password`, `client_secret`, `access_token`, …). Such a body is not recorded if it is invalid, cut off or
/// still compressed, or has more than 10,000 arguments, 1,000 parts or 50,000 lines; an HTTP message
/// (`application/http`) is never recorded. Other bodies are recorded as they are. The recording is kept in memory, up
/// to ``maxEntries`` and ``maxTotalBytes``; ``droppedExchanges`` counts what had no place.
public final class Recorder: Sendable {
    /// The maximum number of exchanges; later ones are not recorded. The default is 10,000.
    public let maxEntries: Int
    /// The maximum size of a recorded body in bytes; a larger body is not recorded. The default is 1 MiB.
    public let maxBodyBytes: Int
    /// The maximum size of the recording in bytes: URLs, header fields and bodies. A body beyond it is not recorded,
    /// and then neither is an exchange. The default is 64 MiB.
    public let maxTotalBytes: Int
    private let state: Mutex<State>

    private struct State {
        var entries: [(number: UInt64, entry: HTTPArchive.Entry)] = []
        var number: UInt64 = 0
        var bytes = 0
        var dropped = 0
        var sensitiveNames: [String]
    }

    /// Creates a recorder. `sensitiveNames` are the names of header fields, arguments and members of bodies with secret
    /// values, in addition to those that are recognised by name.
    public init(
        maxEntries: Int = 10_000, maxBodyBytes: Int = 1 << 20, maxTotalBytes: Int = 64 << 20,
        sensitiveNames: [String] = []
    ) {
        self.maxEntries = max(maxEntries, 0)
        self.maxBodyBytes = max(maxBodyBytes, 0)
        self.maxTotalBytes = max(maxTotalBytes, 0)
        state = Mutex(State(sensitiveNames: sensitiveNames))
    }

    /// Adds names of header fields that a configuration or a request declares sensitive.
    func declare(_ names: [String]) {
        if names.isEmpty { return }
        state.withLock { state in
            for name in names where !state.sensitiveNames.contains(name) { state.sensitiveNames.append(name) }
        }
    }

    private var sensitiveNames: [String] { state.withLock { $0.sensitiveNames } }

    /// The recording so far, in the order in which the requests were sent. Any thread.
    public var archive: HTTPArchive {
        HTTPArchive(entries: state.withLock { $0.entries }.sorted { $0.number < $1.number }.map(\.entry))
    }

    /// The number of exchanges that were not recorded, because the recording was full. Any thread.
    public var droppedExchanges: Int { state.withLock { $0.dropped } }

    /// Removes everything that was recorded.
    public func removeAll() { state.withLock { ($0.entries, $0.bytes, $0.dropped) = ([], 0, 0) } }

    // MARK: Called by the transport

    /// The number of an exchange that starts.
    func begin() -> UInt64 {
        state.withLock { state in
            state.number += 1
            return state.number
        }
    }

    func end(_ exchange: borrowing RecordedExchange, _ result: TransferResult) {
        let isFull = state.withLock { state in
            if state.entries.count >= maxEntries { state.dropped += 1 }
            return state.entries.count >= maxEntries
        }
        if isFull { return }
        var entry = exchange.entry(result, by: self)
        let (bytes, headBytes) = (entry.bodyBytes, entry.headBytes)
        state.withLock { state in
            let room = maxTotalBytes - state.bytes
            guard state.entries.count < maxEntries, headBytes <= room else {
                state.dropped += 1
                return
            }
            if bytes > room - headBytes { entry.dropBodies() } else { state.bytes += bytes }
            state.bytes += headBytes
            state.entries.append((exchange.number, entry))
        }
    }

    // MARK: Redaction

    func shown(_ headers: Headers) -> [HTTPArchive.Pair] {
        Redaction.headers(headers, sensitive: sensitiveNames).enumerated().map { index, field in
            // The target of a redirect must match a recorded request, whose arguments are kept.
            let isLocation = equalNames(field.name, "Location")
            let value = isLocation ? shown(url: headers[index].value).url : field.value
            return .init(name: field.name, value: value)
        }
    }

    /// A redacted body as text, with its encoding. No text if the body cannot be read to find its secrets.
    func shown(_ body: [UInt8]?, type: String) -> (text: String?, encoding: String?) {
        guard let body, let shown = SecretBodies.masked(body, type: type, declared: sensitiveNames) else {
            return (nil, nil)
        }
        if let text = String(validating: shown, as: UTF8.self) { return (text, nil) }
        return (Data(shown).base64EncodedString(), "base64")
    }

    /// Without user and password, secret argument values, and fragment.
    func shown(url whole: String) -> (url: String, query: [HTTPArchive.Pair]) {
        let url = whole.utf8.firstIndex(of: UInt8(ascii: "#")).map { String(whole[..<$0]) } ?? whole
        let hasNoScheme = url.utf8.starts(with: "//".utf8)
        guard let mark = url.utf8.firstIndex(of: UInt8(ascii: "?")) else {
            return (Redaction.url(url, isBroken: hasNoScheme), [])
        }
        let names = sensitiveNames
        // An authorization code arrives in a redirect (RFC 6749, 4.1.2).
        let query = SecretBodies.maskedArguments(url.utf8[mark...].dropFirst()) {
            Redaction.isSensitive($0, declared: names) || $0 == "code"
        }
        let address = Redaction.url(String(url[..<mark]), isBroken: hasNoScheme)
        return (address + "?" + String(decoding: query.text, as: UTF8.self), query.arguments)
    }
}

/// An active exchange, as the recorder sees it.
struct RecordedExchange: Sendable {
    let number: UInt64
    let start = Date.now
    let url: String
    let method: String
    let headers: Headers
    let hasBody: Bool
    /// The body of the request, as far as it was sent; `nil` if it exceeds the limit, or comes from a file that the
    /// core reads itself.
    var body: [UInt8]? = []
    /// The source has not reached its end yet.
    private(set) var isCut = false
    private var announced: UInt64?
    /// The body of a streamed response; `nil` if it exceeds the limit.
    var received: [UInt8]? = []
    var isStreamed = false

    init(_ request: borrowing TransferRequest, number: UInt64, limit: Int) {
        self.number = number
        url = request.url
        method = request.method
        headers = Headers(request.allHeaders)
        switch request.body {
        case .none: hasBody = false
        case .bytes(let bytes): (hasBody, body) = (true, bytes.count <= limit ? bytes : nil)
        case .data(let data): (hasBody, body) = (true, data.count <= limit ? Array(data) : nil)
        case .pull(let length): (hasBody, isCut, announced) = (true, true, length)
        }
    }

    mutating func endSent() { isCut = false }

    mutating func appendSent(_ bytes: UnsafeRawBufferPointer, limit: Int) {
        Self.append(bytes, to: &body, limit)
        // After the announced length nobody asks for more.
        if let announced, let count = body?.count, UInt64(count) == announced { isCut = false }
    }

    mutating func appendReceived(_ bytes: UnsafeRawBufferPointer, limit: Int) {
        Self.append(bytes, to: &received, limit)
    }

    /// A body that exceeds the limit is dropped completely.
    private static func append(_ bytes: UnsafeRawBufferPointer, to kept: inout [UInt8]?, _ limit: Int) {
        guard let length = kept?.count else { return }
        if length + bytes.count > limit { kept = nil } else { kept?.append(contentsOf: bytes) }
    }

    func entry(_ result: TransferResult, by recorder: Recorder) -> HTTPArchive.Entry {
        let shown = recorder.shown(url: url)
        var request = HTTPArchive.Request(
            method: method, url: shown.url, headers: recorder.shown(headers), queryString: shown.query)
        request.bodySize = Int(clamping: result.bodyBytesSent)
        if hasBody {
            let type = headers["Content-Type"] ?? ""
            // Secrets could not be found: a part of a JSON text cannot be parsed.
            let isHidden = Self.isCompressed(headers) || isCut && SecretBodies.hasMembers(type: type)
            let (text, encoding) = recorder.shown(isHidden ? nil : body, type: type)
            request.postData = .init(mimeType: type, text: text, _encoding: encoding)
        }
        var entry = HTTPArchive.Entry(
            startedDateTime: start.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
            time: Double(result.metrics.total) / 1000, request: request, response: response(result, by: recorder),
            timings: .init(result.metrics))
        if !result.peer.isEmpty { entry.serverIPAddress = result.peer }
        entry._error = result.failure.map { RequestError($0, url: url).code.description }
        return entry
    }

    /// Whether a body is compressed: secrets in it could not be found and masked.
    private static func isCompressed(_ fields: Headers) -> Bool {
        !["", "identity"].contains(lowercased(fields["Content-Encoding"] ?? ""))
    }

    private func response(_ result: TransferResult, by recorder: Recorder) -> HTTPArchive.Response {
        let fields = Headers(result)
        var content = HTTPArchive.Content(size: Int(clamping: result.bodyLength))
        content.mimeType = fields["Content-Type"] ?? ""
        let body: [UInt8]? =
            isStreamed ? received : result.body.count <= recorder.maxBodyBytes ? Array(result.body) : nil
        let isCompressed = Self.isCompressed(fields) && !result.isDecoded
        if isCompressed { content._isCoded = true }
        if content.size > 0, isCompressed, SecretBodies.hasMembers(type: content.mimeType ?? "") {
            content.comment = "not recorded: compressed"
        } else if result.succeeded, let body, UInt64(body.count) == result.bodyLength {
            (content.text, content.encoding) = recorder.shown(body, type: content.mimeType ?? "")
            if content.text == nil { content.comment = "not recorded: not valid, so secrets could not be found" }
        } else if content.size > 0 {
            content.comment = result.succeeded ? "not recorded: too large, or written to a file" : "the exchange failed"
        }
        var response = HTTPArchive.Response(
            status: result.status, headers: recorder.shown(fields), content: content)
        response.httpVersion = result.httpVersion == 20 ? "HTTP/2" : "HTTP/1.1"
        response.redirectURL = fields["Location"].map { recorder.shown(url: $0).url } ?? ""
        response.headersSize = Int(clamping: result.headBytesReceived)
        response.bodySize = Int(clamping: result.bodyBytesReceived)
        return response
    }
}

extension HTTPArchive.Entry {
    fileprivate var bodyBytes: Int {
        (request.postData?.text?.utf8.count ?? 0) + (response.content.text?.utf8.count ?? 0)
    }

    /// An estimate of the memory of everything but the bodies.
    fileprivate var headBytes: Int {
        func size(_ pairs: [HTTPArchive.Pair]) -> Int {
            pairs.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
        }
        return 512 + request.url.utf8.count + size(request.headers) + size(request.queryString ?? [])
            + size(response.headers)
    }

    fileprivate mutating func dropBodies() {
        request.postData?.text = nil
        request.postData?._encoding = nil
        guard response.content.text != nil, response.content.size != 0 else { return }
        response.content.text = nil
        response.content.encoding = nil
        response.content.comment = "not recorded: the limit for all bodies is reached"
    }
}

extension HTTPArchive.Timings {
    fileprivate init(_ times: TransferMetrics) {
        func milliseconds(_ from: UInt64, _ to: UInt64) -> Double { Double(to &- min(from, to)) / 1000 }
        blocked = Double(times.queue) / 1000
        if times.name > 0 { dns = Double(times.name) / 1000 }
        if times.connect > 0 { connect = milliseconds(times.name, max(times.connect, times.tls)) }
        if times.tls > 0 { ssl = milliseconds(times.connect, times.tls) }
        wait = milliseconds(max(times.connect, times.tls), times.firstByte)
        receive = milliseconds(times.queue &+ times.firstByte, times.total)
    }
}

/// Sits between the core of an agent and its transport, and reports every exchange to a ``Recorder``.
final class RecordingTransport: Transporting, TransferReceiver {
    private struct State {
        weak var receiver: (any TransferReceiver)?
        var exchanges: [TransferID: RecordedExchange] = [:]
    }

    private let transport: any Transporting
    private let recorder: Recorder
    private let state = Mutex(State())

    init(_ transport: any Transporting, _ recorder: Recorder) {
        self.transport = transport
        self.recorder = recorder
    }

    private var receiver: (any TransferReceiver)? { state.withLock { $0.receiver } }

    // MARK: To the transport

    func attach(_ receiver: any TransferReceiver) {
        state.withLock { $0.receiver = receiver }
        transport.attach(self)
    }

    func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) {
        // There is no exchange: connections are opened ahead.
        if request.connections != nil { return try transport.submit(request, id: id) }
        let exchange = RecordedExchange(request, number: recorder.begin(), limit: recorder.maxBodyBytes)
        // Before it is submitted, because its result may arrive before that returns.
        state.withLock { $0.exchanges[id] = exchange }
        do throws(TransferFailure) {
            try transport.submit(request, id: id)
        } catch {
            state.withLock { _ = $0.exchanges.removeValue(forKey: id) }
            throw error
        }
    }

    func chooseLoop() -> UInt8 { transport.chooseLoop() }
    func cancel(_ id: TransferID) { transport.cancel(id) }
    func resume(_ id: TransferID) { transport.resume(id) }
    func resumeSending(_ id: TransferID) { transport.resumeSending(id) }
    func pause(_ id: TransferID) { transport.pause(id) }
    func write(_ id: TransferID, to sink: TransferSink) {
        state.withLock { $0.exchanges[id]?.received = nil }
        transport.write(id, to: sink)
    }
    func setRing(_ ring: PriorityRing, of id: TransferID) { transport.setRing(ring, of: id) }
    func shutdown() { transport.shutdown() }
    func nextExecutor() -> (any TaskExecutor)? { transport.nextExecutor() }
    var clocks: [LoopClock] { transport.clocks }
    var statistics: TransportStatistics { transport.statistics }
    var cookies: [TransferCookie] { transport.cookies }
    var hasCookies: Bool { transport.hasCookies }
    var cookieAdditions: UInt64 { transport.cookieAdditions }
    func setCookie(_ cookie: TransferCookie) { transport.setCookie(cookie) }
    func removeCookies() { transport.removeCookies() }

    // MARK: From the transport

    func transfersFinished(_ results: [TransferResult]) {
        for result in results {
            let exchange = state.withLock { $0.exchanges.removeValue(forKey: result.id) }
            if let exchange { recorder.end(exchange, result) }
        }
        receiver?.transfersFinished(results)
    }

    func trustChanged(fault: String?) { receiver?.trustChanged(fault: fault) }

    func transferStarted(_ id: TransferID) { receiver?.transferStarted(id) }

    func transfer(_ id: TransferID, receivedHead head: TransferResult) {
        state.withLock { $0.exchanges[id]?.isStreamed = true }
        receiver?.transfer(id, receivedHead: head)
    }

    func transfer(_ id: TransferID, receivedInformational head: UnsafeRawBufferPointer) {
        receiver?.transfer(id, receivedInformational: head)
    }

    func transfer(_ id: TransferID, answered result: TransferResult) { receiver?.transfer(id, answered: result) }

    func transfer(_ id: TransferID, fillTrailers space: UnsafeMutableRawBufferPointer) -> Int? {
        receiver?.transfer(id, fillTrailers: space)
    }

    func transfer(_ id: TransferID, receivedChunk chunk: UnsafeRawBufferPointer) -> TransferFlow {
        state.withLock { $0.exchanges[id]?.appendReceived(chunk, limit: recorder.maxBodyBytes) }
        return receiver?.transfer(id, receivedChunk: chunk) ?? .proceed
    }

    func transfer(_ id: TransferID, written count: UInt64) { receiver?.transfer(id, written: count) }

    func transfer(_ id: TransferID, fill space: UnsafeMutableRawBufferPointer) -> TransferFill {
        let fill = receiver?.transfer(id, fill: space) ?? .failed
        if case .piece(let piece) = fill { record(piece, of: id) }
        state.withLock { state in
            switch fill {
            case .bytes(let count):
                let bytes = UnsafeRawBufferPointer(rebasing: space[..<count])
                state.exchanges[id]?.appendSent(bytes, limit: recorder.maxBodyBytes)
            case .end: state.exchanges[id]?.endSent()
            case .piece, .later, .failed: break
            }
        }
        return fill
    }

    /// Reads what the system will send. It is in the page cache, so the event loop does not wait for it.
    private func record(_ piece: TransferPiece, of id: TransferID) {
        guard state.withLock({ $0.exchanges[id]?.body != nil }) else { return }
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(piece.length)) { space, count in
            count = max(0, pread(piece.descriptor, space.baseAddress, space.count, off_t(piece.offset)))
        }
        bytes.withUnsafeBytes { bytes in
            state.withLock { $0.exchanges[id]?.appendSent(bytes, limit: recorder.maxBodyBytes) }
        }
    }
}
