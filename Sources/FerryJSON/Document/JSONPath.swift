internal import CFerryJSON

/// The way from the root of a document to one of its values.
struct JSONPath {
    enum Step: Equatable {
        case key(String)
        case position(Int)
    }

    private(set) var steps: [Step] = []

    init() {}

    /// The way to the value, or to the key of a member, that stands at `index`.
    init(to index: Int, in tape: ferry_json_tape) {
        var way = WayDown()
        self.init(way.steps(to: index, in: tape), in: tape)
    }

    init(_ way: ArraySlice<WayDown.Step>, in tape: ferry_json_tape) {
        steps = way.map { $0.isObject ? .key(tape.string(at: $0.child)) : .position($0.position) }
    }

    mutating func append(_ step: Step) {
        steps.append(step)
    }
}

extension JSONPath: CustomStringConvertible {
    /// `$[3].question.id`; keys that are no plain names stand in brackets and quotes.
    var description: String {
        steps.reduce(into: "$") { text, step in
            switch step {
            case .position(let position): text += "[\(position)]"
            case .key(let key) where Self.isName(key): text += ".\(key)"
            case .key(let key): text += "[\(JSON(key).description)]"
            }
        }
    }

    private static func isName(_ key: String) -> Bool {
        guard let first = key.unicodeScalars.first, !("0"..."9").contains(first) else { return false }
        return key.unicodeScalars.allSatisfy { $0 == "_" || $0.properties.isAlphabetic || ("0"..."9").contains($0) }
    }
}
