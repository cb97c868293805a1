public import FerryJSON

extension Arguments: JSONConvertible {
    /// The members of an object.
    public init(json: JSON) throws { self.init(try Dictionary(json: json)) }
}

extension Arguments.Value: JSONConvertible {
    /// Any value; an integer that `Int` cannot hold is an error, as it would be rounded.
    public init(json: JSON) throws {
        switch json.kind {
        case .null: self = .null
        case .bool: self = .bool(try json.asBool())
        case .number: self = try Self(number: json)
        case .string: self = .string(try json.asString())
        case .array: self = .array(try Array(json: json))
        case .object: self = .object(try Dictionary(json: json))
        }
    }

    private init(number json: JSON) throws {
        if let integer = json.int {
            self = .integer(integer)
        } else if json.uint != nil {
            throw json.mismatch(expected: "a number that Int or Double can hold")
        } else {
            self = .number(try json.asDouble())
        }
    }
}

extension JSON {
    /// The arguments as an object, members sorted by name. A number that is not finite becomes null.
    public init(arguments: Arguments) { self.init(arguments.values.mapValues(JSON.init(argument:))) }

    /// Likewise of one.
    public init(argument: Arguments.Value) {
        switch argument {
        case .null: self = .null
        case .bool(let value): self.init(value)
        case .integer(let value): self.init(value)
        case .number(let value): self.init(value)
        case .string(let value): self.init(value)
        case .array(let values): self.init(values.map(JSON.init(argument:)))
        case .object(let values): self.init(values.mapValues(JSON.init(argument:)))
        }
    }
}
