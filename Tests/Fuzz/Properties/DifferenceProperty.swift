import CCoreParts

/// A server's bytes are the same response, or the same fault, for both engines. The first byte says whether it is a
/// response to HEAD (H), the second one how it is split. Allowed differences have a name.
func checkDifferences(_ bytes: UnsafeRawBufferPointer) throws {
    guard bytes.count >= 2 else { return }
    let chance = bytes[1] == UInt8(ascii: "0") ? 0 : UInt64(bytes[1])
    let sent = SentResponse(bytes: UnsafeRawBufferPointer(rebasing: bytes[2...]), isHead: bytes[0] == UInt8(ascii: "H"))
    let native = Asked(FERRY_ENGINE_HTTP1, sent, chance)
    try promise(!native.raw.overdue, "a transfer without an end")
    try promise(native.raw.transfer.finished == 1, "\(native.raw.transfer.finished) results")
    if native.code == FERRY_OK && native.raw.early {
        try promise(
            native.raw.kept == (native.persists && !sent.hasExcess), "native keeps the connection: \(native.raw.kept)")
    }
    let libcurl = Asked(FERRY_ENGINE_LIBCURL, sent, chance)
    try promise(!libcurl.raw.overdue, "a transfer without an end")
    if let words = native.difference(from: libcurl), AllowedDifference.of(native, libcurl, sent) == nil {
        throw BrokenPromise(description: words)
    }
}

/// The differences that the standard decides, as listed in the manual (Connections, Engines).
private enum AllowedDifference {
    /// RFC 9112, 9.2: bytes after a response belong to no request, and the connection ends. libcurl may ignore them and
    /// keep the connection.
    case excess
    /// RFC 9112, 9.3 and RFC 9110, 7.6.1: `close` and `keep-alive` are members of a list. libcurl searches for them
    /// anywhere in the value, or in the first field with that name only.
    case connectionOption
    /// RFC 9112, 7.1: a chunk's size has hexadecimal digits only, an extension after it has no control characters, and
    /// the line ends with CR LF, like the one after the data. libcurl ignores anything between the digits and an LF,
    /// and takes `0x` for the size 0.
    case chunkLine
    /// RFC 9112, 7.1 and 2.2: trailers are lines that end with CR LF, and so is the empty line after them. libcurl
    /// accepts a bare LF as a line's end, a bare CR at the end of the connection as the empty line, and reports a bare
    /// CR before its line has ended.
    case trailerLine
    /// RFC 9112, 2.3: the name of the protocol is case-sensitive. libcurl waits for the end of a line that begins with
    /// `http/`.
    case protocolName
    /// RFC 9110, 5.5: a field has no control characters. libcurl checks the value of a framing field first.
    case framingField
    /// RFC 9110, 5.5: a field has no NUL. libcurl 7 drops the bytes that it has read after a line if they begin with
    /// one, and so may understand anything.
    case nulLine
    /// libcurl sends again by itself if a kept connection turns out to be dead, and keeps the message about that: the
    /// error of the response is no longer reported.
    case repeated

    static func of(_ native: Asked, _ libcurl: Asked, _ sent: SentResponse) -> AllowedDifference? {
        switch native.code {
        case FERRY_OK: whole(native, libcurl, sent)
        case FERRY_E_INCOMPLETE_BODY: incomplete(libcurl, sent)
        case FERRY_E_MALFORMED_RESPONSE: malformed(native, libcurl, sent)
        default: nil
        }
    }

    /// The same response, except whether its connection is kept: the native engine follows the standard.
    private static func whole(_ native: Asked, _ libcurl: Asked, _ sent: SentResponse) -> AllowedDifference? {
        guard libcurl.code == FERRY_OK, native.isSame(as: libcurl), native.raw.early, libcurl.raw.early else {
            return nil
        }
        if sent.hasExcess { return .excess }
        return native.hasConnectionOption ? .connectionOption : nil
    }

