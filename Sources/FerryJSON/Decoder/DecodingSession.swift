internal import CFerryJSON

/// What all containers of one decoding share.
final class DecodingSession {
    let tape: ferry_json_tape
    let document: JSONDocument
    let options: FerryJSONDecoder
    let usesDefaultKeys: Bool
    /// The keys of members that have not the name, or not only the name, that stands in the document.
    private var keys: [Int: any CodingKey] = [:]
    private var tables: [Int: MemberTable] = [:]
    private var text: UnsafeRawBufferPointer?
    private var cursor = ferry_json_cursor()

    init(_ json: JSON, options: FerryJSONDecoder, text: UnsafeRawBufferPointer?) {
        document = json.document
        tape = json.document.tape
        self.options = options
        self.text = text
        usesDefaultKeys = if case .useDefaultKeys = options.keyDecodingStrategy { true } else { false }
    }

    /// The text is only there while `decode` runs; a decoder may have been kept for longer.
    func forgetText() {
        text = nil
    }

    func view(at index: Int) -> JSON { JSON(document: document, index: index) }

    /// The members of a wide object, or under names of their own, ready to be looked up.
    func table(of object: Int, keepingKeys: Bool) -> MemberTable {
        if let table = tables[object] { return table }
        let table = MemberTable(of: object, in: self, keepingKeys: keepingKeys)
        tables[object] = table
        return table
    }

    // MARK: Paths

    /// Keeps the key for a coding path if the document's own does not say all of it.
    @inline(__always)
    func note(_ key: some CodingKey, at index: Int) {
        if !usesDefaultKeys || key.intValue != nil { keys[index] = key }
    }

    /// The way to a value, found by going down from the root: nothing is kept for it while all goes well.
    func codingPath(to index: Int) -> [any CodingKey] {
        var path: [any CodingKey] = []
        var container = 1
        for step in JSONPath(to: index, in: tape).steps {
            switch step {
            case .position(let position):
                container = ferry_json_element(tape, container, position)
                path.append(PathKey(position: position))
            case .key(let key):
                container = memberHolding(index, in: container)
                path.append(keys[container] ?? PathKey(stringValue: key))
            }
        }
        return path
    }

    private func memberHolding(_ index: Int, in object: Int) -> Int {
        var value = object + 2
        while ferry_json_after(tape, value) <= index { value = ferry_json_after(tape, value) + 1 }
        return value
    }

    // MARK: Numbers as they were written

    /// The text of the number at `index`, when the document's text is at hand.
    func numberText(at index: Int) -> String? {
        guard let text, let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self), let parsed = document.parsed
        else { return nil }
        let mark = text.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
        let offset = ferry_json_offset(parsed, start + mark, index, &cursor)
        guard offset != Int(bitPattern: UInt.max) else { return nil }
        let bytes = text[(mark + offset)...].prefix { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "e"), UInt8(ascii: "E"):
                true
            default: false
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
