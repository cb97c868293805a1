internal import CFerryJSON
public import FoundationEssentials

extension JSON {
    /// Parses a text in UTF-8. The text may begin with a byte order mark.
    ///
    /// The text is copied while it is parsed, and is not needed afterwards. A document takes one to four times the
    /// memory of most texts, and up to twelve times the memory of a text that is little else than short numbers. The
    /// memory comes from a pool and returns to it when the last view of the document is released. The pool frees what
    /// was not used for a minute, and keeps nothing of documents above 16 MiB. A view keeps the whole document in
    /// memory: to keep a small part of a large document for long, keep its values or `detached()`.
    public init(parsing text: some ContiguousBytes) throws(JSONSyntaxError) {
        let result = text.withUnsafeBytes { bytes in
            Result { () throws(JSONSyntaxError) in try JSON(parsing: bytes, spare: 0) }
        }
        self = try result.get()
    }

    /// Parses a string. See `init(parsing:)` for bytes about the memory of a document.
    public init(parsing text: String) throws(JSONSyntaxError) {
        var text = text
        let result = text.withUTF8 { bytes in
            Result { () throws(JSONSyntaxError) in try JSON(parsing: UnsafeRawBufferPointer(bytes), spare: 0) }
        }
        self = try result.get()
    }

    /// Parses bytes that are followed by `spare` readable bytes of any value. With 64 or more of them nothing is
    /// copied.
    public init(parsing bytes: UnsafeRawBufferPointer, spare: Int) throws(JSONSyntaxError) {
        self.init(JSONDocument(parsed: try JSON.parse(bytes, spare: spare)))
    }

    /// The offset of the value in the text that it was parsed from, in bytes; `nil` for a value that was built.
    package func offset(in text: UnsafeRawBufferPointer) -> Int? {
        guard let parsed = document.parsed, let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return nil }
        var cursor = ferry_json_cursor()
        let mark = text.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
        let offset = ferry_json_offset(parsed, start + mark, index, &cursor)
        return offset == Int(bitPattern: UInt.max) ? nil : mark + offset
    }

    /// Parses into the parser's own document, which the caller must release.
    static func parse(_ bytes: UnsafeRawBufferPointer, spare: Int) throws(JSONSyntaxError) -> OpaquePointer {
        var document: OpaquePointer?
        var offset = 0
        let text = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let code = ferry_json_parse(text, bytes.count, spare, &document, &offset)
        guard let document else { throw JSONSyntaxError(code: code, offset: offset) }
        return document
    }
}

/// The error of a text that is not JSON (RFC 8259): what is wrong, and where.
public struct JSONSyntaxError: Error, Sendable, Hashable {
    /// What is wrong with a text.
    public enum Reason: Sendable, Hashable {
        /// The text is empty or only white space.
        case empty
        /// The text has 4 GB or more.
        case tooLarge
        /// There is not enough memory for the document.
        case outOfMemory
        /// More than 1,023 arrays and objects are nested within one another.
        case tooDeep
        /// The text is not valid UTF-8.
        case invalidUTF8
        /// A string contains a control character that is not escaped.
        case controlCharacter
        /// A string has no closing quote.
        case unterminatedString
        /// A string contains an unknown escape, or one half of a surrogate pair.
        case invalidEscape
        /// A number is malformed, or is larger than any finite double.
        case invalidNumber
        /// A word is neither `true`, `false` nor `null`.
        case invalidLiteral
        /// A character is not allowed at its place, or the text ends too early.
        case structure
    }

    /// What is wrong.
    public let reason: Reason
    /// The offset in bytes at which the error was found: the beginning of the word, number or string that is wrong, or
    /// the size of the text if it ends too early.
    public let offset: Int

    /// Creates an error at an offset in bytes.
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
    /// What is wrong and where, in one line.
    public var description: String { "not JSON, at byte \(offset): \(reason)" }
}

extension JSONSyntaxError.Reason: CustomStringConvertible {
    /// What is wrong, in a few words.
    public var description: String {
        switch self {
        case .empty: "no value"
        case .tooLarge: "too large"
        case .outOfMemory: "out of memory"
        case .tooDeep: "nested too deeply"
        case .invalidUTF8: "not UTF-8"
        case .controlCharacter: "control character in a string"
        case .unterminatedString: "unterminated string"
        case .invalidEscape: "invalid escape"
        case .invalidNumber: "invalid or too large number"
        case .invalidLiteral: "neither true, false nor null"
        case .structure: "unexpected character or end"
        }
    }
}
