internal import CFerryJSON

/// What one value must be, before it is compiled.
struct SchemaShape: Sendable {
    struct Property: Sendable {
        let key: String
        let schema: JSONSchema
        let isRequired: Bool
    }

    /// The rule of elements, or of members that are not named.
    indirect enum Others: Sendable {
        case any
        case none
        case each(JSONSchema)
    }

    /// A bound of a range.
    struct Bound: Sendable {
        var value: JSON
        var isExclusive = false
    }

    /// Members whose keys match a pattern.
    struct Patterned: Sendable {
        let pattern: SchemaPattern
        let schema: JSONSchema
    }

    /// What an object with this key must be.
    struct Dependency: Sendable {
        let key: String
        var required: [String] = []
        var schema: JSONSchema?
    }

    /// Elements of which so many fit a schema.
    struct Contained: Sendable {
        let schema: JSONSchema
        var minimum = 1
        var maximum: Int?
    }

    /// `if`, `then` and `else`.
    struct Conditional: Sendable {
        let condition: JSONSchema
        var consequence: JSONSchema?
        var alternative: JSONSchema?
    }

    var kinds: SchemaKinds
    /// Within an object: the key may be absent.
    var isOptional = false
    var enumeration: [JSON]?
    var allOf: [JSONSchema] = []
    var anyOf: [JSONSchema] = []
    var oneOf: [JSONSchema] = []
    var negated: JSONSchema?
    var conditional: Conditional?

    // Numbers.
    var minimum: Bound?
    var maximum: Bound?
    var multipleOf: JSON?

    // Strings.
    var minLength = 0
    var maxLength: Int?
    var pattern: SchemaPattern?
    var format: JSONSchema.Format?

    // Arrays.
    var minItems = 0
    var maxItems: Int?
    var prefix: [JSONSchema] = []
    var items = Others.any
    var contained: Contained?
    var isUnique = false
    var unevaluatedItems: JSONSchema?

    // Objects.
    var minMembers = 0
    var maxMembers: Int?
    var properties: [Property] = []
    /// Keys that must be there and are not among the properties.
    var required: [String] = []
    var patterned: [Patterned] = []
    var others = Others.any
    /// `others` was said, even if it is `any`.
    var namesOthers = false
    var names: JSONSchema?
    var dependencies: [Dependency] = []
    var unevaluatedMembers: JSONSchema?

    // Of a schema that was read from a document.
    /// Where it begins in the document, 0 if it was not read from one.
    var node = 0
    /// The place of its reference in the document's list.
    var reference: Int?
    /// Schemas that nothing but references leads to.
    var definitions: [JSONSchema] = []
    /// Of the outermost schema: what the references in it lead to.
    var document: SchemaDocument?

    init(_ kinds: SchemaKinds) {
        self.kinds = kinds
    }

    init(_ kinds: SchemaKinds, _ change: (inout SchemaShape) -> Void) {
        self.init(kinds)
        change(&self)
    }

    /// Whether more than the kind decides, so that null cannot simply be added to the kinds.
    var hasAlternatives: Bool { enumeration != nil || appliesOthers || document != nil }

    /// Whether other schemas apply to the same value.
    var appliesOthers: Bool {
        !allOf.isEmpty || !anyOf.isEmpty || !oneOf.isEmpty || negated != nil || conditional != nil || reference != nil
    }

    /// The allowed kinds of whose values nothing more is asked than that they are of them.
    var plainKinds: SchemaKinds {
        if enumeration != nil || appliesOthers { return [] }
        var plain = kinds
        if minimum != nil || maximum != nil || multipleOf != nil { plain.subtract([.number, .integer]) }
        if minLength > 0 || maxLength != nil || pattern != nil || format != nil { plain.remove(.string) }
        plain.subtract([.array, .object])
        return plain
    }
}

/// What the references of a document lead to, by their number: the places where those schemas begin.
final class SchemaDocument: Sendable {
    let targets: [Int]

    init(targets: [Int]) {
        self.targets = targets
    }
}

/// The kinds of values that may stand in a place.
struct SchemaKinds: OptionSet, Sendable {
    let rawValue: UInt32

    static let string = SchemaKinds(FERRY_JSON_STRING)
    static let number = SchemaKinds(FERRY_JSON_ANY_NUMBER)
    static let integer = SchemaKinds(FERRY_JSON_INTEGER)
    static let bool = SchemaKinds(FERRY_JSON_BOOL)
    static let null = SchemaKinds(FERRY_JSON_NULL)
    static let object = SchemaKinds(FERRY_JSON_OBJECT)
    static let array = SchemaKinds(FERRY_JSON_ARRAY)
    static let any: SchemaKinds = [.string, .number, .integer, .bool, .null, .object, .array]

    init(rawValue: UInt32) { self.rawValue = rawValue }

    private init(_ kind: ferry_json_kind) { rawValue = UInt32(kind.rawValue) }

    /// `string or null`.
    var text: String {
        if isSuperset(of: [.string, .number, .bool, .null, .object, .array]) { return "anything" }
        let names: [(SchemaKinds, String)] = [
            (.string, "string"), (.number, "number"), (.integer, "integer"), (.bool, "bool"), (.object, "object"),
            (.array, "array"), (.null, "null"),
        ]
        let present = names.filter { contains($0.0) && !($0.0 == .integer && contains(.number)) }.map(\.1)
        return present.isEmpty ? "nothing" : present.joined(separator: " or ")
    }
}
