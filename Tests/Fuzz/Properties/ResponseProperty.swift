import CCoreParts

/// A response of HTTP/1.1, to a GET and to a HEAD: the result does not depend on how its bytes are split, no byte is
/// used twice or skipped, and a second, simple reader finds the same body.
func checkResponse(_ bytes: UnsafeRawBufferPointer) throws {
    for isHead in [false, true] {
        let whole = ParsedResponse(bytes, isHead: isHead, chance: 0)
        for chance: UInt64 in [1, 7, 1_000_003] {
            try expectSame(ParsedResponse(bytes, isHead: isHead, chance: chance), whole)
        }
        try promise(whole.raw.taken <= bytes.count, "more bytes were taken than there are")
        try promise(whole.raw.heads <= 1, "a response with two heads")
        try promise(!(whole.raw.ended && whole.raw.code != 0), "an end and a fault")
        if whole.raw.ended || whole.raw.ended_by_close {
            try promise(whole.raw.complete && whole.raw.status >= 200, "an end without a head")
            try promise(!(isHead && whole.raw.body_length > 0), "a body of HEAD")
            try expectPlainBody(of: whole, Array(bytes))
        }
        if whole.raw.ended_by_close { try promise(!whole.raw.persistent, "a closed connection that persists") }
    }
}

private func expectSame(_ split: ParsedResponse, _ whole: ParsedResponse) throws {
    let (a, b) = (split.raw, whole.raw)
    try promise(
        a.code == b.code && a.detail == b.detail && a.status == b.status && a.complete == b.complete
            && a.ended == b.ended && a.ended_by_close == b.ended_by_close && a.persistent == b.persistent
            && a.informational == b.informational && a.head_received == b.head_received,
        "split bytes are read as another response: \(a.code) \(a.detail), whole \(b.code) \(b.detail)")
    // For a fault in the middle of a piece, the count of bytes before it may differ.
    if a.code == 0 {
        try promise(a.taken == b.taken && split.body == whole.body, "split bytes give another body")
    }
}

/// The bytes between the head and the end, read a second time: by the length, chunk by chunk, or to the end.
private func expectPlainBody(of response: ParsedResponse, _ bytes: [UInt8]) throws {
    let rest = bytes[..<response.raw.taken].dropFirst(try headLength(bytes, heads: Int(response.raw.informational) + 1))
    if response.body.isEmpty { return }
    if Array(rest) == response.body { return }  // by its length, or to the end
    var body: [UInt8] = []
    var at = rest.startIndex
    while let lineEnd = rest[at...].firstIndex(of: UInt8(ascii: "\n")) {
        let digits = rest[at..<lineEnd].prefix { Character(Unicode.Scalar($0)).isHexDigit }
        let size = try promised(Int(String(decoding: digits, as: UTF8.self), radix: 16), "a chunk without a size")
        if size == 0 { break }
        body += rest[(lineEnd + 1)..<(lineEnd + 1 + size)]
        at = lineEnd + 1 + size + 2
    }
    try promise(body == response.body, "chunks give another body")
}

private func headLength(_ bytes: [UInt8], heads: Int) throws -> Int {
    var at = 0
    for _ in 0..<heads {
        while true {
            let end = try promised(bytes[at...].firstIndex(of: UInt8(ascii: "\n")), "a head without its end")
            defer { at = end + 1 }
            if end - at == 1 { break }
        }
    }
    return at
}

/// A response as read by the engine.
private final class ParsedResponse {
    private(set) var raw = parts_response()

    init(_ bytes: UnsafeRawBufferPointer, isHead: Bool, chance: UInt64) {
        let start = bytes.bindMemory(to: CChar.self).baseAddress
        parts_response_read(&raw, start, bytes.count, isHead, chance)
    }

    deinit { parts_response_free(&raw) }

    var body: [UInt8] { Array(UnsafeRawBufferPointer(start: raw.body, count: raw.body_length)) }
}
