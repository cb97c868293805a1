internal import CFerryJSON

/// Compiles the tree of a schema into flat arrays.
struct SchemaCompiler {
    struct Property {
        let key: String
        let rule: UInt32
        let isRequired: Bool
        /// Whether the key has a schema; otherwise it must only be present.
        var isNamed = true
    }

    struct Dependency {
        let key: String
        let rule: UInt32
        let required: ferry_json_span
    }

    /// A document that is being compiled: the places of its schemas, and the references to resolve.
    private struct Scope {
        let document: SchemaDocument
        var places: [Int: UInt32] = [:]
        var references: [(extra: Int, reference: Int)] = []
    }

    private(set) var rules: [ferry_json_rule] = []
    private(set) var extras: [ferry_json_extra] = []
    private(set) var properties: [Property] = []
    private(set) var list: [UInt32] = []
    private(set) var patterned: [ferry_json_patterned] = []
    private(set) var dependencies: [Dependency] = []
    /// The patterns by their rules, for messages.
    private(set) var patterns: [UInt32: SchemaPattern] = [:]
    private(set) var formats: [UInt32: JSONSchema.Format] = [:]
    /// All patterns that rules and members refer to.
    private(set) var allPatterns: [SchemaPattern] = []
    private var values: [JSON] = []
    private(set) var constants = JSON([])
    private var scopes: [Scope] = []
    /// The number of nested rules since the last one with rare keywords, at which the checker tests the stack.
    private var plainDepth = 0
    private static let mostPlain = 8

    static func program(of shape: SchemaShape) -> SchemaProgram {
        var compiler = SchemaCompiler()
        _ = compiler.compile(shape)
        compiler.placeConstants()
        return SchemaProgram(compiled: compiler)
    }

    private mutating func compile(_ shape: SchemaShape) -> UInt32 {
        if let document = shape.document { scopes.append(Scope(document: document)) }
        let place = UInt32(rules.count)
        rules.append(ferry_json_rule())
        if shape.node > 0, !scopes.isEmpty { scopes[scopes.count - 1].places[shape.node] = place }
        let depthBefore = plainDepth
        let isExtended = shape.hasExtra || plainDepth >= Self.mostPlain
        plainDepth = isExtended ? 0 : plainDepth + 1
        defer { plainDepth = depthBefore }

        var rule = ferry_json_rule()
        rule.kinds = shape.kinds.rawValue
        rule.plain = shape.plainKinds.rawValue
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
            allPatterns.append(pattern)
        }
        rule.items = compile(shape.items)
        rule.others = compile(shape.others)
        if case .none = shape.others { rule.closed = true }
        rule.takes_all_members = shape.namesOthers
        compileProperties(of: shape, &rule)
        rule.extra = isExtended ? compileExtra(of: shape, place) : FERRY_JSON_NO_RULE
        rules[Int(place)] = rule

