public import FerryJSON

/// The arguments of a request: names and values, nested to any depth.
///
///     ["a": 1, "b": ["x", "y"], "c": ["k": nil], "id": .integer(id), "name": .string(name)]
///
/// In a query or a form, names are sorted, `b` becomes `b[]=x&b[]=y`, `c` becomes `c[k]`, and everything is
/// percent-encoded. In JSON the arguments are an object.
public struct Arguments: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// The value of an argument.
    public enum Value: Sendable, Hashable {
        /// A name without a value in a query, `null` in JSON.
        case null
        /// `true` or `false`.
        case bool(Bool)
        /// An integer.
        case integer(Int)
        /// A floating-point number. JSON cannot represent an infinite one or NaN.
        case number(Double)
        /// A string.
        case string(String)
        /// An array.
        case array([Value])
        /// An object.
        case object([String: Value])
    }

    /// The values by name.
    public var values: [String: Value]

    /// Creates arguments from values by name.
    public init(_ values: [String: Value] = [:]) { self.values = values }

    /// No arguments.
    static let none = Arguments()

    /// Creates arguments from a literal. If a name appears twice, the last value is used.
    public init(dictionaryLiteral elements: (String, Value)...) {
        values = Dictionary(elements, uniquingKeysWith: { $1 })
    }

    /// Whether there are no arguments.
    public var isEmpty: Bool { values.isEmpty }

    /// The value of a name. Setting `nil` removes it; ``Value/null`` is a value.
    public subscript(name: String) -> Value? {
        get { values[name] }
        set { values[name] = newValue }
    }
}

extension Arguments.Value: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// Creates `null`.
    public init(nilLiteral: ()) { self = .null }
    /// Creates a Boolean.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates an integer.
    public init(integerLiteral value: Int) { self = .integer(value) }
    /// Creates a floating-point number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// Creates a string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an array.
    public init(arrayLiteral elements: Arguments.Value...) { self = .array(elements) }
    /// Creates an object.
    public init(dictionaryLiteral elements: (String, Arguments.Value)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
}

/// Where the arguments of a request go.
public enum ArgumentEncoding: Sendable, Hashable {
    /// The query for GET, HEAD and DELETE, a form for all other methods.
    case automatic
    /// The query of the URL.
    case query
    /// The body, as `application/x-www-form-urlencoded`.
    case form
    /// The body, as `application/json`.
    case json
}

extension Arguments {
    /// `a=1&b%5B%5D=x`, as in a query or the body of a form. Empty if there are no arguments.
    func formEncoded() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(values.count * 24)
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            var key: [UInt8] = []
            key.appendArgument(name)
            Self.append(value, under: key, to: &bytes)
        }
        return bytes
    }

    private static func append(_ value: Value, under key: [UInt8], to bytes: inout [UInt8]) {
        switch value {
        case .object(let members):
            for (name, value) in members.sorted(by: { $0.key < $1.key }) {
                var inner = key
                inner.appendEscaped(0x5B)
                inner.appendArgument(name)
                inner.appendEscaped(0x5D)
                append(value, under: inner, to: &bytes)
            }
        case .array(let elements):
            var inner = key
            inner.appendEscaped(0x5B)
            inner.appendEscaped(0x5D)
            for element in elements { append(element, under: inner, to: &bytes) }
        case .null: pair(key, nil, to: &bytes)
        case .bool(let value): pair(key, value ? "true" : "false", to: &bytes)
        case .integer(let value): pair(key, String(value), to: &bytes)
        case .number(let value): pair(key, text(of: value), to: &bytes)
        case .string(let value): pair(key, value, to: &bytes)
        }
    }

    private static func pair(_ key: [UInt8], _ value: String?, to bytes: inout [UInt8]) {
        if !bytes.isEmpty { bytes.append(0x26) }
        bytes.append(contentsOf: key)
        guard let value else { return }
        bytes.append(0x3D)
        bytes.appendArgument(value)
    }

    /// The arguments as a JSON object with sorted names; `nil` if a number is not finite (RFC 8259, 6).
    func jsonEncoded() -> [UInt8]? {
        var bytes: [UInt8] = []
        return Self.append(.object(values), to: &bytes) ? bytes : nil
    }

    private static func append(_ value: Value, to bytes: inout [UInt8]) -> Bool {
        switch value {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .integer(let value): bytes.append(contentsOf: String(value).utf8)
        case .number(let value):
            guard value.isFinite else { return false }
            bytes.append(contentsOf: text(of: value).utf8)
        case .string(let value): bytes.appendJSONString(value)
        case .array(let elements):
            bytes.append(0x5B)
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(0x2C) }
                guard append(element, to: &bytes) else { return false }
            }
            bytes.append(0x5D)
        case .object(let members):
            bytes.append(0x7B)
            for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { bytes.append(0x2C) }
                bytes.appendJSONString(member.key)
                bytes.append(0x3A)
                guard append(member.value, to: &bytes) else { return false }
            }
            bytes.append(0x7D)
        }
        return true
    }

    /// `2` rather than `2.0`, as other clients write it.
    static func text(of value: Double) -> String {
        let text = value.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

extension [UInt8] {
    fileprivate mutating func appendArgument(_ text: String) {
        for byte in text.utf8 {
            if ByteSet.argument.contains(byte) { append(byte) } else { appendEscaped(byte) }
        }
    }

    fileprivate mutating func appendJSONString(_ text: String) {
        append(0x22)
        for byte in text.utf8 {
            switch byte {
            case 0x22, 0x5C:
                append(0x5C)
                append(byte)
            case 0x0A: append(contentsOf: [0x5C, 0x6E])
            case 0x0D: append(contentsOf: [0x5C, 0x72])
            case 0x09: append(contentsOf: [0x5C, 0x74])
            case 0..<0x20:
                append(contentsOf: [0x5C, 0x75, 0x30, 0x30])
                append(byte < 16 ? 0x30 : 0x31)
                append(contentsOf: String(byte & 15, radix: 16).utf8)
            default: append(byte)
            }
        }
        append(0x22)
    }
}

extension Arguments: JSONConvertible {
    /// Creates arguments from the members of an object. Throws `JSONMismatch` for any other value.
    public init(json: JSON) throws { self.init(try Dictionary(json: json)) }
}

extension Arguments.Value: JSONConvertible {
    /// Creates a value from JSON. An integer that does not fit in `Int` is an error, because it would be rounded. So is
    /// any other number from 2^63 on, because it may have been such an integer.
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
            return
        }
        let number = try json.asDouble()
        guard number.magnitude < 0x1p63 else { throw json.mismatch(expected: "a number that fits in Int or Double") }
        self = .number(number)
    }
}

extension JSON {
    /// Creates an object from arguments, with members sorted by name. A number that is not finite becomes null.
    public init(arguments: Arguments) { self.init(arguments.values.mapValues(JSON.init(argument:))) }

    /// Creates JSON from one value. A number that is not finite becomes null.
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
