internal import CFerryJSON
internal import FerrySynchronization

/// A schema: what a JSON document must look like, written as a literal or read from JSON Schema.
///
///     static let schema: JSONSchema = [
///         "nick": .string, "level": .integer(in: 1...99), "tags": [.string], "bio": .string.nullable.optional,
///     ]
///
/// Every named key is required unless it is `optional`. Null passes only where the schema is `nullable`. Keys that are
/// not named are ignored unless the object is `closed`. Every element of an array is checked. Booleans are not numbers,
/// and a whole number is an integer however it is written (`1.0`). A schema is compiled at its first check: keep it in
/// a `static let`. A check creates no objects. It allocates memory only for patterns, for keys that appear twice in a
/// wide object, and for a few keywords of JSON Schema.
public struct JSONSchema: Sendable {
    /// One reference, so that a schema costs no more than any other member of a request.
    private let definition: SchemaDefinition

    init(_ shape: SchemaShape) {
        definition = SchemaDefinition(shape)
    }

    var shape: SchemaShape { definition.shape }
    var program: SchemaProgram { definition.program }

    /// The number of this schema and its copies, from 1; a value that has passed it need not be checked again.
    package var number: UInt64 { definition.number }

    func with(_ change: (inout SchemaShape) -> Void) -> JSONSchema {
        var shape = shape
        change(&shape)
        return JSONSchema(shape)
    }
}

extension JSONSchema: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
    /// Creates the schema of an object with these members. If a key is named twice, the last schema counts.
    public init(dictionaryLiteral members: (String, JSONSchema)...) {
        var properties: [SchemaShape.Property] = []
        for (key, schema) in members {
            properties.removeAll { $0.key.utf8.elementsEqual(key.utf8) }
            properties.append(.init(key: key, schema: schema, isRequired: !schema.shape.isOptional))
        }
        self.init(SchemaShape(.object) { $0.properties = properties })
    }

    /// Creates the schema of an array whose elements all fit one schema. The empty literal is any array.
    public init(arrayLiteral elements: JSONSchema...) {
        precondition(elements.count <= 1, "an array's schema has one element; use .anyOf for several kinds")
        self.init(SchemaShape(.array) { $0.items = elements.first.map { .each($0) } ?? .any })
    }
}

extension JSONSchema {
    /// Reads a schema in the vocabulary of JSON Schema: 2020-12, or draft-07 if `$schema` says so.
    ///
    /// All keywords of both drafts are supported except `$dynamicRef` and `$vocabulary`. `$ref` may refer to any schema
    /// of the document, and not to other documents. Annotations are ignored, and `format` is one of them by default.
    /// With `assertingFormats` a string must have its format, and a format that is not one of `Format` is an error. An
    /// unknown keyword is an error, so that no check is left out silently.
    ///
    /// Schemas may be nested 64 deep. A reference that leads back to itself for the same value is an error. Throws
    /// `JSONSchemaError`, which names the place in the document.
    public init(document: JSON, assertingFormats: Bool = false) throws(JSONSchemaError) {
        self = try SchemaReader.schema(document, assertingFormats: assertingFormats)
    }
}

extension JSONSchema {
    /// Checks a value; the error is the first thing in it that does not fit.
    public func check(_ json: JSON) throws(JSONMismatch) {
        if let mismatch = program.check(json.document.tape, at: json.index) { throw mismatch }
    }

    /// Checks a text without keeping its values. Throws `JSONSyntaxError` or `JSONMismatch`.
    ///
    /// Allocates no memory once the parser's pool is warm. `spare` is the number of readable bytes after the text: with
    /// 64 or more it is not copied.
    public func check(parsing text: UnsafeRawBufferPointer, spare: Int) throws {
        let document = try JSON.parse(text, spare: spare)
        defer { ferry_json_release(document) }
        if let mismatch = program.check(ferry_json_tape_of(document), at: 1) { throw mismatch }
    }
}

/// The error of a schema document that is invalid or uses a keyword that Ferry does not support.
public struct JSONSchemaError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The place in the schema document, as a JSON Pointer (RFC 6901).
    public let pointer: String
    /// The keyword that is not supported or has an invalid value.
    public let keyword: String
    /// What is wrong with the keyword.
    public let message: String

    /// Creates an error at a place of a schema document.
    public init(pointer: String, keyword: String, message: String) {
        self.pointer = pointer
        self.keyword = keyword
        self.message = message
    }

    /// The place of the keyword and what is wrong: `$.items[3].pattern: look-ahead is not supported`.
    public var description: String { "\(path): \(message)" }

    /// A pointer does not distinguish keys from positions; the keyword before them does.
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
        // If the whole document is not a schema, no keyword is wrong.
        if keyword != "schema" { path.append(.key(keyword)) }
        return path
    }

    /// The keywords whose values are schemas by their keys.
    private static let keyed: Set<String> = [
        "$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies",
    ]
}

/// The content of a schema, and its program, which the first check compiles and all copies of the schema share.
final class SchemaDefinition: Sendable {
    let shape: SchemaShape
    /// A number that no other definition of the process ever has.
    let number: UInt64
    private let compiled = AtomicLazyReference<SchemaProgram>()
    private static let last = Atomic<UInt64>(0)

    init(_ shape: SchemaShape) {
        self.shape = shape
        number = Self.last.add(1, ordering: .relaxed).newValue
    }

    var program: SchemaProgram {
        compiled.load() ?? compiled.storeIfNil(SchemaCompiler.program(of: shape))
    }
}
