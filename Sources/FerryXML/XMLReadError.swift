/// An XML document could not be read to its end.
public struct XMLReadError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Why not.
    public enum Reason: Sendable, Hashable {
        /// It is not well-formed; the number is libxml2's (`xmlParserErrors`), 0 when nothing stands there at all.
        case malformed(code: Int)
        /// More elements within one another than the limit.
        case tooDeep
        /// More bytes, or more text, than the limit.
        case tooLarge
    }

    public let reason: Reason
    /// Where it was found, counted from 1; 0 where that is not known.
    public let line: Int
    public let column: Int

    public init(reason: Reason, line: Int, column: Int) {
        self.reason = reason
        self.line = line
        self.column = column
    }

    public var description: String {
        let text =
            switch reason {
            case .malformed(let code): "not well-formed (\(code))"
            case .tooDeep: "nested too deeply"
            case .tooLarge: "too large"
            }
        return line > 0 ? "XML, line \(line), column \(column): \(text)" : "XML: \(text)"
    }
}
