import FerryJSON

/// How a body becomes a value. The document is parsed once for the schema and the value, and is gone when the value is
/// made, unless that has views of it.
enum BodyDecoding {
    static func decode<T: Decodable>(
        _ type: T.Type, from response: Response, by decoder: FerryJSONDecoder
    ) throws -> T {
        defer { response.forgetJSON() }
        guard let json = try response.json else {
            do { return try decoder.decodeNothing(type) } catch is DecodingError { throw noBody(response) }
        }
        return try response.withBytes { try decoder.decode(type, from: json, text: $0) }
    }

    static func convert<T: JSONConvertible>(_ type: T.Type, from response: Response) throws -> T {
        defer { response.forgetJSON() }
        guard let json = try response.json else {
            if let value = T.valueWhenAbsent { return value }
            throw noBody(response)
        }
        return try T(json: json)
    }

    private static func noBody(_ response: Response) -> RequestError {
        RequestError(JSONSyntaxError(reason: .empty, offset: 0), of: response)
    }
}
