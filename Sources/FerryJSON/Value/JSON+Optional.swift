internal import CFerryJSON

// What a value is, or nil when it is something else. The throwing forms are `value(as:)` and its kin.
extension JSON {
    /// Whether the value is null.
    public var isNull: Bool { ferry_json_tag(document.tape, index) == JSONTag.null }

    /// True or false, or nil for anything else.
    public var bool: Bool? {
        switch ferry_json_tag(document.tape, index) {
        case JSONTag.yes: true
        case JSONTag.no: false
        default: nil
        }
    }

    /// The number, if it is an integer that fits; `1.0` and `1e2` are integers. From 2^53 on one that is written with a
    /// fraction or an exponent is nil: it may have been rounded.
    public var int: Int? { document.tape.integer(at: index) }

    /// The number, if it is an integer that fits and is not negative, as with `int`.
    public var uint: UInt? { document.tape.integer(at: index) }

    /// The number. An integer beyond 2^53 becomes the nearest double; ask for `int` or `uint` where that matters.
    public var double: Double? { document.tape.number(at: index) }

    /// A string, or nil for anything else.
    public var string: String? {
        ferry_json_tag(document.tape, index) == JSONTag.string ? document.tape.string(at: index) : nil
    }

    /// The elements of an array, or nil for anything else.
    public var array: JSONArray? {
        ferry_json_tag(document.tape, index) == JSONTag.array ? JSONArray(document: document, index: index) : nil
    }

    /// The members of an object, or nil for anything else.
    public var object: JSONObject? {
        ferry_json_tag(document.tape, index) == JSONTag.object ? JSONObject(document: document, index: index) : nil
    }

    /// The member of an object; nil when there is none, or this is no object. Takes time in the number of members.
    public subscript(key: String) -> JSON? {
        let tape = document.tape
        guard ferry_json_tag(tape, index) == JSONTag.object else { return nil }
        let found = tape.find(key, in: index)
        return found == 0 ? nil : JSON(document: document, index: found)
    }

    /// The element of an array; nil when there is none, or this is no array. Takes time in the position: to go through
    /// all, iterate over `array`.
    public subscript(position: Int) -> JSON? {
        let tape = document.tape
        guard position >= 0, ferry_json_tag(tape, index) == JSONTag.array else { return nil }
        let found = ferry_json_element(tape, index, position)
        return found == 0 ? nil : JSON(document: document, index: found)
    }
}
