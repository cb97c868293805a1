// MARK: - Values of keywords

extension SchemaReader {
    func kinds(_ value: JSON) throws(JSONSchemaError) -> SchemaKinds {
        let names = value.array.map { Array($0) } ?? [value]
        var kinds: SchemaKinds = []
        for name in names {
            guard let kind = name.string.flatMap({ Self.types[$0] }) else { throw error("type", "is not a JSON type") }
            kinds.formUnion(kind)
        }
        guard !kinds.isEmpty else { throw error("type", "is an empty list") }
        return kinds
    }

    func list(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> [JSON] {
        guard let array = value.array, array.count > 0 else { throw error(keyword, "must be a non-empty list") }
        return Array(array)
    }

    /// The list may be empty in both drafts. Then no value matches.
    func anyList(_ value: JSON) throws(JSONSchemaError) -> [JSON] {
        guard let array = value.array else { throw error("enum", "must be a list") }
        return Array(array)
    }

    func object(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> [(key: String, value: JSON)] {
        guard let object = value.object else { throw error(keyword, "must be an object") }
        // If a key appears twice, its last value counts.
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

    func strings(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> [String] {
        guard let names = value.array.map({ $0.map(\.string) }), !names.contains(nil) else {
            throw error(keyword, "must be a list of strings")
        }
        return names.compactMap { $0 }
    }

    func size(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> Int {
        guard let size = value.int, (0..<Int(UInt32.max)).contains(size) else {
            throw error(keyword, "must be a non-negative integer")
        }
        return size
    }

    func flag(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> Bool {
        guard let flag = value.bool else { throw error(keyword, "must be true or false") }
        return flag
    }

    func pattern(_ keyword: String, _ value: JSON) throws(JSONSchemaError) -> SchemaPattern {
        guard let text = value.string else { throw error(keyword, "must be a string") }
        return try pattern(keyword, text)
    }

    func pattern(_ keyword: String, _ text: String) throws(JSONSchemaError) -> SchemaPattern {
        do {
            return try links.pattern(text)
        } catch {
            throw self.error(keyword, error.message)
        }
    }

    func factor(_ value: JSON) throws(JSONSchemaError) -> JSON {
        guard value.kind == .number, value.compared(to: 0) > 0 else {
            throw error("multipleOf", "must be a number above 0")
        }
        return value.detached()
    }

    /// Reads a bound. The stricter of an inclusive and an exclusive bound counts.
    func readBound(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
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

    /// Reads a format. Without the option, any format is an annotation.
    func readFormat(_ value: JSON) throws(JSONSchemaError) {
        guard let name = value.string else { throw error("format", "must be a string") }
        guard links.assertsFormats else { return }
        guard let format = JSONSchema.Format(rawValue: name) else {
            throw error("format", "\(name) is not one of the formats that can be asserted")
        }
        shape.format = format
    }

    /// Combines `enum` and `const`: a value must satisfy both.
    func combineValues() throws(JSONSchemaError) {
        let listed = try self["enum"].map { value throws(JSONSchemaError) in try anyList(value) }
        guard let constant = self["const"] else {
            shape.enumeration = listed
            return
        }
        shape.enumeration = listed.map { $0.contains(constant) ? [constant] : [] } ?? [constant]
    }
}

// MARK: - Arrays and objects

extension SchemaReader {
    func readItems(_ value: JSON) throws(JSONSchemaError) {
        if links.dialect == .draft7, value.kind == .array {
            shape.prefix = try alternatives("items", value, isInPlace: false, mayBeEmpty: true)
        } else {
            shape.items = .each(try child(value, "items"))
        }
    }

    func readAdditionalItems(_ value: JSON) throws(JSONSchemaError) {
        let schema = try child(value, "additionalItems")
        // Next to an `items` that is not a list it has no effect.
        if self["items"]?.kind == .array { shape.items = .each(schema) } else { shape.definitions.append(schema) }
    }

    func readContains(_ value: JSON) throws(JSONSchemaError) {
        var contained = SchemaShape.Contained(schema: try child(value, "contains"))
        if let minimum = self["minContains"] { contained.minimum = try size("minContains", minimum) }
        if let maximum = self["maxContains"] { contained.maximum = try size("maxContains", maximum) }
        shape.contained = contained
    }

    func readProperties(_ value: JSON) throws(JSONSchemaError) {
        for (key, schema) in try object("properties", value) {
            let schema = try child(schema, "properties", key)
            shape.properties.append(.init(key: key, schema: schema, isRequired: false))
        }
    }

    func readPatternProperties(_ value: JSON) throws(JSONSchemaError) {
        for (text, schema) in try object("patternProperties", value) {
            let pattern = try pattern("patternProperties", text)
            shape.patterned.append(.init(pattern: pattern, schema: try child(schema, "patternProperties", text)))
        }
    }

    func readAdditionalProperties(_ value: JSON) throws(JSONSchemaError) {
        let schema = try child(value, "additionalProperties")
        shape.namesOthers = true
        switch value.bool {
        case false?: shape.others = .none
        case true?: shape.others = .any
        case nil: shape.others = .each(schema)
        }
        if value.bool != nil { shape.definitions.append(schema) }
    }

    func readDependencies(_ keyword: String, _ value: JSON) throws(JSONSchemaError) {
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

    func readRequired() throws(JSONSchemaError) {
        guard let list = self["required"] else { return }
        let names = try strings("required", list)
        let required = Set(names.map(ExactText.init))
        let declared = Set(shape.properties.map { ExactText($0.key) })
        shape.properties = shape.properties.map {
            .init(key: $0.key, schema: $0.schema, isRequired: required.contains(ExactText($0.key)))
        }
        let others = required.subtracting(declared)
        shape.required = others.map(\.text).sorted()
    }
}
