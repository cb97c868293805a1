internal import CFerryJSON

/// The way from the root of a document to one of its values.
struct JSONPath {
    enum Step: Equatable {
        case key(String)
        case position(Int)
    }

    private(set) var steps: [Step] = []

    init() {}

    /// The way to the value, or to the key of a member, that stands at `index`. Found by going down from the root, so
    /// that nothing has to be kept for it while all goes well.
    init(to index: Int, in tape: ferry_json_tape) {
        var container = 1
        while container != index {
            let isObject = ferry_json_tag(tape, container) == JSONTag.object
            guard isObject || ferry_json_tag(tape, container) == JSONTag.array else { return }
            let end = ferry_json_close(tape, container)
            var key = container + 1
            var position = 0
            while key < end {
                let value = isObject ? key + 1 : key
                let next = ferry_json_after(tape, value)
                if index < next {
                    steps.append(isObject ? .key(tape.string(at: key)) : .position(position))
                    if index == key { return }
                    container = value
                    break
                }
                key = next
                position += 1
            }
            if key >= end { return }
        }
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
