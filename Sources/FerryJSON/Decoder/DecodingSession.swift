internal import CFerryJSON

/// What all containers of one decoding share.
final class DecodingSession {
    let tape: ferry_json_tape
    let document: JSONDocument
    let options: FerryJSONDecoder
    let usesDefaultKeys: Bool
    let keyConverter: KeyConverter
    @exclusivity(unchecked) private var text: UnsafeRawBufferPointer?
    @exclusivity(unchecked) private var numbers = NumberPlaces()
    @exclusivity(unchecked) private var shelf = ContainerShelf()

    /// The keys of members that have an integer, by the indexes of their values.
    @exclusivity(unchecked) private var keys: [Int: any CodingKey] = [:]
    /// The objects that became dictionaries without a container, in the order in which they did.
    @exclusivity(unchecked) private var dictionaries: [UInt32] = []
    @exclusivity(unchecked) private var dictionarySet: Set<Int> = []
    @exclusivity(unchecked) private var way = WayDown()
    /// The last path that was asked for: who is refused one type at a value often tries another.
    @exclusivity(unchecked) private var lastPath: (index: Int, path: [any CodingKey]) = (0, [])
    /// Descriptions of errors, by the type that was expected and the tag that was found.
    @exclusivity(unchecked) private var messages: [MessageKey: String] = [:]

    /// Where the document itself stands, for one that stands for an absent member.
    private let basePath: [any CodingKey]

    init(
        _ json: JSON, options: FerryJSONDecoder, text: UnsafeRawBufferPointer?, basePath: [any CodingKey] = []
    ) {
        self.basePath = basePath
        document = json.document
        tape = json.document.tape
        self.options = options
        self.text = text
        usesDefaultKeys = if case .useDefaultKeys = options.keyDecodingStrategy { true } else { false }
        keyConverter = KeyConverter(options.keyDecodingStrategy)
    }

    deinit { shelf.deallocate() }

    /// The text is only there while `decode` runs; a decoder may have been kept for longer.
    func end() {
        text = nil
        shelf.close()
    }

    /// A decoder that finds null.
    static func decoderOfNull(at path: [any CodingKey], options: FerryJSONDecoder) -> any Decoder {
        let session = DecodingSession(.null, options: options, text: nil, basePath: path)
        session.end()
        return TapeDecoder(session: session, index: JSON.null.index)
    }

    /// The members of the object at `index`.
    @inline(__always)
    func container<Key: CodingKey>(keyedBy type: Key.Type, at index: Int) throws -> KeyedDecodingContainer<Key> {
        guard ferry_json_tag(tape, index) == JSONTag.object else { throw mismatch([String: Any].self, at: index) }
        if let giver = shelf.giver(for: type, at: index) {
            return unsafeDowncast(giver, to: ContainerGiver<KeyedDecodingContainer<Key>>.self).container()
        }
        return shelf.make(self, at: index)
    }

    func view(at index: Int) -> JSON { JSON(document: document, index: index) }

    // MARK: Paths

    /// Keeps a key that the document does not say all of.
    func note(_ key: some CodingKey, at index: Int) {
        guard key.intValue != nil else { return }
        keys[index] = key
        lastPath = (0, [])
    }

    /// Keeps that an object is a dictionary, whose keys are data, which coding paths say as they stand.
    @inline(__always)
    func noteDictionary(at index: Int) { dictionaries.append(UInt32(truncatingIfNeeded: index)) }

    private func isDictionary(_ index: Int) -> Bool {
        if dictionarySet.count < dictionaries.count {
            dictionarySet.formUnion(dictionaries.lazy.map(Int.init))
            dictionaries = []
        }
        return dictionarySet.contains(index)
    }

    /// The way to a value, in the keys that it was decoded by.
    func codingPath(to index: Int) -> [any CodingKey] {
        if lastPath.index == index && index != 0 { return lastPath.path }
        let steps = way.steps(to: index, in: tape)
        var path = basePath
        path.reserveCapacity(path.count + steps.count)
        for step in steps { path.append(key(of: step, in: &path)) }
        lastPath = (index, path)
        return path
    }

    private func key(of step: WayDown.Step, in path: inout [any CodingKey]) -> any CodingKey {
        guard step.isObject else { return PathKey(position: step.position) }
        if let key = keys[step.value] { return key }
        let name = tape.string(at: step.child)
        // Foundation knows integers only where it goes through a container, which it does where no key is converted.
        if isDictionary(step.container) { return usesDefaultKeys ? PathKey(member: name) : PathKey(stringValue: name) }
        return PathKey(stringValue: usesDefaultKeys ? name : keyConverter.convert(name, path: &path))
    }

    /// The way to a value, in the keys of the document.
    func documentPath(to index: Int) -> JSONPath {
        JSONPath(way.steps(to: index, in: tape), in: tape)
    }

    // MARK: Descriptions

    private struct MessageKey: Hashable {
        let type: ObjectIdentifier
        let tag: UInt8
    }

    /// `expected T, found KIND`, made once for each: to find out a type's name takes longer than to decode a value.
    func message(_ type: Any.Type, at index: Int) -> String {
        let key = MessageKey(type: ObjectIdentifier(type), tag: ferry_json_tag(tape, index))
        if let message = messages[key] { return message }
        let message = "expected \(type), found \(view(at: index).kind)"
        messages[key] = message
        return message
    }

    // MARK: Numbers as they were written

    /// The digits of the number at `index`, when the document's text is at hand.
    func numberText(at index: Int) -> UnsafeBufferPointer<UInt8>? {
        guard let text, let parsed = document.parsed else { return nil }
        return numbers.digits(of: index, in: parsed, text)
    }
}
