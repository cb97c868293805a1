/// A type that makes itself from a JSON value, by hand and without the containers of `Codable`: the fastest way from a
/// document to values.
///
///     struct User: JSONConvertible {
///         let name: String, level: Int, tags: [String], bio: String?
///         init(json: JSON) throws {
///             name = try json.value("name")
///             level = try json.value("level")
///             tags = try json.value("tags")
///             bio = try json.value("bio")        // absent or null: nil
///         }
///     }
public protocol JSONConvertible {
    init(json: JSON) throws

    /// What stands for a member that is absent; nil, the default, makes that an error.
    static var valueWhenAbsent: Self? { get }
}

extension JSONConvertible {
    @inlinable
    public static var valueWhenAbsent: Self? { nil }
}

extension Optional: JSONConvertible where Wrapped: JSONConvertible {
    @inlinable
    public init(json: JSON) throws { self = json.isNull ? nil : .some(try Wrapped(json: json)) }

    @inlinable
    public static var valueWhenAbsent: Wrapped?? { .some(nil) }
}

extension Array: JSONConvertible where Element: JSONConvertible {
    @inlinable
    public init(json: JSON) throws {
        let elements = try json.asArray()
        self.init()
        reserveCapacity(elements.count)
        for element in elements { append(try Element(json: element)) }
    }
}

extension Dictionary: JSONConvertible where Key == String, Value: JSONConvertible {
    @inlinable
    public init(json: JSON) throws {
        let members = try json.asObject()
        self.init(minimumCapacity: members.count)
        for (key, value) in members { self[key] = try Value(json: value) }
    }
}

extension JSONConvertible where Self: RawRepresentable, RawValue: JSONConvertible {
    @inlinable
    public init(json: JSON) throws {
        guard let value = Self(rawValue: try RawValue(json: json)) else {
            throw json.mismatch(expected: "a value of \(Self.self)")
        }
        self = value
    }
}
