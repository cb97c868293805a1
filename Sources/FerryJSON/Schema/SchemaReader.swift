internal import CFerryJSON

/// Reads one schema object of the JSON Schema vocabulary. It is a class so that nested schemas take little stack.
final class SchemaReader {
    let json: JSON
    let pointer: String
    let depth: Int
    let links: SchemaLinks
    var base: SchemaAddress
    var shape = SchemaShape(.any)
    /// If a keyword appears twice, its last value counts.
    var members: [ExactText: JSON] = [:]

    static let deepest = 64
    static let types: [String: SchemaKinds] = [
        "string": .string, "number": .number, "integer": .integer, "boolean": .bool, "null": .null, "object": .object,
        "array": .array,
    ]

    init(_ json: JSON, pointer: String, depth: Int, links: SchemaLinks, base: SchemaAddress) {
        self.json = json
        self.pointer = pointer
        self.depth = depth
        self.links = links
        self.base = base
    }

    /// Reads a whole document.
    static func schema(_ json: JSON, assertingFormats: Bool) throws(JSONSchemaError) -> JSONSchema {
        var dialect = SchemaDialect.draft2020
        if let name = json["$schema"] { dialect = try Self.dialect(name, at: "") }
        let links = SchemaLinks(dialect: dialect, assertsFormats: assertingFormats)
        let reader = SchemaReader(json, pointer: "", depth: 0, links: links, base: SchemaAddress(""))
        let schema = try reader.schema()
        let document = try links.document()
        let whole = schema.with { $0.document = document }
        // Compile now, where the stack was sufficient for reading, and not at the first check.
        _ = whole.program
        return whole
    }

    func schema() throws(JSONSchemaError) -> JSONSchema {
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
        // In draft-07 keywords next to a reference have no effect, but other references may lead to them.
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
    subscript(_ keyword: String) -> JSON? { members[ExactText(keyword)] }

    var notASchema: String {
        let isItems = pointer.utf8.suffix(6).elementsEqual("/items".utf8)
        guard isItems, json.kind == .array, links.dialect == .draft2020 else {
            return "must be an object or a boolean"
        }
        return "must be an object or a boolean; a list of schemas is prefixItems in 2020-12"
    }

    func error(_ keyword: String, _ message: String) -> JSONSchemaError {
        JSONSchemaError(pointer: pointer, keyword: keyword, message: message)
    }

    func read(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
        if let refusal = links.dialect.refusal(of: keyword) { throw error(keyword, refusal) }
        switch keyword {
        case "type": shape.kinds = try kinds(value)
        case "enum": _ = try anyList(value)
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

// MARK: - Other schemas

extension SchemaReader {
    static func escaped(_ step: String) -> String {
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

    func child(_ value: JSON, _ steps: String...) throws(JSONSchemaError) -> JSONSchema {
        let below = steps.reduce(pointer) { path, step in path + "/" + Self.escaped(step) }
        return try SchemaReader(value, pointer: below, depth: depth + 1, links: links, base: base).schema()
    }

    /// Reads a schema that applies to the same value.
    func inPlace(_ value: JSON, _ steps: String...) throws(JSONSchemaError) -> JSONSchema {
        let below = steps.reduce(pointer) { path, step in path + "/" + Self.escaped(step) }
        links.add(step: json.index, to: value.index)
        return try SchemaReader(value, pointer: below, depth: depth + 1, links: links, base: base).schema()
    }

    static func dialect(_ value: JSON, at pointer: String) throws(JSONSchemaError) -> SchemaDialect {
        guard let dialect = value.string.flatMap({ SchemaDialect($0) }) else {
            throw JSONSchemaError(pointer: pointer, keyword: "$schema", message: "is neither 2020-12 nor draft-07")
        }
        return dialect
    }

    func checkDialect(_ value: JSON) throws(JSONSchemaError) {
        guard try Self.dialect(value, at: pointer) == links.dialect else {
            throw error("$schema", "differs from the draft of the document, \(links.dialect.rawValue)")
        }
    }

    /// Reads the names by which other schemas may refer to this one.
    func readNames() throws(JSONSchemaError) {
        if let value = self["$id"] {
            guard let identifier = value.string else { throw error("$id", "must be a string") }
            base = try links.add(identifier: identifier, of: json.index, at: pointer, base: base)
        }
        for keyword in ["$anchor", "$dynamicAnchor"] where links.dialect == .draft2020 {
            guard let value = self[keyword] else { continue }
            guard let anchor = value.string, !anchor.isEmpty, !anchor.hasPrefix("/") else {
                throw error(keyword, "must be a name")
            }
            // Both may have the same name on one schema.
            if keyword == "$dynamicAnchor", self["$anchor"]?.string == anchor { continue }
            try links.add(anchor: anchor, keyword: keyword, of: json.index, at: pointer, base: base)
        }
    }

    func readReference(_ value: JSON) throws(JSONSchemaError) {
        guard let text = value.string else { throw error("$ref", "must be a string") }
        shape.reference = links.add(reference: text, from: json.index, at: pointer, base: base)
    }

    func readDefinitions(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
        for (name, schema) in try object(keyword, value) {
            shape.definitions.append(try child(schema, keyword, name))
        }
    }

    func alternatives(
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

    func readConditional(_ value: JSON) throws(JSONSchemaError) {
        var conditional = SchemaShape.Conditional(condition: try inPlace(value, "if"))
        if let value = self["then"] { conditional.consequence = try inPlace(value, "then") }
        if let value = self["else"] { conditional.alternative = try inPlace(value, "else") }
        shape.conditional = conditional
    }

    /// Reads `then` or `else`, which have no effect without `if`.
    func readWithoutCondition(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
        if self["if"] == nil { shape.definitions.append(try child(value, keyword)) }
    }
}

/// The supported drafts of JSON Schema.
enum SchemaDialect: String {
    case draft7 = "draft-07"
    case draft2020 = "2020-12"

    /// The draft with this `$schema`.
    init?(_ text: String) {
        let name = text.hasSuffix("#") ? text.dropLast() : text[...]
        if name.hasSuffix("json-schema.org/draft-07/schema") {
            self = .draft7
        } else if name.hasSuffix("json-schema.org/draft/2020-12/schema") {
            self = .draft2020
        } else {
            return nil
        }
    }

    /// Why a keyword of the other draft is not valid in this one; `nil` if both drafts have it.
    func refusal(of keyword: String) -> String? {
        switch self {
        case .draft7 where Self.since2019.contains(keyword): "is not a keyword of draft-07"
        case .draft2020 where keyword == "dependencies":
            "is a keyword of draft-07; in 2020-12 they are dependentRequired and dependentSchemas"
        case .draft2020 where keyword == "additionalItems":
            "is a keyword of draft-07; in 2020-12 it is items with prefixItems"
        default: nil
        }
    }

    private static let since2019: Set<String> = [
        "$anchor", "$dynamicAnchor", "prefixItems", "minContains", "maxContains", "dependentRequired",
        "dependentSchemas", "unevaluatedItems", "unevaluatedProperties",
    ]

    /// Keywords that describe a value without constraining it.
    static let annotations: Set<String> = [
        "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
        "contentEncoding", "contentMediaType", "contentSchema",
    ]
}
