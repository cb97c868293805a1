internal import CFerryJSON

// The value as a type, or an error with the place and the kind that was found.
extension JSON {
    /// `true` or `false`; an error for anything else.
    public func asBool() throws(JSONMismatch) -> Bool {
        guard let bool else { throw JSONMismatch(at: self, expected: "bool") }
        return bool
    }

    /// The number as an `Int`; an error for anything else and for integers that do not fit. `1.0` and `1e2` are
    /// integers. A number of 2^53 or more that is written with a fraction or an exponent is an error, as it may have
    /// been rounded.
    public func asInt() throws(JSONMismatch) -> Int { try asInteger() }

    /// The number as a `UInt`; an error for anything else, for negative numbers and for integers that do not fit.
    public func asUInt() throws(JSONMismatch) -> UInt { try asInteger() }

    /// The number as a `Double`; an error for anything else. An integer beyond 2^53 becomes the nearest double.
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
                ? JSONMismatch(at: self, expected: "\(type)", found: "number that does not fit")
                : JSONMismatch(at: self, expected: "integer")
        }
        return value
    }

    /// The error to throw from an initialiser that does not find the value it needs here.
    public func mismatch(expected: String) -> JSONMismatch {
        JSONMismatch(at: self, expected: expected)
    }
}

extension JSON {
    /// The value as a `JSONConvertible` type: a scalar, an optional, an array, a dictionary, or a type of your own.
    @inlinable
    public func value<T: JSONConvertible>(as type: T.Type = T.self) throws -> T {
        try T(json: self)
    }

    /// A member of this object. If it is absent, an optional becomes `nil`, and any other type is an error.
    @inlinable
    public func value<T: JSONConvertible>(_ key: String, as type: T.Type = T.self) throws -> T {
        let word = word(of: key)
        // A call, so that the code of a type with many members is small.
        if word == 0 { return try valueOfAbsent(key) }
        return try T.value(at: Place(word: word), in: self)
    }

    @inlinable @inline(never)
    func valueOfAbsent<T: JSONConvertible>(_ key: String) throws -> T {
        guard kind == .object, let value = T.valueWhenAbsent else { throw absent(key, T.self) }
        return value
    }

    /// An element of this array. If it is absent, an optional becomes `nil`, and any other type is an error.
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

/// The error of a value that is not what the program or a schema expects: where it is, what was expected, what was
/// found.
///
/// It contains keys and kinds, and never a value of the document.
public struct JSONMismatch: Error, Sendable, Hashable, CustomStringConvertible {
    /// The path of the value from the root, such as `$[3].question.id`.
    public let path: String
    /// What was expected, such as `number`, `string or null` or `integer in 0...9`.
    public let expected: String
    /// What was found, such as `string`, or `nothing` if a key is absent.
    public let found: String

    /// Creates a mismatch, for checks of your own.
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

    /// Path, expectation and finding in one line: `$[3].question.id: expected number, found string`.
    public var description: String { "\(path): expected \(expected), found \(found)" }
}
