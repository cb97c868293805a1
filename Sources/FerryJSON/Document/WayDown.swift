internal import CFerryJSON

/// The way from the root of a document down to one of its values, kept for the next one that is asked for.
///
/// Found by going from member to member, so that nothing has to be kept for it while all goes well. Where many ways are
/// asked for, each goes on where the last one ended. A large container that is visited again gets a list of its
/// children, so that ways in any order take about the time of one walk.
struct WayDown {
    /// One container on the way, and the element or the key of the member through which the way goes on.
    struct Step {
        let container: Int
        let isObject: Bool
        fileprivate(set) var child: Int
        fileprivate(set) var position = 0

        /// The value that the way goes on with.
        var value: Int { isObject ? child + 1 : child }
    }

    /// Smaller containers are gone through again.
    private static let mostWalked = 32

    private var steps: [Step] = []
    /// The children of large containers: none at the first time, all from the second on.
    private var children: [Int: [UInt32]] = [:]

    /// The way to the value, or to the key of a member, that stands at `target`.
    mutating func steps(to target: Int, in tape: ferry_json_tape) -> ArraySlice<Step> {
        // What lies on the last way: the steps behind it are for what comes next.
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

    /// Moves the last step on to the child that holds the target; gives that child's value, or the target if it is the
    /// key.
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

    /// Moves the step to the child that holds the target, or leaves it at the first child the first time.
    private mutating func find(_ target: Int, _ step: inout Step, in tape: ferry_json_tape) {
        guard let known = children[step.container] else {
            children[step.container] = []
            return
        }
        if known.isEmpty { children[step.container] = list(of: step, in: tape) }
        let list = children[step.container] ?? []
        var (low, high) = (0, list.count)
        while high - low > 1 {
            let middle = (low + high) / 2
            if Int(list[middle]) <= target { low = middle } else { high = middle }
        }
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
