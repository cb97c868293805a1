public import FerryJSON
import FerryTransport
import FoundationEssentials

extension Response {
    /// The body as JSON; `nil` when it is empty. A body that is something else is `invalidJSON`, which says where.
    ///
    /// It is parsed where it stands, at the first use, and then shared by all copies of the response until the last of
    /// them goes. Views keep the parsed document alive; `detached()` is for those that are kept for long.
    public var json: JSON? {
        get throws(RequestError) {
            if let document = reading as? JSONDocument { return JSON(document) }
            let bytes = result.body
            if bytes.isEmpty { return nil }
            let parsed: JSON
            do {
                parsed = try JSON(parsing: bytes, spare: Self.spareBytes)
            } catch {
                throw RequestError(error, of: self)
            }
            return (keep(parsed.document) as? JSONDocument).map { JSON($0) } ?? parsed
        }
    }

    /// Checks the body against a schema, for those that a request cannot name beforehand, like one for each status.
    /// Throws `schemaMismatch`, which says where, or `invalidJSON`, also for an empty body. What has passed is not
    /// checked again by the same schema: a hit in the memory of a cache costs no parse.
    public func check(by schema: JSONSchema) throws(RequestError) {
        if result.passedCheck == schema.number { return }
        let json = try requireJSON()
        do {
            try schema.check(json)
        } catch {
            throw RequestError(.schemaMismatch, error, of: self)
        }
        result.passedCheck = schema.number
    }

    /// The core keeps as many behind every body.
    static let spareBytes = 64

    /// Likewise; an empty body is no JSON either.
    func requireJSON() throws(RequestError) -> JSON {
        if let json = try json { return json }
        throw RequestError(JSONSyntaxError(reason: .empty, offset: 0), of: self)
    }

    /// Its memory goes back to the parsers' pool, unless somebody has a view of it: it is many times the body's.
    func forgetJSON() { forgetReading() }
}

extension Reply {
    /// ``Response/json`` of the response.
    public var json: JSON? {
        get throws(RequestError) { try response.json }
    }
}

/// How a body becomes a value. The document is parsed once for the schema and the value, and is gone when the value is
/// made, unless that has views of it.
enum BodyDecoding {
    /// The value of a type that is known at run time only: a class cannot choose among the defaults of ``Request``.
    static func value<T: Sendable>(
        _ type: T.Type, from response: Response, by decoder: FerryJSONDecoder
    ) throws -> T {
        let value: (any Sendable)? =
            switch type {
            case is Response.Type: response
            case is Void.Type: ()
            case is Data.Type: response.body
            case is [UInt8].Type: response.bytes
            case is String.Type: response.text
            case is JSON.Type: try response.requireJSON()
            case let type as any (JSONConvertible & Sendable).Type: try convert(type, from: response)
            case let type as any (Decodable & Sendable).Type: try decode(type, from: response, by: decoder)
            default: nil
            }
        guard let value = value as? T else {
            throw RequestError(
                .decoding, message: "value(from:) has to be overridden for values of type \(type)", response: response)
        }
        return value
    }

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

// What a body is not, in words that hold none of its values.
extension RequestError {
    init(_ error: JSONSyntaxError, of response: Response) {
        self.init(.invalidJSON, message: error.description, cause: error, response: response)
    }

    init(_ error: DecodingError, of response: Response) {
        self.init(.decoding, message: Self.message(of: error), cause: error, response: response)
    }

    /// `code` is `schemaMismatch` or `decoding`.
    init(_ code: Code, _ error: JSONMismatch, of response: Response) {
        self.init(code, message: error.description, cause: error, response: response)
    }

    /// `$.items[3].id: expected Int`
    private static func message(of error: DecodingError) -> String {
        switch error {
        case .typeMismatch(let type, let context): "\(path(context)): expected \(type)"
        case .valueNotFound(let type, let context): "\(path(context)): expected \(type), found null"
        case .keyNotFound(let key, let context): "\(path(context)): no key \(key.stringValue)"
        case .dataCorrupted(let context): "\(path(context)): not a value of its type"
        @unknown default: "could not be decoded"
        }
    }

    private static func path(_ context: DecodingError.Context) -> String {
        context.codingPath.reduce(into: "$") { path, key in
            if let index = key.intValue { path += "[\(index)]" } else { path += ".\(key.stringValue)" }
        }
    }
}
