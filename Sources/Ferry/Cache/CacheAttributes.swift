import FerryCache

/// What is kept of an answer besides head and body.
struct CacheAttributes: Sendable, Equatable {
    /// Where it came from after redirects, redacted; `nil` when it was not redirected.
    var url: String?
    /// The names of the request's header fields that the answer varies by, lower case (RFC 9110, 12.5.5).
    var varying: [String] = []
    /// Of their values.
    var variance = CacheDigest.none
}

extension CacheAttributes {
    /// What an entry holds; `nil` when it is none of ours.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = AttributeReader(bytes[...])
        guard reader.byte() == Self.format, let variance = reader.bytes(CacheDigest.count), let url = reader.text(),
            let varying = reader.text(), reader.isAtEnd
        else { return nil }
        self.variance = CacheDigest(bytes: UnsafeRawBufferPointer(rebasing: variance))
        self.url = url.isEmpty ? nil : url
        self.varying = varying.split(separator: " ").map(String.init)
    }

    private static let format: UInt8 = 1

    var encoded: [UInt8] {
        var bytes = [Self.format]
        variance.withBytes { bytes.append(contentsOf: $0) }
        bytes.appendCounted(url ?? "")
        bytes.appendCounted(varying.joined(separator: " "))
        return bytes
    }
}

extension [UInt8] {
    /// A text behind its length, so that two of them cannot be taken for two others.
    mutating func appendCounted(_ text: String) {
        var text = text
        text.withUTF8 { appendCounted(UnsafeRawBufferPointer($0)) }
    }

    mutating func appendCounted(_ bytes: UnsafeRawBufferPointer) {
        Swift.withUnsafeBytes(of: UInt32(clamping: bytes.count).littleEndian) { append(contentsOf: $0) }
        append(contentsOf: bytes)
    }
}

private struct AttributeReader {
    private var rest: Slice<UnsafeRawBufferPointer>

    init(_ bytes: Slice<UnsafeRawBufferPointer>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() -> UInt8? { rest.popFirst() }

    mutating func bytes(_ count: Int) -> Slice<UnsafeRawBufferPointer>? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    mutating func text() -> String? {
        guard let length = bytes(4) else { return nil }
        let count = length.reversed().reduce(0) { $0 << 8 | Int($1) }
        return bytes(count).map { String(decoding: $0, as: UTF8.self) }
    }
}
