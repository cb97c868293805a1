internal import CFerryJSON

/// The state that all containers of one decoding share.
final class DecodingSession {
    let tape: ferry_json_tape
    let document: JSONDocument
    let options: FerryJSONDecoder
    let usesDefaultKeys: Bool
    let keyConverter: KeyConverter
    @exclusivity(unchecked) private var text: UnsafeRawBufferPointer?
    @exclusivity(unchecked) private var numbers = NumberPlaces()
    @exclusivity(unchecked) private var shelf = ContainerShelf()

    /// The keys of members with an integer value, by the indexes of their values.
    @exclusivity(unchecked) private var keys: [Int: any CodingKey] = [:]
    /// The indexes of objects that became dictionaries without a container, in the order of decoding.
    @exclusivity(unchecked) private var dictionaries: [UInt32] = []
    @exclusivity(unchecked) private var dictionarySet: Set<Int> = []
    /// The last places of all keys, by the indexes of the objects of which a value that does not count was not decoded.
    @exclusivity(unchecked) private var lastKeys: [Int: [String: Int]] = [:]
    @exclusivity(unchecked) private var way = WayDown()
    /// The last requested path: code that fails to decode a value as one type often tries another.
    @exclusivity(unchecked) private var lastPath: (index: Int, path: [any CodingKey]) = (0, [])
    /// Descriptions of errors, by the expected type and the found tag.
    @exclusivity(unchecked) private var messages: [MessageKey: String] = [:]
    @exclusivity(unchecked) private var lastMessage: (key: MessageKey, text: String)?

    /// The path of the document itself, if it stands for an absent member.
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

    /// Ends the decoding: the text exists only while `decode` runs, but a type may have kept a decoder.
    func end() {
        text = nil
        shelf.close()
    }

    /// A decoder whose value is null.
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

    /// Remembers a key that the document alone does not determine.
    func note(_ key: some CodingKey, at index: Int) {
        guard key.intValue != nil else { return }
        keys[index] = key
        lastPath = (0, [])
    }

    /// Remembers that an object is a dictionary: its keys are data and appear in coding paths unchanged.
    @inline(__always)
    func noteDictionary(at index: Int) { dictionaries.append(UInt32(truncatingIfNeeded: index)) }

    /// Whether a later member of the object has the same key as the one at `key`, whose value therefore does not count
    /// and need not have the type. Asked only after an error.
    @inline(never)
    func isShadowed(_ key: Int, in object: Int) -> Bool {
        let name = tape.string(at: key)
        // All keys at once, as there may be many errors in one object.
        if let last = lastKeys[object]?[name] { return last != key }
        let end = ferry_json_close(tape, object)
        let bytes = tape.utf8(at: key)
        // Beyond ASCII, two spellings may be the same key.
        let isPlain = bytes.allSatisfy { $0 < 0x80 }
        func isSame(_ other: Int) -> Bool {
            isPlain ? bytes.elementsEqual(tape.utf8(at: other)) : name == tape.string(at: other)
        }
        var other = ferry_json_after(tape, key + 1)
        while other < end, !isSame(other) { other = ferry_json_after(tape, other + 1) }
        if other >= end { return false }
        var last: [String: Int] = [:]
        other = object + 1
        while other < end {
            last[tape.string(at: other)] = other
            other = ferry_json_after(tape, other + 1)
        }
        lastKeys[object] = last
        return true
    }

    private func isDictionary(_ index: Int) -> Bool {
        if dictionarySet.count < dictionaries.count {
            dictionarySet.formUnion(dictionaries.lazy.map(Int.init))
            dictionaries = []
        }
        return dictionarySet.contains(index)
    }

    /// The path to a value, with the keys that it was decoded by.
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
        // Foundation uses integers only if it decodes with a container, which it does if no key is converted.
        if isDictionary(step.container) { return usesDefaultKeys ? PathKey(member: name) : PathKey(stringValue: name) }
        return PathKey(stringValue: usesDefaultKeys ? name : keyConverter.convert(name, path: &path))
    }

    /// The path to a value, with the keys of the document.
    func documentPath(to index: Int) -> JSONPath {
        JSONPath(way.steps(to: index, in: tape), in: tape)
    }

    // MARK: Descriptions

    private struct MessageKey: Hashable {
        let type: ObjectIdentifier
        let tag: UInt8
    }

    /// The text `expected T, found KIND`, made once per combination, because getting the name of a type takes longer
    /// than decoding a value.
    func message(_ type: Any.Type, at index: Int) -> String {
        let key = MessageKey(type: ObjectIdentifier(type), tag: ferry_json_tag(tape, index))
        if let lastMessage, lastMessage.key == key { return lastMessage.text }
        if let message = messages[key] {
            lastMessage = (key, message)
            return message
        }
        let message = "expected \(type), found \(view(at: index).kind)"
        messages[key] = message
        return message
    }

    // MARK: Numbers as they were written

    /// The digits of the number at `index`, if the document's text is available.
    func numberText(at index: Int) -> UnsafeBufferPointer<UInt8>? {
        guard let text, let parsed = document.parsed else { return nil }
        return numbers.digits(of: index, in: parsed, text)
    }
}

