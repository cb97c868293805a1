internal import CFerryJSON

extension JSON: Hashable {
    /// Numbers are equal by their value (`1` and `1.0`), strings by their Unicode scalars, objects in any order of
    /// their members.
    public static func == (a: JSON, b: JSON) -> Bool {
        ferry_json_equal(a.document.tape, a.index, b.document.tape, b.index)
    }

    /// Equal values have one hash.
    public func hash(into hasher: inout Hasher) {
        let tape = document.tape
        switch ferry_json_tag(tape, index) {
        case JSONTag.string: hasher.combine(bytes: UnsafeRawBufferPointer(tape.utf8(at: index)))
        case JSONTag.signed, JSONTag.unsigned, JSONTag.double: hashNumber(into: &hasher)
        case JSONTag.array:
            hasher.combine(count)
            for element in JSONArray(document: document, index: index) { element.hashScalar(into: &hasher) }
        case JSONTag.object:
            // Of the members only the keys, in any order; equal objects have as many different ones.
            hasher.combine(Set(JSONObject(document: document, index: index).keys))
        case let tag: hasher.combine(tag)
        }
    }

    /// Of an array or object within an array only what it is: so deep values need no stack.
    private func hashScalar(into hasher: inout Hasher) {
        switch ferry_json_tag(document.tape, index) {
        case JSONTag.array, JSONTag.object: hasher.combine(ferry_json_tag(document.tape, index))
        default: hash(into: &hasher)
        }
    }

    private var count: Int { ferry_json_count(document.tape, index) }

    private func hashNumber(into hasher: inout Hasher) {
        let tape = document.tape
        if let signed = tape.integer(at: index, as: Int64.self) { return hasher.combine(signed) }
        if let unsigned = tape.integer(at: index, as: UInt64.self) { return hasher.combine(unsigned) }
        let double = ferry_json_double(tape, index)
        // A large double is equal to the integer that it is, whatever was written.
        if let signed = Int64(exactly: double) {
            hasher.combine(signed)
        } else if let unsigned = UInt64(exactly: double) {
            hasher.combine(unsigned)
        } else {
            hasher.combine(double)
        }
    }
}

extension JSON {
    /// The order of two numbers by their value: negative, 0 or positive.
    func compared(to other: JSON) -> Int {
        Int(ferry_json_compare_numbers(document.tape, index, other.document.tape, other.index))
    }
}
