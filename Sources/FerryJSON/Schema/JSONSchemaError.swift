/// A schema document uses something that Ferry's schemas do not know, or is none.
public struct JSONSchemaError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The place in the schema document, as a JSON Pointer (RFC 6901).
    public let pointer: String
    /// The keyword that is not supported or has a value that it cannot have.
    public let keyword: String
    /// What is wrong with it.
    public let message: String

    /// An error at a place of a schema document.
    public init(pointer: String, keyword: String, message: String) {
        self.pointer = pointer
        self.keyword = keyword
        self.message = message
    }

    /// The place of the keyword and what is wrong: `$.items[3].pattern: look-ahead is not supported`.
    public var description: String { "\(path): \(message)" }

    /// The pointer does not tell a key from a position; the keyword before it does.
    private var path: JSONPath {
        var path = JSONPath()
        var isKey = false
        for token in pointer.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst() {
            let step = String(Substring(token)).replacing("~1", with: "/").replacing("~0", with: "~")
            if !isKey, let position = Int(step) {
                path.append(.position(position))
            } else {
                path.append(.key(step))
                isKey = !isKey && Self.keyed.contains(step)
            }
        }
        // That the whole is no schema is the fault of no keyword.
        if keyword != "schema" { path.append(.key(keyword)) }
        return path
    }

    /// The keywords whose values are schemas by their keys.
    private static let keyed: Set<String> = [
        "$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies",
    ]
}
