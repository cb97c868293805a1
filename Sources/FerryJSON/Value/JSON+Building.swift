internal import CFerryJSON

// Builds values, for example for request bodies. They may contain views of other documents.
extension JSON {
    /// The value null.
    public static let null = JSON { $0.appendNull() }

    /// Creates a boolean.
    public init(_ value: Bool) { self = value ? Self.yes : Self.no }
    /// Creates an integer.
    public init(_ value: Int) { self.init { $0.append(Int64(value)) } }
    /// Creates an integer.
    public init(_ value: Int64) { self.init { $0.append(value) } }
    /// Creates an integer.
    public init(_ value: UInt) { self.init { $0.append(UInt64(value)) } }
    /// Creates an integer.
    public init(_ value: UInt64) { self.init { $0.append(value) } }
    /// Creates a string.
    public init(_ value: String) { self.init { $0.append(value) } }

    /// Creates a number. JSON has no infinity and no NaN: they become null.
    public init(_ value: Double) { self.init { value.isFinite ? $0.append(value) : $0.appendNull() } }

    /// Creates an array of values.
    public init(_ elements: some Sequence<JSON>) {
        self.init { tape in
            tape.openArray()
            for element in elements { tape.append(element) }
            tape.close()
        }
    }

    /// Creates an object whose members have the order of the sequence.
    public init(members: some Sequence<(String, JSON)>) {
        self.init { tape in
            tape.openObject()
            for (key, value) in members {
                tape.append(key: key)
                tape.append(value)
            }
            tape.close()
        }
    }

    /// Creates an object whose members are sorted by key.
    public init(_ members: [String: JSON]) {
        self.init(members: members.sorted { $0.key < $1.key }.lazy.map { ($0.key, $0.value) })
    }

    private static let yes = JSON { $0.append(true) }
    private static let no = JSON { $0.append(false) }

    private init(_ write: (inout TapeBuilder) -> Void) {
        var tape = TapeBuilder()
        write(&tape)
        self.init(document: tape.finish(), index: 1)
    }
}

// Not `nil`: for a `JSON?` it would be ambiguous between the value null and no value.
extension JSON: ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// `true` and `false`.
    public init(booleanLiteral value: Bool) { self.init(value) }
    /// An integer that `Int` can hold.
    public init(integerLiteral value: Int) { self.init(value) }
    /// A number with a fraction.
    public init(floatLiteral value: Double) { self.init(value) }
    /// A string.
    public init(stringLiteral value: String) { self.init(value) }
    /// An array.
    public init(arrayLiteral elements: JSON...) { self.init(elements) }
    /// An object whose members have the order they are written in.
    public init(dictionaryLiteral members: (String, JSON)...) { self.init(members: members) }
}

/// Writes a tape, value by value, in the parser's format.
struct TapeBuilder {
    private var words: [UInt64] = [0]
    private var strings: [UInt8] = []
    private var open: [(index: Int, count: UInt64)] = []

    mutating func appendNull() { append(tag: JSONTag.null) }

    mutating func append(_ value: Bool) { append(tag: value ? JSONTag.yes : JSONTag.no) }

    mutating func append(_ value: Int64) {
        append(tag: JSONTag.signed)
        words.append(UInt64(bitPattern: value))
    }

    mutating func append(_ value: UInt64) {
        if let signed = Int64(exactly: value) { return append(signed) }
        append(tag: JSONTag.unsigned)
        words.append(value)
    }

    mutating func append(_ value: Double) {
        append(tag: JSONTag.double)
        words.append(value.bitPattern)
    }

    mutating func append(_ value: String) {
        countElement()
        appendString(value)
    }

    /// Appends the key of a member, whose value comes next.
    mutating func append(key: String) {
        appendString(key)
    }

    mutating func openArray() { openContainer(JSONTag.array) }
    mutating func openObject() { openContainer(JSONTag.object) }

    mutating func close() {
        let (index, count) = open.removeLast()
        let isObject = UInt8(words[index] >> 56) == JSONTag.object
        words.append(Self.word(isObject ? JSONTag.objectEnd : JSONTag.arrayEnd, UInt64(index)))
        words[index] |= UInt64(words.count) | min(count, 0xffffff) << 32
    }

    /// Appends a copy of a value of another document.
    mutating func append(_ value: JSON) {
        countElement()
        let tape = value.document.tape
        let end = ferry_json_after(tape, value.index)
        let shift = UInt64(bitPattern: Int64(words.count - value.index))
        var index = value.index
        while index < end {
            let word = tape.words[index]
            switch ferry_json_tag(tape, index) {
            case JSONTag.string: appendBytes(tape.utf8(at: index))
            case JSONTag.signed, JSONTag.unsigned, JSONTag.double:
                words.append(word)
                index += 1
                words.append(tape.words[index])
            case JSONTag.array, JSONTag.object, JSONTag.arrayEnd, JSONTag.objectEnd:
                let place = UInt64(UInt32(truncatingIfNeeded: word)) &+ shift
                words.append(word & ~UInt64(UInt32.max) | place)
            default: words.append(word)
            }
            index += 1
        }
    }

    consuming func finish() -> JSONDocument {
        precondition(open.isEmpty, "a container was not closed")
        return JSONDocument(words: words, strings: strings)
    }

    private mutating func openContainer(_ tag: UInt8) {
        append(tag: tag)
        open.append((words.count - 1, 0))
    }

    private mutating func append(tag: UInt8) {
        countElement()
        words.append(Self.word(tag, 0))
    }

    private mutating func countElement() {
        if !open.isEmpty { open[open.count - 1].count += 1 }
    }

    private mutating func appendString(_ value: String) {
        var value = value
        value.withUTF8 { appendBytes($0) }
    }

    private mutating func appendBytes(_ bytes: UnsafeBufferPointer<UInt8>) {
        precondition(bytes.count < UInt32.max, "a JSON string must be smaller than 4 GB")
        words.append(Self.word(JSONTag.string, UInt64(strings.count)))
        withUnsafeBytes(of: UInt32(bytes.count)) { strings.append(contentsOf: $0) }
        strings.append(contentsOf: bytes)
        strings.append(0)
    }

    private static func word(_ tag: UInt8, _ payload: UInt64) -> UInt64 {
        UInt64(tag) << 56 | payload
    }
}
