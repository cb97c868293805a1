internal import CFerry
import FerrySynchronization

/// The one result of a transfer: head, body and metrics in the core's memory, freed with the last reference.
///
/// Nothing is copied until it is read. The core hands a result over once and does not access it again, and this class
/// only reads it: that makes it Sendable.
package final class TransferResult: @unchecked Sendable {
    private let raw: UnsafeMutablePointer<ferry_result>
    /// The result that owns the body; `nil` if this one does.
    private let owner: TransferResult?

    let kept = Mutex<(any AnyObject & Sendable)?>(nil)
    let passed = Atomic<UInt64>(0)

    /// Takes ownership of a result from the core.
    init(owning raw: UnsafeMutablePointer<ferry_result>) {
        self.raw = raw
        owner = nil
    }

    /// Makes a result without a network: `head` is parsed by the same rules as one from the network.
    package init(id: TransferID, head: [UInt8], body: [UInt8]) throws(TransferFailure) {
        let made = head.withUnsafeBytes { head in body.withUnsafeBytes { Self.make(id, head, $0) } }
        raw = try made.get()
        owner = nil
    }

    /// Makes a result without a network from borrowed memory: head and body are copied.
    package init(id: TransferID, head: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer) throws(TransferFailure) {
        raw = try Self.make(id, head, body).get()
        owner = nil
    }

    private static func make(
        _ id: TransferID, _ head: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer
    ) -> Result<UnsafeMutablePointer<ferry_result>, TransferFailure> {
        var made: UnsafeMutablePointer<ferry_result>?
        // The address of an empty head may be null; the core treats it like an incomplete head.
        let start = head.bindMemory(to: CChar.self).baseAddress
        let code = withUnsafePointer(to: CChar(0)) { empty in
            ferry_result_make(id, start ?? empty, head.count, body.baseAddress, body.count, &made)
        }
        guard let made else { return .failure(TransferFailure(.init(rawValue: code) ?? .internalError)) }
        return .success(made)
    }

    /// Makes a failure without a network.
    package init(
        id: TransferID, failure: TransferFailure, phase: TransferPhase = .queued, mayHaveBeenProcessed: Bool = false
    ) {
        var made: UnsafeMutablePointer<ferry_result>?
        let flags = mayHaveBeenProcessed ? UInt32(FERRY_RESULT_PROCESSED) : 0
        ferry_result_make_fault(id, failure.code.rawValue, failure.detail.rawValue, phase.rawValue, flags, &made)
        guard let made else { preconditionFailure("out of memory") }
        raw = made
        owner = nil
        // A failure has no body that could be read, so this storage is free.
        if !failure.message.isEmpty { kept.withLock { $0 = FailureMessage(failure.message) } }
    }

    /// The message of a failure that was made without a network.
    private final class FailureMessage: Sendable {
        let text: String
        init(_ text: String) { self.text = text }
    }

    deinit {
        ferry_result_free(raw)
    }

    package var id: TransferID { raw.pointee.id }

    /// The failure; `nil` if the transfer succeeded, with whatever status.
    package var failure: TransferFailure? {
        let code = raw.pointee.code
        if code == 0 { return nil }
        var failure = TransferFailure(
            .init(rawValue: code) ?? .internalError, .init(rawValue: raw.pointee.detail) ?? .none)
        failure.curlCode = raw.pointee.curl_code
        failure.errno = raw.pointee.os_errno
        if let message = raw.pointee.message {
            failure.message = String(cString: message)
        } else if let message = kept.withLock({ $0 as? FailureMessage }) {
            failure.message = message.text
        }
        return failure
    }

    package var succeeded: Bool { raw.pointee.code == 0 }
    package var phase: TransferPhase { .init(rawValue: raw.pointee.phase) ?? .done }
    /// The status, or 0 if no status line arrived.
    package var status: Int { Int(raw.pointee.status) }
    /// The HTTP version: 10, 11 or 20.
    package var httpVersion: Int { Int(raw.pointee.http_version) }
    /// The engine that carried the transfer; `nil` if it ended before one was chosen.
    package var engine: TransportConfiguration.Engine? { .init(rawValue: raw.pointee.engine) }
    /// How often it was tried. The core only counts attempts that had a connection.
    package var attempts: Int { Int(raw.pointee.attempts) + (hasFailedBeforeSending ? 1 : 0) }

    /// The last attempt got no connection, and neither the caller nor a policy had forbidden it.
    private var hasFailedBeforeSending: Bool {
        guard let code = TransferFailure.Code(rawValue: raw.pointee.code) else { return false }
        switch code {
        case .cancelled, .shutdown, .addressForbidden: return false
        default: break
        }
        switch phase {
        case .dns, .connect, .tls: return true
        default: return false
        }
    }
    package var isReusedConnection: Bool { raw.pointee.flags & UInt32(FERRY_RESULT_REUSED) != 0 }
    package var mayHaveBeenProcessed: Bool { raw.pointee.flags & UInt32(FERRY_RESULT_PROCESSED) != 0 }
    package var isFramedByClose: Bool { raw.pointee.flags & UInt32(FERRY_RESULT_CLOSE_FRAMED) != 0 }
    /// Whether a coding of the body was decoded, regardless of its head.
    package var isDecoded: Bool { raw.pointee.flags & UInt32(FERRY_RESULT_DECODED) != 0 }
    /// Whether a write to its descriptor has not returned, and continues without the run.
    package var isStillWriting: Bool { raw.pointee.flags & UInt32(FERRY_RESULT_WRITING) != 0 }
    /// The length that the server announced.
    package var contentLength: Int64? { raw.pointee.content_length < 0 ? nil : raw.pointee.content_length }
    package var headBytesSent: UInt64 { raw.pointee.head_sent }
    package var bodyBytesSent: UInt64 { raw.pointee.body_sent }
    package var headBytesReceived: UInt64 { raw.pointee.head_received }
    /// The number of bytes of the body before decoding.
    package var bodyBytesReceived: UInt64 { raw.pointee.body_received }
    package var peerPort: Int { Int(raw.pointee.peer_port) }

    /// The address connected to, as text; empty if there was no connection.
    package var peer: String {
        withUnsafeBytes(of: raw.pointee.peer) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    package var metrics: TransferMetrics {
        let from = raw.pointee.metrics
        var metrics = TransferMetrics()
        metrics.queue = from.queue
        metrics.name = from.name
        metrics.connect = from.connect
        metrics.tls = from.tls
        metrics.firstByte = from.first_byte
        metrics.total = from.total
        return metrics
    }

    package var headerCount: Int { Int(raw.pointee.field_count) }

    /// The head as received: status line, fields and empty line. It is valid as long as this object.
    package var head: UnsafeRawBufferPointer {
        guard let start = raw.pointee.head else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: start, count: Int(raw.pointee.head_length))
    }

    /// Calls `body` with the name's and the value's bytes of one field; they are valid until it returns.
    package func withHeader<R>(
        _ index: Int, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> R
    ) rethrows -> R {
        let field = field(index)
        return try body(field.name, field.value)
    }

    /// The name's and the value's bytes of one field. They live as long as this object.
    package func field(_ index: Int) -> (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        precondition(index >= 0 && index < headerCount, "no header field \(index)")
        guard let fields = raw.pointee.fields, let head = raw.pointee.head else {
            preconditionFailure("the core counted fields it did not keep")
        }
        let field = fields[index]
        return (
            UnsafeRawBufferPointer(start: head + Int(field.name), count: Int(field.name_length)),
            UnsafeRawBufferPointer(start: head + Int(field.value), count: Int(field.value_length))
        )
    }

    /// Another value for one field, of the same length.
    package struct FieldChange {
        package let index: Int
        package let value: UnsafeRawBufferPointer

        package init(index: Int, value: UnsafeRawBufferPointer) { (self.index, self.value) = (index, value) }
    }

    /// A result with the same head except for some values of the same length, and the same body, which is shared. `nil`
    /// if memory is short, or if a length differs.
    package convenience init?(revising other: TransferResult, _ changes: [FieldChange]) {
        var places: [ferry_change] = []
        for change in changes {
            guard change.index < other.headerCount, let field = other.raw.pointee.fields?[change.index],
                Int(field.value_length) == change.value.count,
                let bytes = change.value.bindMemory(to: CChar.self).baseAddress
            else { return nil }
            places.append(ferry_change(at: field.value, length: UInt32(field.value_length), bytes: bytes))
        }
        var made: UnsafeMutablePointer<ferry_result>?
        ferry_result_revise(other.raw, places, places.count, &made)
        guard let made else { return nil }
        self.init(made, sharing: other.owner ?? other)
        passedCheck = other.passedCheck
    }

    private init(_ raw: UnsafeMutablePointer<ferry_result>, sharing owner: TransferResult) {
        (self.raw, self.owner) = (raw, owner)
    }

    /// The lines of the informational heads, as received, without their line ends.
    package var informationalLines: [[UInt8]] {
        Self.lines(raw.pointee.informational, raw.pointee.informational_length)
    }

    /// The lines of the trailers, as received, without their line ends.
    package var trailerLines: [[UInt8]] { Self.lines(raw.pointee.trailers, raw.pointee.trailers_length) }

    /// Whether it has informational heads or trailers.
    package var hasMoreThanOneHead: Bool {
        raw.pointee.informational_length > 0 || raw.pointee.trailers_length > 0
    }

    private static func lines(_ start: UnsafePointer<CChar>?, _ length: UInt32) -> [[UInt8]] {
        lines(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(length)))
    }

    /// The lines of a head, without their ends.
    package static func lines(_ head: UnsafeRawBufferPointer) -> [[UInt8]] {
        head.split(separator: UInt8(ascii: "\n"))
            .map { $0.last == UInt8(ascii: "\r") ? Array($0.dropLast()) : Array($0) }
    }

    /// The number of bytes delivered, also if they were streamed or written to a descriptor.
    package var bodyLength: UInt64 { raw.pointee.body_length }

    /// The collected body; it is valid as long as this object. 64 readable bytes follow it.
    package var body: UnsafeRawBufferPointer {
        guard let start = raw.pointee.body else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: start, count: Int(raw.pointee.body_length))
    }
}

