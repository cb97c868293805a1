import FoundationEssentials

@testable import Ferry

/// An accepted `Content-Range` agrees with its text, and does not contradict itself.
func checkContentRange(_ text: String) throws {
    guard let range = ContentRange(text) else { return }
    let total = range.total.map(String.init) ?? "*"
    let bytes = range.bytes.map { "\($0.lowerBound)-\($0.upperBound)" } ?? "*"
    let canonical = "bytes \(bytes)/\(total)"
    try promise(ContentRange(canonical) == range, "\(canonical) is read as another")
    try promise(range.bytes != nil || range.total != nil, "a range of nothing known")
    if let bytes = range.bytes {
        try promise(bytes.lowerBound >= 0 && bytes.upperBound < range.total ?? .max, "a range beyond its total")
    }
    try promise(withoutLeadingZeros(text.lowercased()) == canonical, "\(canonical) is not what stands there")
}

private func withoutLeadingZeros(_ text: String) -> String {
    var made = ""
    for character in text {
        // One that follows a zero at the start of a number replaces it.
        if character.isNumber, made.last == "0", !(made.dropLast().last?.isNumber ?? false) { made.removeLast() }
        made.append(character)
    }
    return made
}

/// An accepted `Retry-After` is a time that has not passed; a number is in seconds, and a date reads back as itself.
func checkRetryAfter(_ text: String) throws {
    let now = HTTPDate(secondsSince1970: 1_800_000_000)
    let wait = RetryAfter.wait([text], now: now)
    if let wait { try promise(wait >= .zero, "a time that has passed") }
    if !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
        try promise(wait == Int64(text).map { .seconds($0) }, "another number of seconds")
    }
    try promise(RetryAfter.wait([text, "3"], now: now) == max(wait ?? .zero, .seconds(3)), "not the longest of two")
    guard let date = HTTPDate(text, now: now) else { return }
    try promise(HTTPDate(date.description, now: now) == date, "\(date) is read as another")
    try promise(wait == .seconds(max(0, date.secondsSince1970 - now.secondsSince1970)), "another wait than to its date")
}

/// Whatever a server calls a file, its name is within our directory.
func checkDisposition(_ text: String) throws {
    let url = "http://h/" + text
    for disposition in [text, "attachment; filename=\"\(text)\"", "attachment; filename*=UTF-8''\(text)", nil] {
        let name = SafeFileName.name(contentDisposition: disposition, url: url)
        try promise(!name.isEmpty && name.utf8.count <= 255, "a name of \(name.utf8.count) bytes")
        try promise(!name.utf8.contains { $0 == 0x2F || $0 == 0x5C || $0 < 0x20 || $0 == 0x7F }, "a path: \(name)")
        try promise(name.utf8.first != UInt8(ascii: "."), "a hidden file: \(name)")
        for ending in [SafeFileName.partSuffix, SafeFileName.metadataSuffix] {
            try promise(!name.hasSuffix(ending), "a file of ours: \(name)")
        }
        let (part, metadata) = SafeFileName.part(of: name)
        try promise(part.utf8.count <= 255 && metadata.utf8.count < 255, "a part with too long a name")
        try promise(part != name && metadata != name && part != metadata, "a part by the name of its file")
    }
}
