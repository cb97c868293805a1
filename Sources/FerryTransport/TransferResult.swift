internal import CFerry
import Synchronization

/// The one result of a transfer: head, body and metrics as they lie in the core's memory, freed with the last
/// reference.
///
/// Nothing is copied until it is asked for. The core hands a result over once and does not touch it again, and this
/// class only reads it: that is what makes it Sendable.
package final class TransferResult: @unchecked Sendable {
    private let raw: UnsafeMutablePointer<ferry_result>
    /// Whose the body is; `nil` where it is its own.
    private let owner: TransferResult?

    let kept = Mutex<(any AnyObject & Sendable)?>(nil)
    let passed = Atomic<UInt64>(0)

    /// Takes over a result that the core has handed out.
    init(owning raw: UnsafeMutablePointer<ferry_result>) {
        self.raw = raw
        owner = nil
    }

    /// A result that came from no network: `head` is parsed by the same rules as one from the wire.
    package init(id: TransferID, head: [UInt8], body: [UInt8]) throws(TransferFailure) {
        let made = head.withUnsafeBytes { head in body.withUnsafeBytes { Self.make(id, head, $0) } }
        raw = try made.get()
        owner = nil
    }

    /// Likewise, of memory that is somebody else's: head and body are copied.
    package init(id: TransferID, head: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer) throws(TransferFailure) {
        raw = try Self.make(id, head, body).get()
        owner = nil
    }

    private static func make(
        _ id: TransferID, _ head: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer
    ) -> Result<UnsafeMutablePointer<ferry_result>, TransferFailure> {
        var made: UnsafeMutablePointer<ferry_result>?
        // Of no head, whose address may be null, the core makes what it makes of one that is not complete.
        let start = head.bindMemory(to: CChar.self).baseAddress
        let code = withUnsafePointer(to: CChar(0)) { empty in
            ferry_result_make(id, start ?? empty, head.count, body.baseAddress, body.count, &made)
        }
        guard let made else { return .failure(TransferFailure(.init(rawValue: code) ?? .internalError)) }
        return .success(made)
    }

    /// A fault that came from no network.
    package init(id: TransferID, failure: TransferFailure, phase: TransferPhase = .queued) {
        var made: UnsafeMutablePointer<ferry_result>?
        ferry_result_make_fault(id, failure.code.rawValue, failure.detail.rawValue, phase.rawValue, &made)
        guard let made else { preconditionFailure("out of memory") }
        raw = made
        owner = nil
        // A failure has no body that anybody could read.
        if !failure.message.isEmpty { kept.withLock { $0 = FailureMessage(failure.message) } }
    }

    /// The words of a failure that came from no network.
    private final class FailureMessage: Sendable {
        let text: String
        init(_ text: String) { self.text = text }
    }

    deinit {
        ferry_result_free(raw)
    }

    package var id: TransferID { raw.pointee.id }

    /// `nil` when the transfer ended well, whatever its status.
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
    /// 0 when no status line came.
    package var status: Int { Int(raw.pointee.status) }
    /// 10, 11 or 20.
    package var httpVersion: Int { Int(raw.pointee.http_version) }
    /// `nil` where the transfer ended before one was chosen.
    package var engine: TransportConfiguration.Engine? { .init(rawValue: raw.pointee.engine) }
    /// How often it was tried. The core counts those for which a connection stood.
    package var attempts: Int { Int(raw.pointee.attempts) + (hasFailedBeforeSending ? 1 : 0) }

    /// The last attempt did not come to a connection, and neither the caller nor a policy had forbidden it.
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
    /// A coding of the body was undone, whatever its head says.
    package var isDecoded: Bool { raw.pointee.flags & UInt32(FERRY_RESULT_DECODED) != 0 }
    /// A write to its descriptor has not returned, and goes on without the run.
    package var isStillWriting: Bool { raw.pointee.flags & UInt32(FERRY_RESULT_WRITING) != 0 }
    /// As announced by the server.
    package var contentLength: Int64? { raw.pointee.content_length < 0 ? nil : raw.pointee.content_length }
    package var headBytesSent: UInt64 { raw.pointee.head_sent }
    package var bodyBytesSent: UInt64 { raw.pointee.body_sent }
    package var headBytesReceived: UInt64 { raw.pointee.head_received }
    /// Before decoding.
    package var bodyBytesReceived: UInt64 { raw.pointee.body_received }
    package var peerPort: Int { Int(raw.pointee.peer_port) }

    /// The address connected to, as text; empty when there was no connection.
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

    /// Calls `body` with the name's and the value's bytes of one field; they live until it returns.
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

    /// A result with the same head, but for some values of the same length, and the same body, which is shared. `nil`
    /// without memory, or where a length is another.
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

    /// The lines of the informational heads, as they came, without their ends.
    package var informationalLines: [[UInt8]] {
        Self.lines(raw.pointee.informational, raw.pointee.informational_length)
    }

    /// The lines of the trailers, likewise.
    package var trailerLines: [[UInt8]] { Self.lines(raw.pointee.trailers, raw.pointee.trailers_length) }

    private static func lines(_ start: UnsafePointer<CChar>?, _ length: UInt32) -> [[UInt8]] {
        UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(length))
            .split(separator: UInt8(ascii: "\n"))
            .map { $0.last == UInt8(ascii: "\r") ? Array($0.dropLast()) : Array($0) }
    }

    /// Delivered bytes, also when they were streamed or written to a descriptor.
    package var bodyLength: UInt64 { raw.pointee.body_length }

    /// The collected body; it lives as long as this object. 64 readable bytes follow it.
    package var body: UnsafeRawBufferPointer {
        guard let start = raw.pointee.body else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: start, count: Int(raw.pointee.body_length))
    }
}