/// The value that a higher layer has decoded from the body, kept for the next reader. Only that layer knows its type.
extension TransferResult {
    /// Marks that nothing is to be kept.
    private final class Nothing: Sendable {
        static let only = Nothing()
    }

    /// The kept value; `nil` if the body has not been decoded yet.
    package var reading: (any AnyObject & Sendable)? { kept.withLock { $0 is Nothing ? nil : $0 } }

    /// Keeps a decoded value, unless another thread was first, or nothing is to be kept. Returns the value to use.
    package func keep(_ reading: any AnyObject & Sendable) -> any AnyObject & Sendable {
        kept.withLock { kept in
            if let kept { return kept is Nothing ? reading : kept }
            kept = reading
            return reading
        }
    }

    /// Drops the kept value if nobody else holds it: keeping it would only cost memory.
    package func forgetReading() {
        // Freed after the lock is released.
        _ = kept.withLock { kept in isKnownUniquelyReferenced(&kept) ? kept.take() : nil }
    }

    /// Stops keeping values: a cache that counts its bytes may hold the result for long.
    package func keepNothing() {
        // Freed after the lock is released.
        _ = kept.withLock { kept in
            defer { kept = Nothing.only }
            return kept
        }
    }

    /// The number of the last check that the body has passed, as chosen by the checker; 0 = none. A response in a
    /// memory cache is checked many times and does not change.
    package var passedCheck: UInt64 {
        get { passed.load(ordering: .relaxed) }
        set { passed.store(newValue, ordering: .relaxed) }
    }
}

