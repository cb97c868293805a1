internal import CFerryJSON

extension JSONSchema {
    /// Checks a value; the error is the first thing in it that does not fit.
    public func check(_ json: JSON) throws(JSONMismatch) {
        if let mismatch = program.check(json.document.tape, at: json.index) { throw mismatch }
    }

    /// Checks a text of which no more is needed than that it fits. Throws `JSONSyntaxError` or `JSONMismatch`.
    ///
    /// Allocates nothing once the parser's pool is warm. `spare` says how many bytes behind the text may be read: with
    /// 64 or more it is not copied.
    public func check(parsing text: UnsafeRawBufferPointer, spare: Int) throws {
        let document = try JSON.parse(text, spare: spare)
        defer { ferry_json_release(document) }
        if let mismatch = program.check(ferry_json_tape_of(document), at: 1) { throw mismatch }
    }
}
