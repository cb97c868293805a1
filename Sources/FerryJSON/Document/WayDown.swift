internal import CFerryJSON

/// The way from the root of a document down to one of its values, kept for the next one that is asked for.
///
/// Found by going from member to member, so that nothing has to be kept for it while all goes well. Where many ways are
/// asked for, one after the other, each goes on where the last one ended: in all they take the time of one walk.
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

    private var steps: [Step] = []

    /// The way to the value, or to the key of a member, that stands at `target`.
    mutating func steps(to target: Int, in tape: ferry_json_tape) -> ArraySlice<Step> {
        // What lies on the last way: the steps behind it are for what comes next.
        if let place = steps.firstIndex(where: { $0.container == target }) { return steps[..<place] }
        while let last = steps.last, target < last.child || target >= ferry_json_close(tape, last.container) {
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
}
