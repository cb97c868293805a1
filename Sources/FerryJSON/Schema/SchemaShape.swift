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

    var kinds: SchemaKinds
    /// Within an object: the key may be absent.
    var isOptional = false
    var enumeration: [JSON]?
    var minimum: Bound?
    var maximum: Bound?
    var minLength = 0
    var maxLength: Int?
    var pattern: SchemaPattern?
    var minItems = 0
    var maxItems: Int?
    var items = Others.any
    var properties: [Property] = []
    var others = Others.any
    var anyOf: [JSONSchema] = []
    var oneOf: [JSONSchema] = []

    init(_ kinds: SchemaKinds) {
        self.kinds = kinds
    }

    init(_ kinds: SchemaKinds, _ change: (inout SchemaShape) -> Void) {
        self.init(kinds)
        change(&self)
    }

    /// Whether more than the kind decides, so that null cannot simply be added to the kinds.
    var hasAlternatives: Bool { enumeration != nil || !anyOf.isEmpty || !oneOf.isEmpty }
}
