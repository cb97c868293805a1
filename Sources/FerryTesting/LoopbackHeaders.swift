/// The fields of a message, in their order and with duplicates.
///
/// ```swift
/// let headers: LoopbackHeaders = ["Content-Type": "text/plain"]
/// let type = headers["content-type"]  // "text/plain"
/// ```
public struct LoopbackHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral, CustomStringConvertible {
    /// One field.
    public struct Field: Sendable, Equatable {
        /// The name, in the case of the wire.
        public var name: String
        /// The value, without white space around it.
        public var value: String

        /// Makes a field.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The fields, in order.
    public var fields: [Field]

    /// Makes headers of these fields.
    public init(_ fields: [Field] = []) {
        self.fields = fields
    }

    /// Makes headers of names and values; a name may stand there twice.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }

    /// The first value of a name, whose case does not matter. Setting replaces all of that name; nil removes them.
    public subscript(name: String) -> String? {
        get { fields.first { $0.name.lowercased() == name.lowercased() }?.value }
        set {
            fields.removeAll { $0.name.lowercased() == name.lowercased() }
            if let newValue { fields.append(Field(name: name, value: newValue)) }
        }
    }

    /// All values of a name, in order.
    public func values(of name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// `Name: value`, a line each.
    public var description: String {
        fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
    }
}
