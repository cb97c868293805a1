public import FerryJSON
public import FoundationEssentials

// `Value` and not the concrete type stands in each signature: with the concrete type the default of the associated
// type would be ambiguous.

extension Request where Value == Response {
    /// The response itself.
    public func value(from response: Response) throws -> Value { response }
}

extension Request where Value == Void {
    /// Nothing: what counts is that it went well.
    public func value(from response: Response) throws -> Value { () }
}

extension Request where Value == Data {
    /// The body.
    public func value(from response: Response) throws -> Value { response.body }
}

extension Request where Value == [UInt8] {
    /// The body.
    public func value(from response: Response) throws -> Value { response.bytes }
}

extension Request where Value == String {
    /// The body as UTF-8; what is not UTF-8 is repaired.
    public func value(from response: Response) throws -> Value { response.text }
}

extension Request where Value == JSON {
    /// The body as JSON. An empty one is `invalidJSON`; where it may be empty the value is `JSON?`.
    public func value(from response: Response) throws -> Value { try response.requireJSON() }
}

extension Request where Value: JSONConvertible {
    /// Made from the body's JSON. Of an empty body an optional is `nil`, anything else `invalidJSON`.
    public func value(from response: Response) throws -> Value {
        try BodyDecoding.convert(Value.self, from: response)
    }
}

extension Request where Value: Decodable {
    /// Decoded from the body's JSON, by ``jsonDecoder``. Of an empty body an optional is `nil`, anything else
    /// `invalidJSON`.
    public func value(from response: Response) throws -> Value {
        try BodyDecoding.decode(Value.self, from: response, by: jsonDecoder)
    }
}

extension Request where Value: Decodable & JSONConvertible {
    /// Of the two ways the quicker one.
    public func value(from response: Response) throws -> Value {
        try BodyDecoding.convert(Value.self, from: response)
    }
}
