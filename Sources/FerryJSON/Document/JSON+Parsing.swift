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

/// A text is not JSON (RFC 8259).
public struct JSONSyntaxError: Error, Sendable, Hashable {
    /// What is wrong with a text.
    public enum Reason: Sendable, Hashable {
        /// Nothing but white space.
        case empty
        /// 4 GB or more.
        case tooLarge
        /// There is no memory for it.
        case outOfMemory
        /// More than 1,023 containers within one another.
        case tooDeep
        /// Bytes that are not UTF-8.
        case invalidUTF8
        /// A control character within a string, where only its escape may stand.
        case controlCharacter
        /// A string that does not end.
        case unterminatedString
        /// An escape that does not exist, or half of a surrogate pair.
        case invalidEscape
        /// Not a number, or one that neither a 64-bit integer nor a finite double can hold.
        case invalidNumber
        /// A word that is neither `true`, `false` nor `null`.
        case invalidLiteral
        /// Something that cannot stand there, or an end that comes too soon.
        case structure
    }

    /// What is wrong.
    public let reason: Reason
    /// The offset in bytes at which it was found: the beginning of the word, number or string that is wrong; the size
    /// of the text where its end comes too soon.
    public let offset: Int

    /// An error at an offset of a text.
    public init(reason: Reason, offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    init(code: Int32, offset: Int) {
        let reason: Reason =
            switch ferry_json_error(code) {
            case FERRY_JSON_EMPTY: .empty
            case FERRY_JSON_TOO_LARGE: .tooLarge
            case FERRY_JSON_NO_MEMORY: .outOfMemory
            case FERRY_JSON_TOO_DEEP: .tooDeep
            case FERRY_JSON_UTF8: .invalidUTF8
            case FERRY_JSON_CONTROL: .controlCharacter
            case FERRY_JSON_UNCLOSED: .unterminatedString
            case FERRY_JSON_ESCAPE: .invalidEscape
            case FERRY_JSON_NUMBER: .invalidNumber
            case FERRY_JSON_LITERAL: .invalidLiteral
            default: .structure
            }
        self.init(reason: reason, offset: offset)
    }
}

extension JSONSyntaxError: CustomStringConvertible {
    /// What is wrong, and where, in one line.
    public var description: String { "not JSON, at byte \(offset): \(reason)" }
}

extension JSONSyntaxError.Reason: CustomStringConvertible {
    /// A few words.
    public var description: String {
        switch self {
        case .empty: "no value"
        case .tooLarge: "too large"
        case .outOfMemory: "out of memory"
        case .tooDeep: "nested too deeply"
        case .invalidUTF8: "not UTF-8"
        case .controlCharacter: "control character in a string"
        case .unterminatedString: "string without an end"
        case .invalidEscape: "escape that does not exist"
        case .invalidNumber: "not a number, or one too large"
        case .invalidLiteral: "neither true, false nor null"
        case .structure: "unexpected character or end"
        }
    }
}
