internal import CFerryJSON

/// The path from the root of a document to one of its values.
struct JSONPath {
    enum Step: Equatable {
        case key(String)
        case position(Int)
    }

    private(set) var steps: [Step] = []

    init() {}

    /// Creates the path to the value, or to the member key, at `index`.
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
    /// `$[3].question.id`; keys that are not plain names are in brackets and quotes.
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

/// Finds paths from the root of a document to its values, and keeps the last one for the next search.
///
/// A path is found by walking from member to member, so nothing has to be stored while decoding succeeds. Each search
/// continues from the last path. A large container that is visited again gets a list of its children, so searches in
/// any order take about as long as one walk.
struct WayDown {
    /// One container on the path, and its element or member key through which the path continues.
    struct Step {
        let container: Int
        let isObject: Bool
        fileprivate(set) var child: Int
        fileprivate(set) var position = 0

        /// The value in which the path continues.
        var value: Int { isObject ? child + 1 : child }
    }

    /// Smaller containers are walked again.
    private static let mostWalked = 32

    private var steps: [Step] = []
    /// The children of large containers: empty after the first visit, complete after the second. Those of the last
    /// visited container, usually the only one, are in an array, which is searched faster than a dictionary.
    private var children: [Int: [UInt32]] = [:]
    private var recent: [Visited] = []
    private static let mostRecent = 4

    private struct Visited {
        let container: Int
        let children: [UInt32]
        /// The child that was found last.
        var position = 0
    }

    /// The path to the value, or to the member key, at `target`.
    mutating func steps(to target: Int, in tape: ferry_json_tape) -> ArraySlice<Step> {
        // The target is on the last path; the steps after it stay for the next search.
        if let place = steps.firstIndex(where: { $0.container == target }) { return steps[..<place] }
        while let last = steps.last, target <= last.container || target >= ferry_json_close(tape, last.container) {
            steps.removeLast()
        }
        var value = steps.isEmpty ? 1 : goOn(to: target, in: tape)
        while value != target {
            let isObject = ferry_json_tag(tape, value) == JSONTag.object
            guard isObject || ferry_json_tag(tape, value) == JSONTag.array else { break }
            steps.append(Step(container: value, isObject: isObject, child: value + 1))
            value = goOn(to: target, in: tape)
        }
        return steps[...]
    }

    /// Moves the last step to the child that contains the target. Returns that child's value, or the target if it is
    /// the key.
    private mutating func goOn(to target: Int, in tape: ferry_json_tape) -> Int {
        var step = steps.removeLast()
        if ferry_json_count(tape, step.container) > Self.mostWalked {
            find(target, &step, in: tape)
        } else if target < step.child {
            step.child = step.container + 1
            step.position = 0
        }
        let end = ferry_json_close(tape, step.container)
        while step.child < end {
            let next = ferry_json_after(tape, step.value)
            if target < next {
                steps.append(step)
                return target == step.child ? target : step.value
            }
            step.child = next
            step.position += 1
        }
        return target
    }

    /// Moves the step to the child that contains the target; at the first visit it stays at the first child.
    private mutating func find(_ target: Int, _ step: inout Step, in tape: ferry_json_tape) {
        if let place = recent.firstIndex(where: { $0.container == step.container }) {
            return Self.find(target, &step, in: &recent[place])
        }
        guard let known = children[step.container] else {
            children[step.container] = []
            return
        }
        let list = known.isEmpty ? list(of: step, in: tape) : known
        if known.isEmpty { children[step.container] = list }
        if recent.count == Self.mostRecent { recent.removeFirst() }
        recent.append(Visited(container: step.container, children: list))
        Self.find(target, &step, in: &recent[recent.count - 1])
    }

    private static func find(_ target: Int, _ step: inout Step, in visited: inout Visited) {
        let list = visited.children
        var (low, high) = (0, list.count)
        // Most errors are found in the order of the document, so the last child is near.
        if Int(list[visited.position]) <= target {
            low = visited.position
            if low + 4 < high, target < Int(list[low + 4]) { high = low + 4 }
        }
        while high - low > 1 {
            let middle = (low + high) / 2
            if Int(list[middle]) <= target { low = middle } else { high = middle }
        }
        visited.position = low
        step.child = Int(list[low])
        step.position = low
    }

    private func list(of step: Step, in tape: ferry_json_tape) -> [UInt32] {
        var list: [UInt32] = []
        list.reserveCapacity(ferry_json_count(tape, step.container))
        var place = step.container + 1
        let end = ferry_json_close(tape, step.container)
        while place < end {
            list.append(UInt32(place))
            place = ferry_json_after(tape, step.isObject ? place + 1 : place)
        }
        return list
    }
}
