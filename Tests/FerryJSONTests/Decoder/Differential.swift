import FerryJSON
import Foundation

/// The result of a decoder for a document: a value, or an error with its kind, type and coding path.
enum Outcome<T: Equatable>: Equatable, CustomStringConvertible {
    case value(T)
    case error(String)

    init(_ body: () throws -> T) {
        do {
            self = .value(try body())
        } catch {
            self = .error(Self.text(of: error))
        }
    }

    var description: String {
        switch self {
        case .value(let value): "\(value)"
        case .error(let text): text
        }
    }

    private static func text(of error: any Error) -> String {
        switch error {
        case DecodingError.typeMismatch(let type, let context): "typeMismatch \(type) \(path(context))"
        case DecodingError.valueNotFound(let type, let context): "valueNotFound \(type) \(path(context))"
        case DecodingError.keyNotFound(let key, let context): "keyNotFound \(key.stringValue) \(path(context))"
        case DecodingError.dataCorrupted(let context): "dataCorrupted \(path(context))"
        case EncodingError.invalidValue(let value, let context):
            "invalidValue \(type(of: value)) \(path(context.codingPath))"
        default: "\(error)"
        }
    }

    private static func path(_ context: DecodingError.Context) -> [String] { path(context.codingPath) }

    private static func path(_ path: [any CodingKey]) -> [String] {
        path.map { "\($0.stringValue)/\($0.intValue.map(String.init) ?? "-")" }
    }
}

/// The strategies of both decoders, side by side.
struct Strategies: Sendable {
    var foundation: @Sendable (JSONDecoder) -> Void = { _ in }
    var ferry: @Sendable (inout FerryJSONDecoder) -> Void = { _ in }

    func outcomes<T: Decodable & Equatable>(_ type: T.Type, _ text: String) -> (
        foundation: Outcome<T>, ferry: Outcome<T>
    ) {
        let theirs = JSONDecoder()
        foundation(theirs)
        var ours = FerryJSONDecoder()
        ferry(&ours)
        let data = Data(text.utf8)
        return (Outcome { try theirs.decode(type, from: data) }, Outcome { try ours.decode(type, from: data) })
    }
}

extension JSON {
    /// The value with each of its parts, in turn, replaced or removed.
    var variations: [JSON] {
        let others: [JSON] = [.null, true, 1, -1, 1.5, 300, 1e30, "x", "", [], [1], ["x"], [:], ["x": 1]]
        var results = others
        if let object {
            let members = Array(object)
            for place in members.indices {
                for value in members[place].value.variations {
                    var changed = members
                    changed[place].value = value
                    results.append(JSON(members: changed.map { ($0.key, $0.value) }))
                }
                var fewer = members
                fewer.remove(at: place)
                results.append(JSON(members: fewer.map { ($0.key, $0.value) }))
            }
        } else if let array {
            let elements = Array(array)
            for place in elements.indices {
                for value in elements[place].variations {
                    var changed = elements
                    changed[place] = value
                    results.append(JSON(changed))
                }
            }
        }
        return results
    }
}
