internal import CFerryJSON

extension JSON: JSONConvertible {
    /// The value itself.
    public init(json: JSON) { self = json }
}

extension String: JSONConvertible {
    /// A string; an error for anything else.
    public init(json: JSON) throws { self = try json.asString() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> String {
        let tape = json.document.tape
        guard ferry_json_tag(tape, place.word) == JSONTag.string else { return try json.view(at: place).asString() }
        return tape.string(at: place.word)
    }
}

extension Bool: JSONConvertible {
    /// True or false; an error for anything else.
    public init(json: JSON) throws { self = try json.asBool() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> Bool {
        switch ferry_json_tag(json.document.tape, place.word) {
        case JSONTag.yes: true
        case JSONTag.no: false
        default: try json.view(at: place).asBool()
        }
    }
}

extension Double: JSONConvertible {
    /// A number; an error for anything else.
    public init(json: JSON) throws { self = try json.asDouble() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> Double {
        try json.document.tape.number(at: place.word) ?? json.view(at: place).asDouble()
    }
}

extension Float: JSONConvertible {
    /// The nearest float; an error if that is infinite.
    public init(json: JSON) throws {
        self = Float(try json.asDouble())
        guard isFinite else { throw JSONMismatch(at: json, expected: "Float", found: "number out of range") }
    }
}

extension Int: JSONConvertible {
    /// An integer that fits; an error for anything else.
    public init(json: JSON) throws { self = try json.asInteger() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> Int {
        try json.document.tape.integer(at: place.word) ?? json.view(at: place).asInteger()
    }
}

extension Int8: JSONConvertible {
    /// An integer that fits; an error for anything else.
    public init(json: JSON) throws { self = try json.asInteger() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> Int8 {
        try json.document.tape.integer(at: place.word) ?? json.view(at: place).asInteger()
    }
}

extension Int16: JSONConvertible {
    /// An integer that fits; an error for anything else.
    public init(json: JSON) throws { self = try json.asInteger() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> Int16 {
        try json.document.tape.integer(at: place.word) ?? json.view(at: place).asInteger()
    }
}

extension Int32: JSONConvertible {
    /// An integer that fits; an error for anything else.
    public init(json: JSON) throws { self = try json.asInteger() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> Int32 {
        try json.document.tape.integer(at: place.word) ?? json.view(at: place).asInteger()
    }
}

extension Int64: JSONConvertible {
    /// An integer that fits; an error for anything else.
    public init(json: JSON) throws { self = try json.asInteger() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> Int64 {
        try json.document.tape.integer(at: place.word) ?? json.view(at: place).asInteger()
    }
}

extension UInt: JSONConvertible {
    /// An integer that fits; an error for anything else.
    public init(json: JSON) throws { self = try json.asInteger() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> UInt {
        try json.document.tape.integer(at: place.word) ?? json.view(at: place).asInteger()
    }
}

extension UInt8: JSONConvertible {
    /// An integer that fits; an error for anything else.
    public init(json: JSON) throws { self = try json.asInteger() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> UInt8 {
        try json.document.tape.integer(at: place.word) ?? json.view(at: place).asInteger()
    }
}

extension UInt16: JSONConvertible {
    /// An integer that fits; an error for anything else.
    public init(json: JSON) throws { self = try json.asInteger() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> UInt16 {
        try json.document.tape.integer(at: place.word) ?? json.view(at: place).asInteger()
    }
}

extension UInt32: JSONConvertible {
    /// An integer that fits; an error for anything else.
    public init(json: JSON) throws { self = try json.asInteger() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> UInt32 {
        try json.document.tape.integer(at: place.word) ?? json.view(at: place).asInteger()
    }
}

extension UInt64: JSONConvertible {
    /// An integer that fits; an error for anything else.
    public init(json: JSON) throws { self = try json.asInteger() }

    /// Reads the tape without a view.
    public static func value(at place: JSON.Place, in json: JSON) throws -> UInt64 {
        try json.document.tape.integer(at: place.word) ?? json.view(at: place).asInteger()
    }
}
