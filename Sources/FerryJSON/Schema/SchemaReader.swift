internal import CFerryJSON

/// Reads one schema object of the JSON Schema vocabulary. A class, so that a schema within another takes little stack.
final class SchemaReader {
    private let json: JSON
    private let pointer: String
    private let depth: Int
    private let links: SchemaLinks
    private var base: SchemaAddress
    private var shape = SchemaShape(.any)
    /// Of a keyword that stands twice the last value counts.
    private var members: [ExactText: JSON] = [:]

    private static let deepest = 64
    private static let types: [String: SchemaKinds] = [
        "string": .string, "number": .number, "integer": .integer, "boolean": .bool, "null": .null, "object": .object,
        "array": .array,
    ]

    private init(_ json: JSON, pointer: String, depth: Int, links: SchemaLinks, base: SchemaAddress) {
        self.json = json
        self.pointer = pointer
        self.depth = depth
        self.links = links
        self.base = base
    }

    /// A whole document.
    static func schema(_ json: JSON, assertingFormats: Bool) throws(JSONSchemaError) -> JSONSchema {
        var dialect = SchemaDialect.draft2020
        if let name = json["$schema"] { dialect = try Self.dialect(name, at: "") }
        let links = SchemaLinks(dialect: dialect, assertsFormats: assertingFormats)
        let reader = SchemaReader(json, pointer: "", depth: 0, links: links, base: SchemaAddress(""))
        let schema = try reader.schema()
        let document = try links.document()
        let whole = schema.with { $0.document = document }
        // Here, where the stack has sufficed for reading it, and not at the first check.
        _ = whole.program
        return whole
    }

    private func schema() throws(JSONSchemaError) -> JSONSchema {
        links.add(schema: json.index, at: pointer)
        shape.node = json.index
        if let isAny = json.bool {
            if !isAny { shape.kinds = [] }
            return JSONSchema(shape)
        }
        guard let object = json.object else { throw error("schema", notASchema) }
        if ferry_json_stack_is_low() { throw error("schema", "is nested too deeply for the stack of this thread") }
        guard depth < Self.deepest else { throw error("schema", "is nested more than \(Self.deepest) deep") }
        var keywords: [String] = []
        for (keyword, value) in object where members.updateValue(value, forKey: ExactText(keyword)) == nil {
            keywords.append(keyword)
        }
        // In draft-07 nothing counts beside a reference, but it may stand beside what it leads to.
        let isReference = links.dialect == .draft7 && self["$ref"] != nil
        if isReference { keywords.removeAll { !["$ref", "$defs", "definitions", "$schema"].contains($0) } }
        if !isReference || depth == 0 { try readNames() }
        for keyword in keywords { try read(keyword, self[keyword]!) }
        if !isReference {
            try readRequired()
            try combineValues()
        }
        return JSONSchema(shape)
    }

    /// The value of a keyword.
    private subscript(_ keyword: String) -> JSON? { members[ExactText(keyword)] }

    private var notASchema: String {
        let isItems = pointer.utf8.suffix(6).elementsEqual("/items".utf8)
        guard isItems, json.kind == .array, links.dialect == .draft2020 else {
            return "must be an object or a boolean"
        }
        return "must be an object or a boolean; a list of schemas is prefixItems in 2020-12"
    }

    private func error(_ keyword: String, _ message: String) -> JSONSchemaError {
        JSONSchemaError(pointer: pointer, keyword: keyword, message: message)
    }

