/// What a JSON document must look like, written as a literal or read from a file.
///
///     static let schema: JSONSchema = [
///         "nick": .string, "level": .integer(in: 1...99), "tags": [.string], "bio": .string.nullable.optional,
///     ]
///
/// Every key named is required unless it is `optional`; null passes only where it is `nullable`; keys that are not
/// named are ignored unless the object is `closed`; every element of an array is checked; booleans are no numbers, and
/// a whole number is an integer however it is written (`1.0`). A schema is compiled at its first check: keep it in a
/// `static let`. Checking makes no objects and allocates nothing, but for patterns, for keys that stand twice in a wide
/// object, and for a few keywords of JSON Schema.
public struct JSONSchema: Sendable {
    /// One reference, so that a schema costs a request no more to name than any other of its members.
    private let definition: SchemaDefinition

    init(_ shape: SchemaShape) {
        definition = SchemaDefinition(shape)
    }

    var shape: SchemaShape { definition.shape }
    var program: SchemaProgram { definition.program }

    /// Of this schema and its copies only, from 1 on: what has passed it need not be checked again.
    package var number: UInt64 { program.number }

    func with(_ change: (inout SchemaShape) -> Void) -> JSONSchema {
        var shape = shape
        change(&shape)
        return JSONSchema(shape)
    }
}

extension JSONSchema: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
    /// An object with these members. Of a key named twice the last one counts.
    public init(dictionaryLiteral members: (String, JSONSchema)...) {
        var properties: [SchemaShape.Property] = []
        for (key, schema) in members {
            properties.removeAll { $0.key.utf8.elementsEqual(key.utf8) }
            properties.append(.init(key: key, schema: schema, isRequired: !schema.shape.isOptional))
        }
        self.init(SchemaShape(.object) { $0.properties = properties })
    }

    /// An array of elements that all fit one schema; the empty literal is any array.
    public init(arrayLiteral elements: JSONSchema...) {
        precondition(elements.count <= 1, "an array's schema has one element; use .anyOf for several kinds")
        self.init(SchemaShape(.array) { $0.items = elements.first.map { .each($0) } ?? .any })
    }
}
