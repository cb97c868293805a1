internal import CFerryJSON

/// The requirements for one value, before they are compiled.
struct SchemaShape: Sendable {
    struct Property: Sendable {
        let key: String
        let schema: JSONSchema
        let isRequired: Bool
    }

    /// The rule for elements, or for members that are not named.
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

    /// The requirements for an object with this key.
    struct Dependency: Sendable {
        let key: String
        var required: [String] = []
        var schema: JSONSchema?
    }

    /// The number of elements that must match a schema.
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
    /// Whether the key may be absent from the object.
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
    /// Required keys that are not among the properties.
    var required: [String] = []
    var patterned: [Patterned] = []
    var others = Others.any
    /// Whether `others` was specified, even as `any`.
    var namesOthers = false
    var names: JSONSchema?
    var dependencies: [Dependency] = []
    var unevaluatedMembers: JSONSchema?

    // Only for a schema that was read from a document.
    /// Its position in the document, 0 if it was not read from one.
    var node = 0
    /// The number of its reference in the document's list.
    var reference: Int?
    /// Schemas that only references lead to.
    var definitions: [JSONSchema] = []
    /// The targets of the references; only in the outermost schema.
    var document: SchemaDocument?

    init(_ kinds: SchemaKinds) {
        self.kinds = kinds
    }

    init(_ kinds: SchemaKinds, _ change: (inout SchemaShape) -> Void) {
        self.init(kinds)
        change(&self)
    }

    /// Whether there are requirements beyond the kind, so that null cannot simply be added to the kinds.
    var hasAlternatives: Bool { enumeration != nil || appliesOthers || document != nil }

    /// Whether other schemas apply to the same value.
    var appliesOthers: Bool {
        !allOf.isEmpty || !anyOf.isEmpty || !oneOf.isEmpty || negated != nil || conditional != nil || reference != nil
    }

    /// The allowed kinds that have no further requirements.
    var plainKinds: SchemaKinds {
        if enumeration != nil || appliesOthers { return [] }
        var plain = kinds
        if minimum != nil || maximum != nil || multipleOf != nil { plain.subtract([.number, .integer]) }
        if minLength > 0 || maxLength != nil || pattern != nil || format != nil { plain.remove(.string) }
        plain.subtract([.array, .object])
        return plain
    }
}

/// The targets of the references of a document: the positions of those schemas, by the number of the reference.
final class SchemaDocument: Sendable {
    let targets: [Int]

    init(targets: [Int]) {
        self.targets = targets
    }
}

/// A set of kinds of values.
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