    private func read(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
        if let refusal = links.dialect.refusal(of: keyword) { throw error(keyword, refusal) }
        switch keyword {
        case "type": shape.kinds = try kinds(value)
        case "enum": _ = try list(keyword, value)
        case "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum": try readBound(keyword, value)
        case "multipleOf": shape.multipleOf = try factor(value)
        case "minLength": shape.minLength = try size(keyword, value)
        case "maxLength": shape.maxLength = try size(keyword, value)
        case "pattern": shape.pattern = try pattern(keyword, value)
        case "format": try readFormat(value)
        case "minItems": shape.minItems = try size(keyword, value)
        case "maxItems": shape.maxItems = try size(keyword, value)
        case "uniqueItems": shape.isUnique = try flag(keyword, value)
        case "prefixItems": shape.prefix = try alternatives(keyword, value, isInPlace: false)
        case "items": try readItems(value)
        case "additionalItems": try readAdditionalItems(value)
        case "contains": try readContains(value)
        case "minContains", "maxContains": _ = try size(keyword, value)
        case "unevaluatedItems": shape.unevaluatedItems = try child(value, keyword)
        case "minProperties": shape.minMembers = try size(keyword, value)
        case "maxProperties": shape.maxMembers = try size(keyword, value)
        case "properties": try readProperties(value)
        case "patternProperties": try readPatternProperties(value)
        case "additionalProperties": try readAdditionalProperties(value)
        case "propertyNames": shape.names = try child(value, keyword)
        case "dependentRequired", "dependentSchemas", "dependencies": try readDependencies(keyword, value)
        case "unevaluatedProperties": shape.unevaluatedMembers = try child(value, keyword)
        case "allOf": shape.allOf = try alternatives(keyword, value)
        case "anyOf": shape.anyOf = try alternatives(keyword, value)
        case "oneOf": shape.oneOf = try alternatives(keyword, value)
        case "not": shape.negated = try inPlace(value, keyword)
        case "if": try readConditional(value)
        case "then", "else": try readWithoutCondition(keyword, value)
        case "$ref": try readReference(value)
        case "$defs", "definitions": try readDefinitions(keyword, value)
        case "required", "const", "$id", "$anchor", "$dynamicAnchor": break  // read before or after the others
        case "$schema": try checkDialect(value)
        case "$dynamicRef", "$recursiveRef": throw error(keyword, "is not supported; only $ref is")
        case _ where SchemaDialect.annotations.contains(keyword): break
        default: throw error(keyword, "is not supported")
        }
    }
}

// MARK: - Values of keywords