    private static func incomplete(_ libcurl: Asked, _ sent: SentResponse) -> AllowedDifference? {
        guard sent.isInTrailers, sent.lastLine.contains(UInt8(ascii: "\r")) else { return nil }
        // The line up to the CR may be one that both engines refuse when it ends.
        let isTold = libcurl.isMalformed(FERRY_D_CHUNK) || libcurl.isMalformed(FERRY_D_TRAILER)
        return libcurl.code == FERRY_OK || isTold ? .trailerLine : nil
    }

    private static func malformed(_ native: Asked, _ libcurl: Asked, _ sent: SentResponse) -> AllowedDifference? {
        let line = sent.faultyLine
        let hasBareEnd = line.dropLast(2).contains(13) || line.suffix(2).first != 13
        let isTaken = libcurl.code == FERRY_OK || libcurl.code == FERRY_E_INCOMPLETE_BODY
        if line.first == 0, String(cString: parts_libcurl()).hasPrefix("7.") { return .nulLine }
        if libcurl.raw.transfer.attempts > 1,
            libcurl.isMalformed(FERRY_D_HEADER) || libcurl.code == FERRY_E_CONNECTION_RESET
        {
            return .repeated
        }
        switch native.detail {
        case FERRY_D_CHUNK:
            return sent.hasTolerableChunkFault && (isTaken || libcurl.isMalformed(FERRY_D_TRAILER)) ? .chunkLine : nil
        case FERRY_D_TRAILER where hasBareEnd:
            return isTaken || libcurl.isMalformed(FERRY_D_CHUNK) ? .trailerLine : nil
        case FERRY_D_STATUS_LINE where line.last != 10 && begins(line, "http/".prefix(line.count)):
            return libcurl.code == FERRY_E_CONNECTION_CLOSED ? .protocolName : nil
        case FERRY_D_HEADER where begins(line, "content-length:"):
            return libcurl.isMalformed(FERRY_D_LENGTH) ? .framingField : nil
        case FERRY_D_HEADER where begins(line, "transfer-encoding:"):
            return libcurl.isMalformed(FERRY_D_TRANSFER_ENCODING) ? .framingField : nil
        default: return nil
        }
    }

    /// In lower case, byte by byte: a character may be several of them.
    private static func begins(_ line: [UInt8], _ prefix: some StringProtocol) -> Bool {
        line.map { (65...90).contains($0) ? $0 + 32 : $0 }.starts(with: prefix.utf8)
    }
}

// MARK: - The server's bytes

/// A server's bytes, and the parser's result for the whole.
private struct SentResponse {
    let bytes: UnsafeRawBufferPointer
    let isHead: Bool
    private let parsed: parts_response

    init(bytes: UnsafeRawBufferPointer, isHead: Bool) {
        self.bytes = bytes
        self.isHead = isHead
        parsed = Self.parsed(bytes, isHead)
    }

    private static func parsed(_ bytes: UnsafeRawBufferPointer, _ isHead: Bool) -> parts_response {
        var response = parts_response()
        parts_response_read(&response, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count, isHead, 0)
        parts_response_free(&response)
        response.body = nil
        return response
    }

    var hasExcess: Bool { parsed.ended && parsed.taken < bytes.count }
    var isInTrailers: Bool { Int(parsed.part) == PARTS_TRAILERS }

    /// What was left of the last line.
    var lastLine: some Collection<UInt8> { bytes[((bytes.lastIndex(of: 10) ?? -1) + 1)...] }

    /// The line of a head or of trailers that the parser has refused, with its end.
    var faultyLine: [UInt8] {
        let taken = bytes[..<parsed.taken]
        let start = (taken.dropLast().lastIndex(of: 10) ?? -1) + 1
        // It refuses a line that cannot be HTTP by its first bytes, and consumes none of them: the start of a head.
        if Int(parsed.detail) == FERRY_D_STATUS_LINE, taken[start...].allSatisfy({ $0 == 10 || $0 == 13 }) {
            let rest = bytes[parsed.taken...]
            return Array(rest[...(rest.firstIndex(of: 10) ?? rest.endIndex - 1)])
        }
        return Array(taken[start...])
    }

