public import FerryJSON
import FerryTransport
import FoundationEssentials

extension Response {
    /// The body as JSON; `nil` if it is empty. Any other body throws `invalidJSON` with the position of the mistake.
    ///
    /// It is parsed without a copy at the first use, and shared by all copies of the response until the last one is
    /// released. Views keep the parsed document alive; use `detached()` for a view that you keep for long.
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

    /// Checks the body against a schema. Use it for a schema that the request cannot name in advance, like one that
    /// depends on the status. Throws `schemaMismatch` with the position, or `invalidJSON`, also for an empty body. A
    /// body that has passed is not checked again with the same schema, so a hit in the memory of a cache costs no
    /// parsing.
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

    /// The core allocates this many bytes after every body.
    static let spareBytes = 64

    /// The body as JSON. An empty body is `invalidJSON`, too.
    func requireJSON() throws(RequestError) -> JSON {
        if let json = try json { return json }
        throw RequestError(JSONSyntaxError(reason: .empty, offset: 0), of: self)
    }

    /// Returns the memory of the parsed document to the pool, unless a view exists: it is several times that of the
    /// body.
    func forgetJSON() { forgetReading() }
}

extension Reply {
    /// The ``Response/json`` of the response.
    public var json: JSON? {
        get throws(RequestError) { try response.json }
    }
}

/// Creates values from bodies. The document is parsed once for schema and value, and is released when the value has
/// been created, unless the value has views of it.
enum BodyDecoding {
    /// Creates a value of a type that is known at run time only: a class cannot choose among the defaults of
    /// ``Request``.
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

// Error messages that contain no values of the body.
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
