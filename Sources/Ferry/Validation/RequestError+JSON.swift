import FerryJSON

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