    /// The parser has refused a byte between the first digit of a chunk's size and the end of that line, except for one
    /// digit too many, or for a bare LF or another CR after a chunk's data.
    var hasTolerableChunkFault: Bool {
        let before = Self.parsed(UnsafeRawBufferPointer(rebasing: bytes[..<(parsed.taken - 1)]), isHead)
        let byte = bytes[parsed.taken - 1]
        switch Int(before.part) {
        case PARTS_CHUNK_DIGITS: return !Character(Unicode.Scalar(byte)).isHexDigit
        case PARTS_CHUNK_LINE: return true
        case PARTS_CHUNK_END: return byte == 10 || byte == 13
        default: return false
        }
    }
}

// MARK: - The outcome

/// The outcome of one engine.
private final class Asked {
    private(set) var raw = parts_asked()

    init(_ engine: Int, _ sent: SentResponse, _ chance: UInt64) {
        let start = sent.bytes.bindMemory(to: CChar.self).baseAddress
        parts_ask(&raw, CInt(engine), sent.isHead, start, sent.bytes.count, chance)
    }

    deinit { parts_asked_free(&raw) }

    var code: Int { Int(raw.transfer.code) }
    var detail: Int { Int(raw.transfer.detail) }

    func isMalformed(_ detail: Int) -> Bool { code == FERRY_E_MALFORMED_RESPONSE && self.detail == detail }

    /// Nil if it equals the other.
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
        let processed = UInt32(FERRY_RESULT_PROCESSED)
        if a.flags & processed != b.flags & processed { return "flags: native \(a.flags), libcurl \(b.flags)" }
        if raw.early != other.raw.early { return "native ends before the connection: \(raw.early), libcurl not so" }
        if raw.early, raw.kept != other.raw.kept { return "native keeps the connection: \(raw.kept), libcurl not so" }
        return a.code == 0 && !isSame(as: other) ? "native: \(summary); libcurl: \(other.summary)" : nil
    }

    /// All delivered bytes are equal.
    func isSame(as other: Asked) -> Bool {
        let (a, b) = (raw.transfer, other.raw.transfer)
        let flags = UInt32(FERRY_RESULT_CLOSE_FRAMED | FERRY_RESULT_PROCESSED)
        return a.status == b.status && a.version == b.version && a.fields == b.fields && head == other.head
            && aside == other.aside && body == other.body && a.flags & flags == b.flags & flags
            && a.content_length == b.content_length
    }

    /// Whether the connection is kept after this head, read by simple means (RFC 9112, 9.3).
    var persists: Bool {
        let options = connectionValues.flatMap { $0.split(separator: ",") }
            .map { $0.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed() }
            .map { String($0) }
        if options.contains("close") { return false }
        // HTTP/1.0 has no 1xx: after one the connection may end.
        if aside.starts(with: Array("HTTP/1.0".utf8)) || String(decoding: aside, as: UTF8.self).contains("\nHTTP/1.0") {
            return false
        }
        // HTTP/1.0 has no chunks: who sent them, and where they end, is uncertain.
        if raw.transfer.version == 10 { return options.contains("keep-alive") && !isChunked }
        return true
    }

    var hasConnectionOption: Bool { connectionValues.contains { $0.contains("close") || $0.contains("keep-alive") } }

    private var isChunked: Bool { lines.contains { $0.hasPrefix("transfer-encoding:") } }

    private var connectionValues: [Substring] {
        lines.filter { $0.hasPrefix("connection:") }.map { $0.dropFirst("connection:".count) }
    }

    /// A field of the head, in lower case.
    private var lines: [String] {
        head.split(separator: UInt8(ascii: "\n")).map { line in
            String(decoding: line.last == 13 ? line.dropLast() : line, as: UTF8.self).lowercased()
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
