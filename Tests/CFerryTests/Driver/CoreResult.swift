import CFerry

/// A `ferry_result`, copied.
struct CoreResult: Sendable {
    var id: UInt64
    var code: Int
    var detail: Int
    var phase: Int
    var curlCode: Int
    var osErrno: Int32
    var status: Int
    var version: Int
    var attempts: Int
    var isReused: Bool
    var isProcessed: Bool
    var isCloseFramed: Bool
    var isDecoded: Bool
    var isStillWriting: Bool
    var contentLength: Int64
    var headSent: UInt64
    var bodySent: UInt64
    var headReceived: UInt64
    var bodyReceived: UInt64
    var bodyLength: UInt64
    var peer: String
    var peerPort: Int
    var metrics: ferry_metrics
    var head: [UInt8]
    var fields: [(name: String, value: String)]
    /// Nil if the core gave none.
    var body: [UInt8]?
    /// The 64 bytes after the body, if there is one.
    var spare: [UInt8]
    var message: String?
    /// 1xx heads and trailers, as received.
    var informational: String
    var trailers: String

    init(copying raw: ferry_result) {
        id = raw.id
        code = Int(raw.code)
        detail = Int(raw.detail)
        phase = Int(raw.phase)
        curlCode = Int(raw.curl_code)
        osErrno = raw.os_errno
        status = Int(raw.status)
        version = Int(raw.http_version)
        attempts = Int(raw.attempts)
        isReused = raw.flags & UInt32(FERRY_RESULT_REUSED) != 0
        isProcessed = raw.flags & UInt32(FERRY_RESULT_PROCESSED) != 0
        isCloseFramed = raw.flags & UInt32(FERRY_RESULT_CLOSE_FRAMED) != 0
        isDecoded = raw.flags & UInt32(FERRY_RESULT_DECODED) != 0
        isStillWriting = raw.flags & UInt32(FERRY_RESULT_WRITING) != 0
        contentLength = raw.content_length
        headSent = raw.head_sent
        bodySent = raw.body_sent
        headReceived = raw.head_received
        bodyReceived = raw.body_received
        bodyLength = raw.body_length
        var text = raw.peer
        peer = withUnsafeBytes(of: &text) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        peerPort = Int(raw.peer_port)
        metrics = raw.metrics
        let head = Array(UnsafeRawBufferPointer(start: raw.head, count: Int(raw.head_length)))
        self.head = head
        fields = UnsafeBufferPointer(start: raw.fields, count: Int(raw.field_count)).map { field in
            func text(_ start: UInt32, _ length: UInt16) -> String {
                String(decoding: head[Int(start)..<Int(start) + Int(length)], as: UTF8.self)
            }
            return (text(field.name, field.name_length), text(field.value, field.value_length))
        }
        if let bytes = raw.body {
            let all = UnsafeRawBufferPointer(start: bytes, count: Int(raw.body_length) + 64)
            body = Array(all.prefix(Int(raw.body_length)))
            spare = Array(all.suffix(64))
        } else {
            spare = []
        }
        message = raw.message.map { String(cString: $0) }
        func lines(_ start: UnsafePointer<CChar>?, _ length: UInt32) -> String {
            String(decoding: UnsafeRawBufferPointer(start: start, count: Int(length)), as: UTF8.self)
        }
        informational = lines(raw.informational, raw.informational_length)
        trailers = lines(raw.trailers, raw.trailers_length)
    }

    var text: String { String(decoding: body ?? [], as: UTF8.self) }

    /// The values of a field, in order.
    func values(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// Code and detail together, for comparing.
    var fault: CoreFault { CoreFault(code, detail) }
}

/// A code and its detail.
struct CoreFault: Error, Equatable, CustomStringConvertible {
    var code: Int
    var detail: Int

    init(_ code: Int, _ detail: Int = FERRY_D_NONE) {
        self.code = code
        self.detail = detail
    }

    static let ok = CoreFault(FERRY_OK)
    static let cancelled = CoreFault(FERRY_E_CANCELLED)
    static let shutdown = CoreFault(FERRY_E_SHUTDOWN)
    static func timeout(_ detail: Int) -> CoreFault { CoreFault(FERRY_E_TIMEOUT, detail) }
    static func malformed(_ detail: Int) -> CoreFault { CoreFault(FERRY_E_MALFORMED_RESPONSE, detail) }
    static func tls(_ detail: Int) -> CoreFault { CoreFault(FERRY_E_TLS, detail) }

    var description: String { "code \(code), detail \(detail)" }
}
