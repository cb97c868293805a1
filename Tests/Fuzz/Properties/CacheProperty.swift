import FerryTransport

@testable import Ferry
@testable import FerryCache

/// A damaged record is refused. A sealed one returns what was stored, whatever it is. Nonsense with a valid seal is
/// refused, or has the body that it contains.
func checkCacheEntry(_ bytes: UnsafeRawBufferPointer) throws {
    let input = Array(bytes)
    try promise(CacheEntry(record: bytes, row: 1) == nil, "bytes without a seal are an entry")
    // Sealed, as if it were intended.
    let digest = CacheDigest(of: input).withBytes { Array($0) }
    try (digest + input).withUnsafeBytes { record in
        guard input.count >= 32 else { return }
        let key = CacheDigest(bytes: UnsafeRawBufferPointer(rebasing: record[32..<64]))
        guard let entry = CacheEntry(record: record, row: key.number) else { return }
        let parts = entry.withAttributes { $0.count } + entry.withHead { $0.count } + entry.withBody { $0.count }
        try promise(parts <= record.count && entry.key == key, "an entry with more than its record")
        try checkResponse(entry)
    }
    try checkParts(input)
}

private func checkResponse(_ entry: CacheEntry) throws {
    guard let stored = StoredResponse(entry) else { return }
    let body = entry.withBody { Array($0) }
    try promise(Array(stored.result.body) == body, "another body than was kept")
    try promise((100...999).contains(stored.result.status), "no status")
    for index in 0..<stored.result.headerCount { stored.result.withHeader(index) { _, _ in } }
}

/// The input as attributes, head and body, split at the positions in its first two bytes.
private func checkParts(_ input: [UInt8]) throws {
    guard input.count > 2 else { return }
    let first = 2 + Int(input[0]) % (input.count - 1)
    let second = first + Int(input[1]) % (input.count - first + 1)
    let (attributes, head, body) = (Array(input[2..<first]), Array(input[first..<second]), Array(input[second...]))
    let entry = head.withUnsafeBytes { head in
        body.withUnsafeBytes { CacheEntry(CacheEntry.Marks(stored: 7), attributes: attributes, head: head, body: $0) }
    }
    let key = CacheDigest(of: input)
    var record = entry.sealed(under: key)
    let again = try promised(parsed(record, key), "a sealed entry is none")
    try promise(again.withAttributes { Array($0) } == attributes, "other attributes")
    try promise(again.withHead { Array($0) } == head, "another head")
    try promise(again.withBody { Array($0) } == body, "another body")
    try checkResponse(again)
    record[(Int(input[0]) << 8 | Int(input[1])) % record.count] ^= 1 << (input[0] % 8)
    try promise(parsed(record, key) == nil, "a damaged entry is one")
}

private func parsed(_ record: [UInt8], _ key: CacheDigest) -> CacheEntry? {
    record.withUnsafeBytes { CacheEntry(record: $0, row: key.number) }
}
