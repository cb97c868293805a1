extension JSON: CustomStringConvertible {
    /// The value as JSON text, without white space.
    public var description: String { String(decoding: bytes(), as: UTF8.self) }

    /// The value as JSON text in UTF-8 (RFC 8259), members in their order; `pretty` gives each its own line, indented
    /// by two spaces.
    public func bytes(pretty: Bool = false) -> [UInt8] {
        var writer = JSONWriter(pretty: pretty, tape: document.tape)
        writer.write(from: index)
        return writer.bytes
    }
}
