import CCoreParts

/// What a server sends is the same response, or the same fault, to both engines: the first byte says whether it is one
/// to HEAD (H), the second one how it is split. What may differ has a name.
func checkDifferences(_ bytes: UnsafeRawBufferPointer) throws {
    guard bytes.count >= 2 else { return }
    let isHead = bytes[0] == UInt8(ascii: "H")
    let chance = bytes[1] == UInt8(ascii: "0") ? 0 : UInt64(bytes[1])
    let sent = UnsafeRawBufferPointer(rebasing: bytes[2...])
    var words: String?
    // A loop that a loaded machine holds up may read two pieces as one: what lies in the splits only is read again,
    // with more time for each.
    for patience: UInt32 in [0, 5_000, 50_000] {
        let native = Asked(FERRY_ENGINE_HTTP1, sent, isHead, chance, patience)
        let libcurl = Asked(FERRY_ENGINE_LIBCURL, sent, isHead, chance, patience)
        try promise(!native.raw.overdue && !libcurl.raw.overdue, "a transfer without an end")
        try promise(native.raw.transfer.finished == 1, "\(native.raw.transfer.finished) results")
        words = native.difference(from: libcurl)
        guard words != nil, AllowedDifference.of(native, libcurl, sent, isHead) == nil else { return }
    }
    throw BrokenPromise(description: words ?? "")
}

/// The differences that the standard decides, and the manual lists (Connections, Engines).
private enum AllowedDifference {
    /// RFC 9112, 7.1: a chunk's size has hexadecimal digits only, and an extension behind it has no control
    /// characters. libcurl takes `0x` for the size 0, and leaves out what is behind a size.
    case chunkSize
    /// RFC 9112, 2.2: a line ends with CR LF. A status line with a bare LF is malformed to both engines; the phase is
    /// another one, as libcurl tells of a whole line only.
    case statusLinePhase
    /// RFC 9112, 2.3: the name of the protocol is case-sensitive. libcurl waits for the end of a line that begins with
    /// `http/`.
    case protocolName
    /// RFC 9112, 7.1 and 2.2: trailers are lines that end with CR LF, and so is the empty one behind them. libcurl
    /// takes a bare LF for a line's end, a bare CR at the end of the connection for the empty line, and tells of a bare
    /// CR before its line has ended.
    case trailerLine
    /// RFC 9110, 5.5: a field has no control characters. libcurl looks at the number in Content-Length first.
    case lengthField
    /// RFC 9110, 5.5: a field has no NUL. libcurl 7.88 leaves out what it has read behind a line when that begins with
    /// one.
    case nulLine
    /// RFC 9112, 9.2: bytes behind a response are no response to anything, and the connection ends. libcurl leaves them
    /// out and keeps the connection.
    case excess
    /// RFC 9112, 9.3: `close` and `keep-alive` are members of a list. libcurl looks for them anywhere in the value.
    case connectionOption

    static func of(
        _ native: Asked, _ libcurl: Asked, _ sent: UnsafeRawBufferPointer, _ isHead: Bool
    ) -> AllowedDifference? {
        if native.code == FERRY_OK, libcurl.code == FERRY_OK {
            guard native.isSame(as: libcurl), native.raw.early, libcurl.raw.early else { return nil }
            if !native.raw.kept, hasExcess(sent, isHead) { return .excess }
            return native.hasConnectionOption ? .connectionOption : nil
        }
        if native.code == FERRY_E_INCOMPLETE_BODY, sent.last == UInt8(ascii: "\r") || libcurl.detail == FERRY_D_CHUNK {
            return libcurl.code == FERRY_OK || libcurl.code == FERRY_E_MALFORMED_RESPONSE ? .trailerLine : nil
        }
        guard native.code == FERRY_E_MALFORMED_RESPONSE else { return nil }
        switch (native.detail, libcurl.code, libcurl.detail) {
        case (FERRY_D_CHUNK, FERRY_E_MALFORMED_RESPONSE, FERRY_D_TRAILER),
            (FERRY_D_CHUNK, FERRY_E_INCOMPLETE_BODY, _), (FERRY_D_CHUNK, FERRY_OK, _):
            return .chunkSize
        case (FERRY_D_TRAILER, FERRY_E_MALFORMED_RESPONSE, FERRY_D_CHUNK),
            (FERRY_D_TRAILER, FERRY_E_INCOMPLETE_BODY, _), (FERRY_D_TRAILER, FERRY_OK, _):
            return .trailerLine
        case (FERRY_D_STATUS_LINE, FERRY_E_MALFORMED_RESPONSE, FERRY_D_STATUS_LINE): return .statusLinePhase
        case (FERRY_D_HEADER, FERRY_E_MALFORMED_RESPONSE, FERRY_D_LENGTH): return .lengthField
        case (FERRY_D_STATUS_LINE, FERRY_E_CONNECTION_CLOSED, _) where !sent.starts(with: "HTTP/".utf8):
            return .protocolName
        default: return zip(sent, sent.dropFirst()).contains { $0 == 10 && $1 == 0 } ? .nulLine : nil
        }
    }

