extension JSON: JSONConvertible {
    public init(json: JSON) { self = json }
}

extension String: JSONConvertible {
    public init(json: JSON) throws { self = try json.asString() }
}

extension Bool: JSONConvertible {
    public init(json: JSON) throws { self = try json.asBool() }
}

extension Double: JSONConvertible {
    public init(json: JSON) throws { self = try json.asDouble() }
}

extension Float: JSONConvertible {
    /// The nearest float; an error where that is infinite.
    public init(json: JSON) throws {
        self = Float(try json.asDouble())
        guard isFinite else { throw JSONMismatch(at: json, expected: "Float", found: "number out of range") }
    }
}

extension Int: JSONConvertible {
    public init(json: JSON) throws { self = try json.asInteger() }
}

extension Int8: JSONConvertible {
    public init(json: JSON) throws { self = try json.asInteger() }
}

extension Int16: JSONConvertible {
    public init(json: JSON) throws { self = try json.asInteger() }
}

extension Int32: JSONConvertible {
    public init(json: JSON) throws { self = try json.asInteger() }
}

extension Int64: JSONConvertible {
    public init(json: JSON) throws { self = try json.asInteger() }
}

extension UInt: JSONConvertible {
    public init(json: JSON) throws { self = try json.asInteger() }
}

extension UInt8: JSONConvertible {
    public init(json: JSON) throws { self = try json.asInteger() }
}

extension UInt16: JSONConvertible {
    public init(json: JSON) throws { self = try json.asInteger() }
}

extension UInt32: JSONConvertible {
    public init(json: JSON) throws { self = try json.asInteger() }
}

extension UInt64: JSONConvertible {
    public init(json: JSON) throws { self = try json.asInteger() }
}
