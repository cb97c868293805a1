import CCoreParts

/// The head of a response: the accepted heads are those that RFC 9112 allows, by a second, simple reader.
func checkHeader(_ bytes: UnsafeRawBufferPointer) throws {
    let limit: UInt32 = 2048
    let head = Head(bytes, limit: limit)
    if head.raw.code != 0 { return }
    try promise(head.raw.received <= UInt64(limit), "more than the limit was taken")
    let kept = head.bytes
    if kept.isEmpty { return try promise(head.raw.count == 0, "fields without a head") }
    let lines = kept.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: true)
    try promise(lines.allSatisfy { $0.last == UInt8(ascii: "\r") }, "a line without its CR")
    try promise(lines.dropFirst().count { $0.count > 1 } == head.raw.count, "another number of fields")
    for byte in kept where byte != 0x0D && byte != 0x0A && byte != 0x09 {
        try promise(byte >= 0x20 && byte != 0x7F, "a control byte was taken")
    }
    var lengths: Set<[UInt8]> = []
    var codings: [[UInt8]] = []
    for field in head.fields {
        try checkField(field, in: kept)
        let name = String(decoding: head.slice(field.name, field.name_length), as: UTF8.self).lowercased()
        let value = Array(head.slice(field.value, field.value_length))
        if name == "content-length" { lengths.insert(Array(value.drop { $0 == 0x30 })) }
        if name == "transfer-encoding" { codings.append(value) }
    }
    try promise(lengths.count <= 1, "contradictory lengths")
    try promise(head.raw.chunked == !codings.isEmpty && codings.count <= 1, "another transfer coding")
    if let digits = lengths.first {
        let length = digits.isEmpty ? 0 : Int64(String(decoding: digits, as: UTF8.self))
        try promise(length == head.raw.content_length, "another length")
    } else {
        try promise(head.raw.content_length == -1, "a length that nobody has announced")
    }
    guard head.raw.complete else { return }
    try promise((200...999).contains(head.raw.status), "status \(head.raw.status) is no answer")
    try promise(!(head.raw.chunked && head.raw.content_length >= 0), "two framings")
    try expectSame(kept.withUnsafeBytes { Head($0, limit: 0) }, head)
}

private func checkField(_ field: ferry_field, in kept: [UInt8]) throws {
    let (name, value) = (Int(field.name), Int(field.value))
    let (nameEnd, valueEnd) = (name + Int(field.name_length), value + Int(field.value_length))
    try promise(name < nameEnd && nameEnd < value && valueEnd <= kept.count, "a field outside of its head")
    try promise(kept[nameEnd] == UInt8(ascii: ":"), "a name that does not end at its colon")
    try promise(name == 0 || kept[name - 1] == UInt8(ascii: "\n"), "a name within a line")
    let special = Array("!#$%&'*+-.^_`|~".utf8)
    for byte in kept[name..<nameEnd] {
        let isAlphanumeric = (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
        try promise(isAlphanumeric || special.contains(byte), "a name that is no token")
    }
    let blanks: [UInt8?] = [0x20, 0x09]
    if value < valueEnd {
        try promise(
            !blanks.contains(kept[value]) && !blanks.contains(kept[valueEnd - 1]), "a value with blanks about it")
    }
}

/// A stored head reads back as the same head.
private func expectSame(_ again: Head, _ head: Head) throws {
    try promise(again.raw.code == 0 && again.raw.complete, "a head is not read again")
    try promise(
        again.bytes == head.bytes && again.raw.status == head.raw.status && again.raw.count == head.raw.count
            && again.raw.chunked == head.raw.chunked && again.raw.content_length == head.raw.content_length,
        "a head is read as another")
}

/// A head as read by the core.
private final class Head {
    private(set) var raw = parts_head()

    init(_ bytes: UnsafeRawBufferPointer, limit: UInt32) {
        parts_head_read(&raw, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count, limit)
    }

    deinit { parts_head_free(&raw) }

    var bytes: [UInt8] { Array(UnsafeRawBufferPointer(start: raw.bytes, count: Int(raw.length))) }
    var fields: UnsafeBufferPointer<ferry_field> { UnsafeBufferPointer(start: raw.fields, count: Int(raw.count)) }

    func slice(_ start: UInt32, _ length: UInt16) -> ArraySlice<UInt8> {
        bytes[Int(start)..<Int(start) + Int(length)]
    }
}
