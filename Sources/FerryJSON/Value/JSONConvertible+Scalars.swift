internal import CFerryJSON

extension JSON: JSONConvertible {
    /// The value itself.
    public init(json: JSON) { self = json }
}

extension String: JSONConvertible {
    /// A string; an error for anything else.
    public init(json: JSON) throws { self = try json.asString() }

    /// Reads the tape without a view.
    @inlinable
    public static func value(at place: JSON.Place, in json: JSON) throws -> String { try json.string(at: place) }
}

extension Bool: JSONConvertible {
    /// `true` or `false`; an error for anything else.
    public init(json: JSON) throws { self = try json.asBool() }

    /// Reads the tape without a view.
    @inlinable
    public static func value(at place: JSON.Place, in json: JSON) throws -> Bool {
        switch json.tag(at: place) {
        case UInt8(ascii: "t"): true
        case UInt8(ascii: "f"): false
        default: try json.noBool(at: place)
        }
    }
}

extension Double: JSONConvertible {
    /// A number; an error for anything else.
    public init(json: JSON) throws { self = try json.asDouble() }

    /// Reads the tape without a view.
    @inlinable
    public static func value(at place: JSON.Place, in json: JSON) throws -> Double {
        guard json.tag(at: place) == UInt8(ascii: "d") else { return try json.otherNumber(at: place) }
        return Double(bitPattern: json.document.words[place.word &+ 1])
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
    @inlinable
    public static func value(at place: JSON.Place, in json: JSON) throws -> Int {
        guard json.tag(at: place) == UInt8(ascii: "l"),
            let value = Int(exactly: Int64(bitPattern: json.document.words[place.word &+ 1]))
        else { return try json.otherInteger(at: place) }
        return value
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

// Calls for what is not inlined into other modules.
extension JSON {
    @usableFromInline
    func string(at place: Place) throws -> String {
        guard tag(at: place) == JSONTag.string else { return try noString(at: place) }
        return document.tape.string(at: place.word)
    }

    @inline(never)
    private func noString(at place: Place) throws -> String { try view(at: place).asString() }

    @usableFromInline
    func noBool(at place: Place) throws -> Bool { try view(at: place).asBool() }

    /// An integer that is no signed one of 64 bits on the tape, but may be equal to one.
    @usableFromInline
    func otherInteger(at place: Place) throws -> Int { try view(at: place).asInteger() }

    /// A number that is no double on the tape.
    @usableFromInline
    func otherNumber(at place: Place) throws -> Double { try view(at: place).asDouble() }
}
