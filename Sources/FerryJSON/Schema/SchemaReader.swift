/// Reads one schema object of the JSON Schema vocabulary.
struct SchemaReader {
    private let json: JSON
    private let pointer: String
    private let depth: Int
    private var shape = SchemaShape(.any)

    private static let deepest = 64
    private static let annotations: Set<String> = [
        "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
    ]
    private static let types: [String: SchemaKinds] = [
        "string": .string, "number": .number, "integer": .integer, "boolean": .bool, "null": .null, "object": .object,
        "array": .array,
    ]

    init(_ json: JSON, pointer: String, depth: Int) {
        self.json = json
        self.pointer = pointer
        self.depth = depth
    }

    consuming func schema() throws(JSONSchemaError) -> JSONSchema {
        if let isAny = json.bool { return isAny ? .any : JSONSchema(SchemaShape([])) }
        guard let object = json.object else { throw error("schema", "must be an object or a boolean") }
        guard depth < Self.deepest else { throw error("schema", "is nested more than \(Self.deepest) deep") }
        for (keyword, value) in object { try read(keyword, value) }
        try readRequired()
        return JSONSchema(shape)
    }

    private func error(_ keyword: String, _ message: String) -> JSONSchemaError {
        JSONSchemaError(pointer: pointer, keyword: keyword, message: message)
    }

    private mutating func read(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
        switch keyword {
        case "type": shape.kinds = try kinds(value)
        case "enum": shape.enumeration = try list(keyword, value)
        case "const": shape.enumeration = [value]
        case "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum": try readBound(keyword, value)
        case "minLength": shape.minLength = try size(keyword, value)
        case "maxLength": shape.maxLength = try size(keyword, value)
        case "minItems": shape.minItems = try size(keyword, value)
        case "maxItems": shape.maxItems = try size(keyword, value)
        case "pattern": shape.pattern = try pattern(value)
        case "items": shape.items = .each(try child(value, keyword))
        case "additionalProperties": shape.others = try others(value)
        case "properties": shape.properties = try properties(value)
        case "anyOf": shape.anyOf = try alternatives(keyword, value)
        case "oneOf": shape.oneOf = try alternatives(keyword, value)
        case "required": break  // once all properties are known
        case "$schema": try checkDialect(value)
        case _ where Self.annotations.contains(keyword): break
        default: throw error(keyword, "is not supported")
        }
    }

    private func child(_ value: JSON, _ steps: String...) throws(JSONSchemaError) -> JSONSchema {
        let below = steps.reduce(pointer) { path, step in path + "/" + Self.escaped(step) }
        return try SchemaReader(value, pointer: below, depth: depth + 1).schema()
    }

    private static func escaped(_ step: String) -> String {
        var escaped = ""
        for character in step {
            switch character {
            case "~": escaped += "~0"
            case "/": escaped += "~1"
            default: escaped.append(character)
            }
        }
        return escaped
    }

    private func checkDialect(_ value: JSON) throws(JSONSchemaError) {
        let known = ["json-schema.org/draft/2020-12/schema", "json-schema.org/draft-07/schema"]
        guard let text = value.string, known.contains(where: { text.contains($0) }) else {
            throw error("$schema", "is neither 2020-12 nor draft-07")
        }
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

    private func size(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> Int {
        guard let size = value.int, (0..<Int(UInt32.max)).contains(size) else {
            throw error(keyword, "must be an integer, not negative")
        }
        return size
    }

    /// Of an inclusive and an exclusive bound the stricter one counts.
    private mutating func readBound(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
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

    private func pattern(_ value: JSON) throws(JSONSchemaError) -> SchemaPattern {
        guard let text = value.string else { throw error("pattern", "must be a string") }
        do {
            return try SchemaPattern(text)
        } catch {
            throw self.error("pattern", error.message)
        }
    }

    private func others(_ value: JSON) throws(JSONSchemaError) -> SchemaShape.Others {
        switch value.bool {
        case false?: .none
        case true?: .any
        case nil: .each(try child(value, "additionalProperties"))
        }
    }

    private func properties(_ value: JSON) throws(JSONSchemaError) -> [SchemaShape.Property] {
        guard let object = value.object else { throw error("properties", "must be an object") }
        var properties: [SchemaShape.Property] = []
        for (key, schema) in object {
            properties.removeAll { $0.key == key }
            properties.append(.init(key: key, schema: try child(schema, "properties", key), isRequired: false))
        }
        return properties
    }

    private mutating func readRequired() throws(JSONSchemaError) {
        guard let list = json["required"] else { return }
        guard let names = list.array.map({ $0.map(\.string) }), !names.contains(nil) else {
            throw error("required", "must be a list of strings")
        }
        let required = Set(names.compactMap { $0 })
        let declared = Set(shape.properties.map(\.key))
        shape.properties = shape.properties.map {
            .init(key: $0.key, schema: $0.schema, isRequired: required.contains($0.key))
        }
        // A key that is required and not declared may be anything; declaring it here would open a closed object to it.
        guard required.isSubset(of: declared) || !shape.others.refuses else {
            throw error("required", "names a key that additionalProperties refuses")
        }
        for key in required.subtracting(declared).sorted() {
            let schema = shape.others.schema ?? .any
            shape.properties.append(.init(key: key, schema: schema, isRequired: true))
        }
    }

    private func alternatives(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> [JSONSchema] {
        var schemas: [JSONSchema] = []
        for (position, schema) in try list(keyword, value).enumerated() {
            schemas.append(try child(schema, keyword, String(position)))
        }
        return schemas
    }
}

extension SchemaShape.Others {
    fileprivate var refuses: Bool {
        if case .none = self { true } else { false }
    }

    fileprivate var schema: JSONSchema? {
        if case .each(let schema) = self { schema } else { nil }
    }
}
