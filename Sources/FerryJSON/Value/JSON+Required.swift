internal import CFerryJSON

// What a value is, or an error that says where it stands and what was found there.
extension JSON {
    /// True or false; an error for anything else.
    public func asBool() throws(JSONMismatch) -> Bool {
        guard let bool else { throw JSONMismatch(at: self, expected: "bool") }
        return bool
    }

    /// An integer that fits; an error for anything else. `1.0` and `1e2` are integers; from 2^53 on one that is written
    /// with a fraction or an exponent is an error, as it may have been rounded.
    public func asInt() throws(JSONMismatch) -> Int { try asInteger() }

    /// An integer that fits and is not negative; an error for anything else.
    public func asUInt() throws(JSONMismatch) -> UInt { try asInteger() }

    /// A number; an error for anything else. An integer beyond 2^53 becomes the nearest double.
    public func asDouble() throws(JSONMismatch) -> Double {
        guard let double else { throw JSONMismatch(at: self, expected: "number") }
        return double
    }

    /// A string; an error for anything else.
    public func asString() throws(JSONMismatch) -> String {
        guard let string else { throw JSONMismatch(at: self, expected: "string") }
        return string
    }

    /// The elements of an array; an error for anything else.
    public func asArray() throws(JSONMismatch) -> JSONArray {
        guard let array else { throw JSONMismatch(at: self, expected: "array") }
        return array
    }

    /// The members of an object; an error for anything else.
    public func asObject() throws(JSONMismatch) -> JSONObject {
        guard let object else { throw JSONMismatch(at: self, expected: "object") }
        return object
    }

    @inline(__always)
    func asInteger<T: FixedWidthInteger>(_ type: T.Type = T.self) throws(JSONMismatch) -> T {
        guard let value = document.tape.integer(at: index, as: type) else {
            throw kind == .number
                ? JSONMismatch(at: self, expected: "\(type)", found: "number that is none")
                : JSONMismatch(at: self, expected: "integer")
        }
        return value
    }

    /// The error to throw from an initialiser that finds something else than it needs here.
    public func mismatch(expected: String) -> JSONMismatch {
        JSONMismatch(at: self, expected: expected)
    }
}

extension JSON {
    /// The value as a type that knows how: scalars, optionals, arrays, dictionaries and one's own.
    @inlinable
    public func value<T: JSONConvertible>(as type: T.Type = T.self) throws -> T {
        try T(json: self)
    }

    /// A member of this object. When it is absent, an optional is nil and anything else an error.
    @inlinable
    public func value<T: JSONConvertible>(_ key: String, as type: T.Type = T.self) throws -> T {
        if let place = member(key) { return try T.value(at: place, in: self) }
        guard kind == .object, let value = T.valueWhenAbsent else { throw absent(key, T.self) }
        return value
    }

    /// An element of this array.
    @inlinable
    public func value<T: JSONConvertible>(at position: Int, as type: T.Type = T.self) throws -> T {
        if let element = self[position] { return try T.value(at: element.place, in: element) }
        guard kind == .array, let value = T.valueWhenAbsent else { throw absent(position, T.self) }
        return value
    }

    @usableFromInline
    func absent<T>(_ key: String, _ type: T.Type) -> JSONMismatch {
        guard kind == .object else { return mismatch(expected: "object") }
        return JSONMismatch(absent: .key(key), in: self, expected: "\(type)")
    }

    @usableFromInline
    func absent<T>(_ position: Int, _ type: T.Type) -> JSONMismatch {
        guard kind == .array else { return mismatch(expected: "array") }
        return JSONMismatch(absent: .position(position), in: self, expected: "\(type)")
    }
}

/// A value is not what was asked for, or what a schema demands: where it stands, what was expected, what is there.
///
/// It names keys and kinds and never holds a value of the document.
public struct JSONMismatch: Error, Sendable, Hashable, CustomStringConvertible {
    /// The way there from the root: `$[3].question.id`.
    public let path: String
    /// `number`, `string or null`, `integer in 0...9`.
    public let expected: String
    /// `string`, `nothing` where a key is absent.
    public let found: String

    /// A mismatch found by other means, such as a check of one's own.
    public init(path: String, expected: String, found: String) {
        self.path = path
        self.expected = expected
        self.found = found
    }

    init(at value: JSON, expected: String, found: String? = nil) {
        self.init(
            path: JSONPath(to: value.index, in: value.document.tape).description, expected: expected,
            found: found ?? value.kind.rawValue)
    }

    /// An absent member or element.
    init(absent step: JSONPath.Step, in value: JSON, expected: String) {
        var path = JSONPath(to: value.index, in: value.document.tape)
        path.append(step)
        self.init(path: path.description, expected: expected, found: "nothing")
    }

    /// `$[3].question.id: expected number, found string`.
    public var description: String { "\(path): expected \(expected), found \(found)" }
}
