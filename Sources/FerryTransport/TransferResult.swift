internal import CFerry
import Synchronization

/// The one result of a transfer: head, body and metrics as they lie in the core's memory, freed with the last
/// reference.
///
/// Nothing is copied until it is asked for. The core hands a result over once and does not touch it again, and this
/// class only reads it: that is what makes it Sendable.
package final class TransferResult: @unchecked Sendable {
    private let raw: UnsafeMutablePointer<ferry_result>

    let kept = Mutex<(any AnyObject & Sendable)?>(nil)
    let passed = Atomic<UInt64>(0)

    /// Takes over a result that the core has handed out.
    init(owning raw: UnsafeMutablePointer<ferry_result>) {
        self.raw = raw
    }

    /// A result that came from no network: `head` is parsed by the same rules as one from the wire.
    package init(id: TransferID, head: [UInt8], body: [UInt8]) throws(TransferFailure) {
        let made = head.withUnsafeBytes { head in body.withUnsafeBytes { Self.make(id, head, $0) } }
        raw = try made.get()
    }

    /// Likewise, of memory that is somebody else's: head and body are copied.
    package init(id: TransferID, head: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer) throws(TransferFailure) {
        raw = try Self.make(id, head, body).get()
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
        if let message = raw.pointee.message { failure.message = String(cString: message) }
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
        precondition(index >= 0 && index < headerCount, "no header field \(index)")
        guard let fields = raw.pointee.fields, let head = raw.pointee.head else {
            preconditionFailure("the core counted fields it did not keep")
        }
        let field = fields[index]
        return try body(
            UnsafeRawBufferPointer(start: head + Int(field.name), count: Int(field.name_length)),
            UnsafeRawBufferPointer(start: head + Int(field.value), count: Int(field.value_length)))
    }

    /// Delivered bytes, also when they were streamed or written to a descriptor.
    package var bodyLength: UInt64 { raw.pointee.body_length }

    /// The collected body; it lives as long as this object. 64 readable bytes follow it.
    package var body: UnsafeRawBufferPointer {
        guard let start = raw.pointee.body else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: start, count: Int(raw.pointee.body_length))
    }
}