    private static func hasExcess(_ sent: UnsafeRawBufferPointer, _ isHead: Bool) -> Bool {
        var response = parts_response()
        parts_response_read(&response, sent.bindMemory(to: CChar.self).baseAddress, sent.count, isHead, 0)
        defer { parts_response_free(&response) }
        return response.ended && response.taken < sent.count
    }
}

/// What one engine makes of it.
private final class Asked {
    private(set) var raw = parts_asked()

    init(_ engine: Int, _ bytes: UnsafeRawBufferPointer, _ isHead: Bool, _ chance: UInt64, _ patience: UInt32) {
        let start = bytes.bindMemory(to: CChar.self).baseAddress
        parts_ask(&raw, CInt(engine), isHead, start, bytes.count, chance, patience)
    }

    deinit { parts_asked_free(&raw) }

    var code: Int { Int(raw.transfer.code) }
    var detail: Int { Int(raw.transfer.detail) }

    /// Nil when it is the same as the other.
    func difference(from other: Asked) -> String? {
        let (a, b) = (raw.transfer, other.raw.transfer)
        if a.code != b.code || a.detail != b.detail {
            return "the native engine: \(a.code), \(a.detail) in phase \(a.phase); "
                + "libcurl: \(b.code), \(b.detail) in phase \(b.phase)"
        }
        if a.phase != b.phase { return "\(a.code), \(a.detail): native in phase \(a.phase), libcurl in \(b.phase)" }
        if a.status != b.status || a.version != b.version {
            return "native: status \(a.status) of \(a.version), libcurl: \(b.status) of \(b.version)"
        }
        if raw.early != other.raw.early { return "native ends before the connection: \(raw.early), libcurl not so" }
        if raw.early, raw.kept != other.raw.kept { return "native keeps the connection: \(raw.kept), libcurl not so" }
        return a.code == 0 && !isSame(as: other) ? "native: \(summary); libcurl: \(other.summary)" : nil
    }

    /// All that is delivered is the same.
    func isSame(as other: Asked) -> Bool {
        let (a, b) = (raw.transfer, other.raw.transfer)
        let flags = UInt32(FERRY_RESULT_CLOSE_FRAMED)
        return a.status == b.status && a.version == b.version && a.fields == b.fields && head == other.head
            && aside == other.aside && body == other.body && a.flags & flags == b.flags & flags
            && a.content_length == b.content_length
    }

    var hasConnectionOption: Bool {
        head.split(separator: UInt8(ascii: "\n")).contains { line in
            let text = String(decoding: line, as: UTF8.self).lowercased()
            return text.hasPrefix("connection:") && (text.contains("close") || text.contains("keep-alive"))
        }
    }

    private var summary: String {
        let t = raw.transfer
        return "\(t.fields) fields, a head of \(t.head_length) bytes, a body of \(t.body_length) of "
            + "\(t.content_length), \(t.aside_length) aside, flags \(t.flags)"
    }

    var head: [UInt8] { Array(UnsafeRawBufferPointer(start: raw.transfer.head, count: raw.transfer.head_length)) }
    var body: [UInt8] { Array(UnsafeRawBufferPointer(start: raw.transfer.body, count: raw.transfer.body_length)) }
    var aside: [UInt8] { Array(UnsafeRawBufferPointer(start: raw.transfer.aside, count: raw.transfer.aside_length)) }
}
