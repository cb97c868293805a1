internal import FerryJSON
internal import Foundation

/// A way to read the text of a document.
enum JSONRival: String, CaseIterable, Codable {
    case foundation = "JSONDecoder"
    case parse = "parsed"
    case schema = "schema checked"
    case convertible = "JSONConvertible"
    case codable = "FerryJSONDecoder"

    /// How many times faster than JSONDecoder it should be.
    var goal: Double? {
        switch self {
        case .foundation, .parse: nil
        case .schema: 25
        case .convertible: 15
        case .codable: 5
        }
    }

    func run(_ text: UnsafeRawBufferPointer, _ data: Data) throws {
        let spare = JSONSample.spare
        switch self {
        case .foundation: _ = try JSONDecoder().decode([Question].self, from: data)
        case .parse: _ = try JSON(parsing: text, spare: spare)
        case .schema: try Question.schema.check(parsing: text, spare: spare)
        case .convertible: _ = try JSON(parsing: text, spare: spare).value(as: [Question].self)
        case .codable: _ = try FerryJSONDecoder().decode([Question].self, from: text, spare: spare)
        }
    }
}