/// Why a transfer failed, in the core's terms.
package struct TransferFailure: Error, Sendable, Equatable {
    package enum Code: Int32, Sendable {
        case memory = -1
        case internalError = -2
        case invalidURL = -3
        case unsupportedScheme = -4
        case invalidRequest = -5
        case dns = -6
        case connect = -7
        case tls = -8
        case timeout = -9
        case connectionReset = -10
        case connectionClosed = -11
        case incompleteBody = -12
        case malformedResponse = -13
        case headTooLarge = -14
        case bodyTooLarge = -15
        case contentDecoding = -16
        case http2Stream = -17
        case file = -18
        case uploadSource = -19
        case cancelled = -20
        case shutdown = -21
        case proxy = -22
        case addressForbidden = -23
        case bodyNotReplayable = -24
    }

    /// The finer cause; in the order of `FERRY_D_…` in CFerry.h.
    package enum Detail: Int32, Sendable {
        case none = 0
        case method, headerName, headerValue, framing
        case dnsNotFound, dnsTemporary, dnsFailed
        case connectRefused, connectUnreachable, connectFailed
        case tlsExpired, tlsHostname, tlsUntrusted, tlsPinMismatch, tlsHandshake, tlsConfiguration
        case timeoutQueue, timeoutDNS, timeoutConnect, timeoutTLS, timeoutWrite, timeoutResponseHead, timeoutRead
        case timeoutLowSpeed, timeoutTotal, timeoutDeadline
        case statusLine, header, length, conflictingLength, transferEncoding, chunk, trailer, upgrade
        case headBytes, informational
        case decodingTruncated, decodingCorrupt
        case proxyAuthRequired, proxyRefused, proxyUnreachable, proxyHandshake
        case http2Refused, http2Cancel, http2Internal, http2EnhanceYourCalm, http2Other
    }

    package var code: Code
    package var detail: Detail
    /// libcurl's `CURLcode`; 0 if libcurl was not involved.
    package var curlCode: Int32 = 0
    package var errno: Int32 = 0
    /// The message of libcurl or the core; it contains no header, no URL and no body.
    package var message = ""

    package init(_ code: Code, _ detail: Detail = .none) {
        self.code = code
        self.detail = detail
    }
}

