internal import Ferry
internal import Foundation

/// GETs of JSON, from validating the document to making values from it.
extension FerryRivals {
    /// Validated, and left as JSON.
    static func schema(_ load: Load) async throws -> Measurement {
        await measure(load, CheckedQuestions(path: load.path)) { _ in nil }
    }

    /// Validated, and made into structs by hand.
    static func convertible(_ load: Load) async throws -> Measurement {
        await measure(load, ConvertedQuestions(path: load.path)) { _ in nil }
    }

    /// Validated, and made into structs by `Codable`.
    static func codable(_ load: Load) async throws -> Measurement {
        await measure(load, DecodedQuestions<[Question]>(path: load.path)) { _ in nil }
    }

    /// Made into structs by Foundation's decoder.
    static func foundation(_ load: Load) async throws -> Measurement {
        await measure(load, FoundationQuestions(path: load.path)) { _ in nil }
    }
}

private struct CheckedQuestions: Request {
    let path: String
    var jsonSchema: JSONSchema? { Question.schema }
}

private struct ConvertedQuestions: Request {
    typealias Value = [Question]
    let path: String
    var jsonSchema: JSONSchema? { Question.schema }
}

/// Generic, so that of its two ways to make a value only one is used.
private struct DecodedQuestions<Value: Decodable & Sendable>: Request {
    let path: String
    var jsonSchema: JSONSchema? { Question.schema }
}

private struct FoundationQuestions: Request {
    let path: String
    func value(from response: Response) throws -> [Question] {
        try JSONDecoder().decode([Question].self, from: response.body)
    }
}