extension DecodingSession {
    @inline(__always)
    func isNull(at index: Int) -> Bool { ferry_json_tag(tape, index) == JSONTag.null }

    @inline(__always)
    func bool(at index: Int) throws -> Bool {
        switch ferry_json_tag(tape, index) {
        case JSONTag.yes: true
        case JSONTag.no: false
        // For null Foundation also throws this error, unlike for all other types.
        case JSONTag.null: throw wrongKind(Bool.self, at: index)
        default: throw mismatch(Bool.self, at: index)
        }
    }

    @inline(__always)
    func string(at index: Int) throws -> String {
        guard ferry_json_tag(tape, index) == JSONTag.string else { throw mismatch(String.self, at: index) }
        return tape.string(at: index)
    }

    @inline(__always)
    func integer<T: FixedWidthInteger>(at index: Int, as type: T.Type = T.self) throws -> T {
        guard let value = tape.integer(at: index, as: type) else { return try largeInteger(at: index) }
        return value
    }

    /// A number with a fraction or an exponent is read again from its digits, because its double may differ.
    @inline(never)
    private func largeInteger<T: FixedWidthInteger>(at index: Int, as type: T.Type = T.self) throws -> T {
        guard ferry_json_tag(tape, index) == JSONTag.double, ferry_json_double(tape, index).magnitude >= 0x1p53,
            let text = numberText(at: index),
            let value: T = JSONNumberText(String(decoding: text, as: UTF8.self)).integer()
        else { throw mismatch(type, at: index) }
        return value
    }

    @inline(__always)
    func double(at index: Int) throws -> Double {
        try tape.number(at: index) ?? nonConforming(Double.self, at: index)
    }

    func float(at index: Int) throws -> Float {
        guard let number = tape.number(at: index) else { return try nonConforming(Float.self, at: index) }
        let float = Float(number)
        guard float.isFinite else { throw mismatch(Float.self, at: index) }
        return float
    }

    /// Decodes numbers that JSON cannot represent, from strings.
    private func nonConforming<T: BinaryFloatingPoint>(_ type: T.Type, at index: Int) throws -> T {
        if case .convertFromString(let positive, let negative, let nan) = options.nonConformingFloatDecodingStrategy,
            ferry_json_tag(tape, index) == JSONTag.string
        {
            switch tape.string(at: index) {
            case positive: return .infinity
            case negative: return -.infinity
            case nan: return .nan
            default: break
            }
        }
        throw mismatch(type, at: index)
    }

    /// The error for a value of another kind. If the type cannot hold a number, the path is empty, as in Foundation;
    /// the description has the place.
    @inline(never)
    func mismatch<T>(_ type: T.Type, at index: Int) -> DecodingError {
        if isNull(at: index) {
            let message = message(type, at: index)
            return .valueNotFound(type, .init(codingPath: codingPath(to: index), debugDescription: message))
        }
        if view(at: index).kind == .number, T.self is any Numeric.Type {
            let place = documentPath(to: index)
            return .dataCorrupted(.init(codingPath: [], debugDescription: "\(place): number does not fit \(T.self)"))
        }
        return wrongKind(type, at: index)
    }

    @inline(never)
    private func wrongKind<T>(_ type: T.Type, at index: Int) -> DecodingError {
        .typeMismatch(type, .init(codingPath: codingPath(to: index), debugDescription: message(type, at: index)))
    }

    func notFound<T>(_ type: T.Type, _ message: String, _ path: [any CodingKey]) -> DecodingError {
        .valueNotFound(type, .init(codingPath: path, debugDescription: "expected \(T.self), \(message)"))
    }

    func corrupted(_ message: String, _ path: [any CodingKey], _ error: (any Error)? = nil) -> DecodingError {
        .dataCorrupted(.init(codingPath: path, debugDescription: message, underlyingError: error))
    }
}
