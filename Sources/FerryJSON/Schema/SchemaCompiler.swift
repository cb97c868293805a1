internal import CFerryJSON

/// Lays the tree of a schema out flat.
struct SchemaCompiler {
    struct Property {
        let key: String
        let rule: UInt32
        let isRequired: Bool
    }

    private(set) var rules: [ferry_json_rule] = []
    private(set) var properties: [Property] = []
    private(set) var alternatives: [UInt32] = []
    private(set) var patterns: [UInt32: SchemaPattern] = [:]
    private var values: [JSON] = []
    private(set) var constants = JSON([])

    static func program(of shape: SchemaShape) -> SchemaProgram {
        var compiler = SchemaCompiler()
        _ = compiler.compile(shape)
        compiler.placeConstants()
        return SchemaProgram(compiled: compiler)
    }

    private mutating func compile(_ shape: SchemaShape) -> UInt32 {
        let place = UInt32(rules.count)
        rules.append(ferry_json_rule())
        var rule = ferry_json_rule()
        rule.kinds = shape.kinds.rawValue
        rule.min_length = Self.limit(shape.minLength)
        rule.max_length = shape.maxLength.map(Self.limit) ?? FERRY_JSON_NO_LIMIT
        rule.min_items = Self.limit(shape.minItems)
        rule.max_items = shape.maxItems.map(Self.limit) ?? FERRY_JSON_NO_LIMIT
        rule.exclusive_minimum = shape.minimum?.isExclusive ?? false
        rule.exclusive_maximum = shape.maximum?.isExclusive ?? false
        rule.minimum = shape.minimum.map { constant($0.value) } ?? 0
        rule.maximum = shape.maximum.map { constant($0.value) } ?? 0
        rule.enumeration = shape.enumeration.map { constant(JSON($0)) } ?? 0
        if let pattern = shape.pattern {
            rule.pattern = pattern.handle
            patterns[place] = pattern
        }
        rule.items = compile(shape.items)
        rule.others = compile(shape.others)
        if case .none = shape.others { rule.closed = true }

        let members = shape.properties.map { property in
            Property(key: property.key, rule: compile(property.schema.shape), isRequired: property.isRequired)
        }
        rule.properties = UInt32(properties.count)
        rule.property_count = UInt32(members.count)
        for (bit, member) in members.prefix(64).enumerated() where member.isRequired { rule.required |= 1 << bit }
        properties += members
        (rule.any_of, rule.any_of_count) = compile(shape.anyOf)
        (rule.one_of, rule.one_of_count) = compile(shape.oneOf)
        rule.plain = Self.plainKinds(of: shape).rawValue
        rules[Int(place)] = rule
        return place
    }

    /// The allowed kinds of whose values the shape asks nothing but that they are of them.
    private static func plainKinds(of shape: SchemaShape) -> SchemaKinds {
        if shape.enumeration != nil || !shape.anyOf.isEmpty || !shape.oneOf.isEmpty { return [] }
        var kinds = shape.kinds
        if shape.minimum != nil || shape.maximum != nil { kinds.subtract([.number, .integer]) }
        if shape.minLength > 0 || shape.maxLength != nil || shape.pattern != nil { kinds.remove(.string) }
        kinds.subtract([.array, .object])
        return kinds
    }

    private mutating func compile(_ others: SchemaShape.Others) -> UInt32 {
        guard case .each(let schema) = others else { return FERRY_JSON_NO_RULE }
        return compile(schema.shape)
    }

    private mutating func compile(_ schemas: [JSONSchema]) -> (UInt32, UInt32) {
        let places = schemas.map { compile($0.shape) }
        let first = UInt32(alternatives.count)
        alternatives += places
        return (first, UInt32(places.count))
    }

    private static func limit(_ value: Int) -> UInt32 {
        UInt32(clamping: value)
    }

    /// Its number among the constants, from 1; the place on the tape is known when all are there.
    private mutating func constant(_ value: JSON) -> UInt32 {
        values.append(value)
        return UInt32(values.count)
    }

    private mutating func placeConstants() {
        constants = JSON(values)
        let places = JSONArray(document: constants.document, index: constants.index).map { UInt32($0.index) }
        for place in rules.indices {
            for field in [\ferry_json_rule.minimum, \.maximum, \.enumeration] where rules[place][keyPath: field] > 0 {
                rules[place][keyPath: field] = places[Int(rules[place][keyPath: field]) - 1]
            }
        }
    }
}