/// How far a transfer had got; in the order of `FERRY_PHASE_…` in CFerry.h.
package enum TransferPhase: Int32, Sendable {
    case queued = 0
    case dns, connect, tls, send, waitHead, head, body, done
}

/// In microseconds. `queue` and `total` count from the submit, the others from the start; 0 means that it did not
/// happen.
package struct TransferMetrics: Sendable, Equatable {
    package var queue: UInt64 = 0
    package var name: UInt64 = 0
    package var connect: UInt64 = 0
    package var tls: UInt64 = 0
    package var firstByte: UInt64 = 0
    package var total: UInt64 = 0

    package init() {}
}

/// Bytes of a request's body in a file, sent from there without a copy (sendfile(2)).
package struct TransferPiece: Sendable, Equatable {
    /// The descriptor. The loop owns it from here on, and closes it.
    package var descriptor: Int32
    package var offset: Int64
    package var length: UInt64

    package init(descriptor: Int32, offset: Int64, length: UInt64) {
        self.descriptor = descriptor
        self.offset = offset
        self.length = length
    }

    /// Whether a piece may be returned instead of bytes for this space, and costs less; valid only while it is being
    /// filled.
    package static func isTaken(for space: UnsafeMutableRawBufferPointer) -> Bool {
        ferry_takes_piece(space.baseAddress) != 0
    }

    /// Whether all of these bytes are in the system's page cache, so that nobody waits for the disk.
    package static func isInMemory(_ descriptor: Int32, _ range: Range<UInt64>) -> Bool {
        ferry_file_is_cached(descriptor, Int64(range.lowerBound), UInt64(range.count)) != 0
    }
}
