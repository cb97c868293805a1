import FoundationEssentials

/// The one place where a body becomes a `Decodable` value.
enum BodyDecoding {
    static func decode<T: Decodable>(_ type: T.Type, from response: Response) throws -> T {
        try JSONDecoder().decode(type, from: response.body)
    }

    /// `$.items[3].id: expected Int`, without a byte of what stood there.
    static func message(of error: DecodingError) -> String {
        switch error {
        case .typeMismatch(let type, let context): "\(path(context)): expected \(type)"
        case .valueNotFound(let type, let context): "\(path(context)): expected \(type), found null"
        case .keyNotFound(let key, let context): "\(path(context)): no key \(key.stringValue)"
        case .dataCorrupted(let context):
            context.codingPath.isEmpty ? "not JSON" : "\(path(context)): not a value of its type"
        @unknown default: "could not be decoded"
        }
    }

    private static func path(_ context: DecodingError.Context) -> String {
        context.codingPath.reduce(into: "$") { path, key in
            if let index = key.intValue { path += "[\(index)]" } else { path += ".\(key.stringValue)" }
        }
    }
}
