/// The arguments of a request: names and values, nested as deep as needed.
///
///     ["a": 1, "b": ["x", "y"], "c": ["k": nil], "id": .integer(id), "name": .string(name)]
///
/// In a query or a form the names are sorted, `b` becomes `b[]=x&b[]=y`, `c` becomes `c[k]`, all of it percent-encoded;
/// in JSON they are an object.
public struct Arguments: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// The value of an argument.
    public enum Value: Sendable, Hashable {
        /// A bare name in a query, `null` in JSON.
        case null
        /// `true` or `false`.
        case bool(Bool)
        /// A whole number.
        case integer(Int)
        /// Any other number; what is not finite is not JSON.
        case number(Double)
        /// Text.
        case string(String)
        /// Values in order.
        case array([Value])
        /// Values by name.
        case object([String: Value])
    }

    /// Values by name.
    public var values: [String: Value]

    /// These values.
    public init(_ values: [String: Value] = [:]) { self.values = values }

    /// The values of a literal; of a name that comes twice the last one counts.
    public init(dictionaryLiteral elements: (String, Value)...) {
        values = Dictionary(elements, uniquingKeysWith: { $1 })
    }

    /// Whether there are none.
    public var isEmpty: Bool { values.isEmpty }

    /// The value of this name; setting `nil` removes it (``Value/null`` is a value).
    public subscript(name: String) -> Value? {
        get { values[name] }
        set { values[name] = newValue }
    }
}

extension Arguments.Value: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// `null`.
    public init(nilLiteral: ()) { self = .null }
    /// A truth value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A whole number.
    public init(integerLiteral value: Int) { self = .integer(value) }
    /// A number.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// Text.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Values in order.
    public init(arrayLiteral elements: Arguments.Value...) { self = .array(elements) }
    /// Values by name.
    public init(dictionaryLiteral elements: (String, Arguments.Value)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
    }
}

/// Where the arguments of a request go.
public enum ArgumentEncoding: Sendable, Hashable {
    /// Into the query of GET, HEAD and DELETE, into a form of all others.
    case automatic
    /// Into the query of the URL.
    case query
    /// Into the body, as `application/x-www-form-urlencoded`.
    case form
    /// Into the body, as `application/json`.
    case json
}
