internal import CFerryJSON

/// What all containers of one decoding share.
final class DecodingSession {
    let tape: ferry_json_tape
    let document: JSONDocument
    let options: FerryJSONDecoder
    let usesDefaultKeys: Bool
    /// The keys of members that have not the name, or not only the name, that stands in the document.
    private var keys: [Int: any CodingKey] = [:]
    private var plainTables: [Int: MemberTable] = [:]
    private var convertedTables: [Int: MemberTable] = [:]
    private var way = WayDown()
    private var text: UnsafeRawBufferPointer?
    private var cursor = ferry_json_cursor()
    private let shelf = ContainerShelf()

    init(_ json: JSON, options: FerryJSONDecoder, text: UnsafeRawBufferPointer?) {
        document = json.document
        tape = json.document.tape
        self.options = options
        self.text = text
        usesDefaultKeys = if case .useDefaultKeys = options.keyDecodingStrategy { true } else { false }
    }

    deinit { shelf.deallocate() }

    /// The text is only there while `decode` runs; a decoder may have been kept for longer.
    func end() {
        text = nil
        shelf.close()
    }

    /// The members of the object at `index`.
    func container<Key: CodingKey>(
        keyedBy type: Key.Type, at index: Int, keepsKeys: Bool
    ) throws -> KeyedDecodingContainer<Key> {
        guard ferry_json_tag(tape, index) == JSONTag.object else { throw mismatch([String: Any].self, at: index) }
        let object = ObjectPlace(index, keepsKeys: keepsKeys, in: self)
        if let giver = shelf.giver(for: ObjectIdentifier(type), at: object) {
            return unsafeDowncast(giver, to: ContainerGiver<KeyedDecodingContainer<Key>>.self).container()
        }
        return shelf.make(self, object)
    }

    func view(at index: Int) -> JSON { JSON(document: document, index: index) }

    /// The members of a wide object, or under names of their own, ready to be looked up.
    func table(of object: Int, keepingKeys: Bool) -> MemberTable {
        // One object may be asked for both ways: as a type, and as a dictionary of all that stands in it.
        let convertsKeys = !usesDefaultKeys && !keepingKeys
        if let table = convertsKeys ? convertedTables[object] : plainTables[object] { return table }
        let table = MemberTable(of: object, in: self, convertingKeys: convertsKeys)
        if convertsKeys { convertedTables[object] = table } else { plainTables[object] = table }
        return table
    }

    // MARK: Paths

    /// Keeps the key for a coding path if the document's own does not say all of it.
    @inline(__always)
    func note(_ key: some CodingKey, at index: Int) {
        if !usesDefaultKeys || key.intValue != nil { keys[index] = key }
    }

    /// The way to a value, in the keys that it was decoded by.
    func codingPath(to index: Int) -> [any CodingKey] {
        way.steps(to: index, in: tape).map { step in
            guard step.isObject else { return PathKey(position: step.position) }
            return keys[step.value] ?? PathKey(stringValue: tape.string(at: step.child))
        }
    }

    /// The way to a value, in the keys of the document.
    func documentPath(to index: Int) -> JSONPath {
        JSONPath(way.steps(to: index, in: tape), in: tape)
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