/// What a higher layer has read out of the body, for whoever asks next: it alone knows what it is.
extension TransferResult {
    /// Stands for what is not to be kept.
    private final class Nothing: Sendable {
        static let only = Nothing()
    }

    /// What is kept; `nil` when nobody has read the body yet.
    package var reading: (any AnyObject & Sendable)? { kept.withLock { $0 is Nothing ? nil : $0 } }

    /// Keeps what was read, unless another thread was first, or nothing is kept. Gives what is to be used.
    package func keep(_ reading: any AnyObject & Sendable) -> any AnyObject & Sendable {
        kept.withLock { kept in
            if let kept { return kept is Nothing ? reading : kept }
            kept = reading
            return reading
        }
    }

    /// Lets go of what is kept, if nobody else holds it: then keeping it only costs memory.
    package func forgetReading() {
        // Freed when the lock is left.
        _ = kept.withLock { kept in isKnownUniquelyReferenced(&kept) ? kept.take() : nil }
    }

    /// Keeps nothing from here on: a cache that counts its bytes holds the result, for as long as it likes.
    package func keepNothing() {
        // Freed when the lock is left.
        _ = kept.withLock { kept in
            defer { kept = Nothing.only }
            return kept
        }
    }

    /// The check that the body has passed last, by a number of whoever made it; 0 = none. An answer that a cache keeps
    /// in memory is looked at many times, and stays what it is.
    package var passedCheck: UInt64 {
        get { passed.load(ordering: .relaxed) }
        set { passed.store(newValue, ordering: .relaxed) }
    }
}

/// Why a transfer did not end well, in the core's own words.
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

    /// The finer cause; the order is that of `FERRY_D_…` in CFerry.h.
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
    /// libcurl's `CURLcode`, 0 when libcurl had no part in it.
    package var curlCode: Int32 = 0
    package var errno: Int32 = 0
    /// libcurl's or the core's words; carries no header, no URL and no body.
    package var message = ""

    package init(_ code: Code, _ detail: Detail = .none) {
        self.code = code
        self.detail = detail
    }
}

/// How far a transfer had come; the order is that of `FERRY_PHASE_…` in CFerry.h.
package enum TransferPhase: Int32, Sendable {
    case queued = 0
    case dns, connect, tls, send, waitHead, head, body, done
}

/// Microseconds. `queue` and `total` count from the submit, the others from the start; 0 = did not happen.
package struct TransferMetrics: Sendable, Equatable {
    package var queue: UInt64 = 0
    package var name: UInt64 = 0
    package var connect: UInt64 = 0
    package var tls: UInt64 = 0
    package var firstByte: UInt64 = 0
    package var total: UInt64 = 0

    package init() {}
}

/// Bytes of a request's body that stand in a file, and are sent from there without a copy (sendfile(2)).
package struct TransferPiece: Sendable, Equatable {
    /// The loop's from here on, which closes it.
    package var descriptor: Int32
    package var offset: Int64
    package var length: UInt64

    package init(descriptor: Int32, offset: Int64, length: UInt64) {
        self.descriptor = descriptor
        self.offset = offset
        self.length = length
    }

    /// Whether a piece may stand in the place of bytes for this space, and costs less; only while it is being filled.
    package static func isTaken(for space: UnsafeMutableRawBufferPointer) -> Bool {
        ferry_takes_piece(space.baseAddress) != 0
    }

    /// Whether the system has all of these bytes in memory, so that nobody waits for the disk.
    package static func isInMemory(_ descriptor: Int32, _ range: Range<UInt64>) -> Bool {
        ferry_file_is_cached(descriptor, Int64(range.lowerBound), UInt64(range.count)) != 0
    }
}