extension SchemaReader {
    private static func escaped(_ step: String) -> String {
        var escaped = ""
        for scalar in step.unicodeScalars {
            switch scalar {
            case "~": escaped += "~0"
            case "/": escaped += "~1"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    private func child(_ value: JSON, _ steps: String...) throws(JSONSchemaError) -> JSONSchema {
        let below = steps.reduce(pointer) { path, step in path + "/" + Self.escaped(step) }
        return try SchemaReader(value, pointer: below, depth: depth + 1, links: links, base: base).schema()
    }

    /// One that applies to the same value.
    private func inPlace(_ value: JSON, _ steps: String...) throws(JSONSchemaError) -> JSONSchema {
        let below = steps.reduce(pointer) { path, step in path + "/" + Self.escaped(step) }
        links.add(step: json.index, to: value.index)
        return try SchemaReader(value, pointer: below, depth: depth + 1, links: links, base: base).schema()
    }

    private func kinds(_ value: JSON) throws(JSONSchemaError) -> SchemaKinds {
        let names = value.array.map { Array($0) } ?? [value]
        var kinds: SchemaKinds = []
        for name in names {
            guard let kind = name.string.flatMap({ Self.types[$0] }) else { throw error("type", "is not a JSON type") }
            kinds.formUnion(kind)
        }
        guard !kinds.isEmpty else { throw error("type", "is an empty list") }
        return kinds
    }

    private func list(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> [JSON] {
        guard let array = value.array, array.count > 0 else { throw error(keyword, "must be a list that is not empty") }
        return Array(array)
    }

    private func object(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> [(key: String, value: JSON)] {
        guard let object = value.object else { throw error(keyword, "must be an object") }
        // Of a key that stands twice the last value counts.
        var places: [ExactText: Int] = [:]
        var members: [(key: String, value: JSON)] = []
        for (key, value) in object {
            if let place = places[ExactText(key)] {
                members[place].value = value
            } else {
                places[ExactText(key)] = members.count
                members.append((key, value))
            }
        }
        return members
    }

    private func strings(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> [String] {
        guard let names = value.array.map({ $0.map(\.string) }), !names.contains(nil) else {
            throw error(keyword, "must be a list of strings")
        }
        return names.compactMap { $0 }
    }

    private func size(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> Int {
        guard let size = value.int, (0..<Int(UInt32.max)).contains(size) else {
            throw error(keyword, "must be an integer, not negative")
        }
        return size
    }

    private func flag(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> Bool {
        guard let flag = value.bool else { throw error(keyword, "must be true or false") }
        return flag
    }

    private func pattern(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> SchemaPattern {
        guard let text = value.string else { throw error(keyword, "must be a string") }
        return try pattern(keyword, text)
    }

    private func pattern(_ keyword: String, _ text: String) throws(JSONSchemaError) -> SchemaPattern {
        do {
            return try links.pattern(text)
        } catch {
            throw self.error(keyword, error.message)
        }
    }

    private func factor(_ value: JSON) throws(JSONSchemaError) -> JSON {
        guard value.kind == .number, value.compared(to: 0) > 0 else {
            throw error("multipleOf", "must be a number above 0")
        }
        return value.detached()
    }

    /// Of an inclusive and an exclusive bound the stricter one counts.
    private func readBound(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
        guard value.kind == .number else { throw error(keyword, "must be a number") }
        let isExclusive = keyword.hasPrefix("exclusive")
        let bound = SchemaShape.Bound(value: value.detached(), isExclusive: isExclusive)
        let isMinimum = keyword.hasSuffix("inimum")
        guard let other = isMinimum ? shape.minimum : shape.maximum else {
            return isMinimum ? (shape.minimum = bound) : (shape.maximum = bound)
        }
        let order = bound.value.compared(to: other.value)
        let isStricter = order == 0 ? isExclusive : (order > 0) == isMinimum
        guard isStricter else { return }
        if isMinimum { shape.minimum = bound } else { shape.maximum = bound }
    }

    /// Without the option a format is an annotation, whatever it is.
    private func readFormat(_ value: JSON) throws(JSONSchemaError) {
        guard let name = value.string else { throw error("format", "must be a string") }
        guard links.assertsFormats else { return }
        guard let format = JSONSchema.Format(rawValue: name) else {
            throw error("format", "\(name) is not one of the formats that can be asserted")
        }
        shape.format = format
    }

    /// Of `enum` and `const` both count.
    private func combineValues() throws(JSONSchemaError) {
        let listed = try self["enum"].map { value throws(JSONSchemaError) in try list("enum", value) }
        guard let constant = self["const"] else {
            shape.enumeration = listed
            return
        }
        shape.enumeration = listed.map { $0.contains(constant) ? [constant] : [] } ?? [constant]
    }
}

// MARK: - Arrays and objects

extension SchemaReader {
    private func readItems(_ value: JSON) throws(JSONSchemaError) {
        if links.dialect == .draft7, value.kind == .array {
            shape.prefix = try alternatives("items", value, isInPlace: false, mayBeEmpty: true)
        } else {
            shape.items = .each(try child(value, "items"))
        }
    }

    private func readAdditionalItems(_ value: JSON) throws(JSONSchemaError) {
        let schema = try child(value, "additionalItems")
        // Beside an `items` that is not a list it means nothing.
        if self["items"]?.kind == .array { shape.items = .each(schema) } else { shape.definitions.append(schema) }
    }

    private func readContains(_ value: JSON) throws(JSONSchemaError) {
        var contained = SchemaShape.Contained(schema: try child(value, "contains"))
        if let minimum = self["minContains"] { contained.minimum = try size("minContains", minimum) }
        if let maximum = self["maxContains"] { contained.maximum = try size("maxContains", maximum) }
        shape.contained = contained
    }

    private func readProperties(_ value: JSON) throws(JSONSchemaError) {
        for (key, schema) in try object("properties", value) {
            let schema = try child(schema, "properties", key)
            shape.properties.append(.init(key: key, schema: schema, isRequired: false))
        }
    }

    private func readPatternProperties(_ value: JSON) throws(JSONSchemaError) {
        for (text, schema) in try object("patternProperties", value) {
            let pattern = try pattern("patternProperties", text)
            shape.patterned.append(.init(pattern: pattern, schema: try child(schema, "patternProperties", text)))
        }
    }

    private func readAdditionalProperties(_ value: JSON) throws(JSONSchemaError) {
        let schema = try child(value, "additionalProperties")
        shape.namesOthers = true
        switch value.bool {
        case false?: shape.others = .none
        case true?: shape.others = .any
        case nil: shape.others = .each(schema)
        }
        if value.bool != nil { shape.definitions.append(schema) }
    }

    private func readDependencies(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
        for (key, value) in try object(keyword, value) {
            let isList = keyword == "dependentRequired" || (keyword == "dependencies" && value.kind == .array)
            var dependency = SchemaShape.Dependency(key: key)
            if isList {
                dependency.required = try strings(keyword, value)
            } else {
                dependency.schema = try inPlace(value, keyword, key)
            }
            shape.dependencies.append(dependency)
        }
    }

    private func readRequired() throws(JSONSchemaError) {
        guard let list = self["required"] else { return }
        let names = try strings("required", list)
        let required = Set(names.map(ExactText.init))
        let declared = Set(shape.properties.map { ExactText($0.key) })
        shape.properties = shape.properties.map {
            .init(key: $0.key, schema: $0.schema, isRequired: required.contains(ExactText($0.key)))
        }
        let others = required.subtracting(declared)
        guard others.isEmpty || !shape.others.refuses || !shape.patterned.isEmpty else {
            throw error("required", "names a key that additionalProperties refuses")
        }
        shape.required = others.map(\.text).sorted()
    }
}

// MARK: - Other schemas

extension SchemaReader {
    private static func dialect(_ value: JSON, at pointer: String) throws(JSONSchemaError) -> SchemaDialect {
        guard let dialect = value.string.flatMap({ SchemaDialect($0) }) else {
            throw JSONSchemaError(pointer: pointer, keyword: "$schema", message: "is neither 2020-12 nor draft-07")
        }
        return dialect
    }

    private func checkDialect(_ value: JSON) throws(JSONSchemaError) {
        guard try Self.dialect(value, at: pointer) == links.dialect else {
            throw error("$schema", "is another draft than that of the document, \(links.dialect.rawValue)")
        }
    }

    /// What others may refer to it by.
    private func readNames() throws(JSONSchemaError) {
        if let value = self["$id"] {
            guard let identifier = value.string else { throw error("$id", "must be a string") }
            base = try links.add(identifier: identifier, of: json.index, at: pointer, base: base)
        }
        for keyword in ["$anchor", "$dynamicAnchor"] where links.dialect == .draft2020 {
            guard let value = self[keyword] else { continue }
            guard let anchor = value.string, !anchor.isEmpty, !anchor.hasPrefix("/") else {
                throw error(keyword, "must be a name")
            }
            // Both on one schema may be the same name.
            if keyword == "$dynamicAnchor", self["$anchor"]?.string == anchor { continue }
            try links.add(anchor: anchor, keyword: keyword, of: json.index, at: pointer, base: base)
        }
    }

    private func readReference(_ value: JSON) throws(JSONSchemaError) {
        guard let text = value.string else { throw error("$ref", "must be a string") }
        shape.reference = links.add(reference: text, from: json.index, at: pointer, base: base)
    }

    private func readDefinitions(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
        for (name, schema) in try object(keyword, value) {
            shape.definitions.append(try child(schema, keyword, name))
        }
    }

    private func alternatives(
        _ keyword: String, _ value: JSON, isInPlace: Bool = true, mayBeEmpty: Bool = false
    ) throws(JSONSchemaError) -> [JSONSchema] {
        if mayBeEmpty, value.array?.count == 0 { return [] }
        var schemas: [JSONSchema] = []
        for (position, schema) in try list(keyword, value).enumerated() {
            let step = String(position)
            schemas.append(try isInPlace ? inPlace(schema, keyword, step) : child(schema, keyword, step))
        }
        return schemas
    }

    private func readConditional(_ value: JSON) throws(JSONSchemaError) {
        var conditional = SchemaShape.Conditional(condition: try inPlace(value, "if"))
        if let value = self["then"] { conditional.consequence = try inPlace(value, "then") }
        if let value = self["else"] { conditional.alternative = try inPlace(value, "else") }
        shape.conditional = conditional
    }

    /// They mean nothing without an `if`.
    private func readWithoutCondition(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
        if self["if"] == nil { shape.definitions.append(try child(value, keyword)) }
    }
}

extension SchemaShape.Others {
    fileprivate var refuses: Bool {
        if case .none = self { true } else { false }
    }
}
