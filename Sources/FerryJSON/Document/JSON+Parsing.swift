internal import CFerryJSON
public import FoundationEssentials

extension JSON {
    /// Parses a text in UTF-8, which may begin with a byte order mark.
    ///
    /// The text is copied while it is parsed, and not needed afterwards. The document's memory, one to four times the
    /// size of most texts and up to twelve times that of dense numbers, comes from a pool and goes back there with the
    /// last view of it; to keep a small part of a large document for long, keep its values or `detached()`. The pool
    /// keeps nothing of documents beyond 16 MiB, and frees what was not used for a minute.
    public init(parsing text: some ContiguousBytes) throws(JSONSyntaxError) {
        let result = text.withUnsafeBytes { bytes in
            Result { () throws(JSONSyntaxError) in try JSON(parsing: bytes, spare: 0) }
        }
        self = try result.get()
    }

    /// Parses a text.
    public init(parsing text: String) throws(JSONSyntaxError) {
        var text = text
        let result = text.withUTF8 { bytes in
            Result { () throws(JSONSyntaxError) in try JSON(parsing: UnsafeRawBufferPointer(bytes), spare: 0) }
        }
        self = try result.get()
    }

    /// Parses bytes behind which `spare` more may be read, whatever they are: with 64 or more nothing is copied.
    public init(parsing bytes: UnsafeRawBufferPointer, spare: Int) throws(JSONSyntaxError) {
        self.init(JSONDocument(parsed: try JSON.parse(bytes, spare: spare)))
    }

    /// Where the value stands in the text that it was parsed from, in bytes; `nil` for a value that was built.
    package func offset(in text: UnsafeRawBufferPointer) -> Int? {
        guard let parsed = document.parsed, let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return nil }
        var cursor = ferry_json_cursor()
        let mark = text.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
        let offset = ferry_json_offset(parsed, start + mark, index, &cursor)
        return offset == Int(bitPattern: UInt.max) ? nil : mark + offset
    }

    /// The parser's own document, to be released by the caller.
    static func parse(_ bytes: UnsafeRawBufferPointer, spare: Int) throws(JSONSyntaxError) -> OpaquePointer {
        var document: OpaquePointer?
        var offset = 0
        let text = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let code = ferry_json_parse(text, bytes.count, spare, &document, &offset)
        guard let document else { throw JSONSyntaxError(code: code, offset: offset) }
        return document
    }
}
