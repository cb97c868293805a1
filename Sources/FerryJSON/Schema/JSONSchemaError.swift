/// A schema document uses something that Ferry's schemas do not know, or is none.
public struct JSONSchemaError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The place in the schema document, as a JSON Pointer (RFC 6901).
    public let pointer: String
    /// The keyword that is not supported or has a value that it cannot have.
    public let keyword: String
    public let message: String

    public init(pointer: String, keyword: String, message: String) {
        self.pointer = pointer
        self.keyword = keyword
        self.message = message
    }

    public var description: String { "schema at \"\(pointer)\": \(keyword): \(message)" }
}