        for definition in shape.definitions { _ = compile(definition.shape) }
        if shape.document != nil { resolve(scopes.removeLast()) }
        return place
    }

    private mutating func compileProperties(of shape: SchemaShape, _ rule: inout ferry_json_rule) {
        var members = shape.properties.map { property in
            Property(key: property.key, rule: compile(property.schema.shape), isRequired: property.isRequired)
        }
        if !shape.required.isEmpty {
            // This key is one of the others, whose shared rule it gets.
            let place = rule.others == FERRY_JSON_NO_RULE ? compile(SchemaShape(.any)) : rule.others
            members += shape.required.map { Property(key: $0, rule: place, isRequired: true, isNamed: false) }
        }
        rule.properties = UInt32(properties.count)
        rule.property_count = UInt32(members.count)
        for (bit, member) in members.prefix(64).enumerated() where member.isRequired { rule.required |= 1 << bit }
        properties += members
    }

    /// Compiles the rare keywords.
    private mutating func compileExtra(of shape: SchemaShape, _ place: UInt32) -> UInt32 {
        let number = extras.count
        extras.append(.none)
        var extra = ferry_json_extra.none
        extra.all_of = compile(shape.allOf)
        extra.any_of = compile(shape.anyOf)
        extra.one_of = compile(shape.oneOf)
        extra.negated = compile(shape.negated)
        extra.condition = compile(shape.conditional?.condition)
        extra.consequence = compile(shape.conditional?.consequence)
        extra.alternative = compile(shape.conditional?.alternative)
        extra.format = shape.format?.code.rawValue ?? 0
        formats[place] = shape.format
        extra.multiple_of = shape.multipleOf.map { constant($0) } ?? 0
        extra.prefix = compile(shape.prefix)
        extra.contained = compile(shape.contained?.schema)
        extra.min_contained = Self.limit(shape.contained?.minimum ?? 0)
        extra.max_contained = shape.contained?.maximum.map(Self.limit) ?? FERRY_JSON_NO_LIMIT
        extra.unique = shape.isUnique
        extra.unevaluated_items = compile(shape.unevaluatedItems)
        extra.min_members = Self.limit(shape.minMembers)
        extra.max_members = shape.maxMembers.map(Self.limit) ?? FERRY_JSON_NO_LIMIT
        extra.names = compile(shape.names)
        extra.by_pattern = shape.looksAtEachKey
        extra.patterned = compile(shape.patterned)
        extra.dependencies = compile(shape.dependencies)
        extra.unevaluated_members = compile(shape.unevaluatedMembers)
        extras[number] = extra
        if let reference = shape.reference, !scopes.isEmpty {
            scopes[scopes.count - 1].references.append((number, reference))
        }
        return UInt32(number)
    }

    /// Resolves the references when all schemas of a document have their places.
    private mutating func resolve(_ scope: Scope) {
        for (extra, reference) in scope.references {
            // The reader has checked that each reference leads to a schema.
            extras[extra].reference = scope.places[scope.document.targets[reference]]!
        }
    }

    private mutating func compile(_ others: SchemaShape.Others) -> UInt32 {
        guard case .each(let schema) = others else { return FERRY_JSON_NO_RULE }
        return compile(schema.shape)
    }

    private mutating func compile(_ schema: JSONSchema?) -> UInt32 {
        schema.map { compile($0.shape) } ?? FERRY_JSON_NO_RULE
    }

    private mutating func compile(_ schemas: [JSONSchema]) -> ferry_json_span {
        let places = schemas.map { compile($0.shape) }
        list += places
        return Self.span(list.count, places.count)
    }

    private mutating func compile(_ members: [SchemaShape.Patterned]) -> ferry_json_span {
        let compiled = members.map { ferry_json_patterned(pattern: $0.pattern.handle, rule: compile($0.schema.shape)) }
        allPatterns += members.map(\.pattern)
        patterned += compiled
        return Self.span(patterned.count, compiled.count)
    }

    private mutating func compile(_ list: [SchemaShape.Dependency]) -> ferry_json_span {
        let compiled = list.map { dependency in
            let rule = compile(dependency.schema)
            properties += dependency.required.map {
                Property(key: $0, rule: FERRY_JSON_NO_RULE, isRequired: true, isNamed: false)
            }
            let required = Self.span(properties.count, dependency.required.count)
            return Dependency(key: dependency.key, rule: rule, required: required)
        }
        dependencies += compiled
        return Self.span(dependencies.count, compiled.count)
    }

    /// The last `count` elements before `end`.
    private static func span(_ end: Int, _ count: Int) -> ferry_json_span {
        ferry_json_span(first: UInt32(end - count), count: UInt32(count))
    }

    private static func limit(_ value: Int) -> UInt32 {
        UInt32(clamping: value)
    }

    /// Adds a constant and returns its number, from 1. Its place on the tape is known when all constants are added.
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
        for extra in extras.indices where extras[extra].multiple_of > 0 {
            extras[extra].multiple_of = places[Int(extras[extra].multiple_of) - 1]
        }
    }
}

extension SchemaShape {
    /// Whether each key must be compared with patterns, or is required but not a property of a closed object.
    fileprivate var looksAtEachKey: Bool {
        if !patterned.isEmpty { return true }
        if case .none = others { return !required.isEmpty }
        return false
    }

    fileprivate var hasExtra: Bool {
        appliesOthers || format != nil || multipleOf != nil || !prefix.isEmpty || contained != nil || isUnique
            || unevaluatedItems != nil || minMembers > 0 || maxMembers != nil || looksAtEachKey || names != nil
            || !dependencies.isEmpty || unevaluatedMembers != nil
    }
}

extension ferry_json_extra {
    /// Has no requirements.
    fileprivate static let none: ferry_json_extra = {
        var extra = ferry_json_extra()
        for rule in [
            \ferry_json_extra.reference, \.negated, \.condition, \.consequence, \.alternative, \.contained,
            \.unevaluated_items, \.names, \.unevaluated_members,
        ] {
            extra[keyPath: rule] = FERRY_JSON_NO_RULE
        }
        extra.max_contained = FERRY_JSON_NO_LIMIT
        extra.max_members = FERRY_JSON_NO_LIMIT
        return extra
    }()
}
