internal import CFerryJSON

/// A JSON value (RFC 8259): a view of one value in a document that was parsed or built.
///
/// A value is copied or converted only when it is read. All values of a document share its memory and can be used from
/// any thread. If a key appears twice in an object, its last value counts.
///
///     let user = try JSON(parsing: body)
///     let name = user["name"]?.string  // String?
///     let level = try user.value("level", as: Int.self)  // or "$.level: expected integer, found string"
///     let sent: JSON = ["id": 7, "tags": ["a", "b"], "owner": .null, "profile": user["profile"] ?? .null]
public struct JSON: Sendable {
    @usableFromInline package let document: JSONDocument
    /// The index of the value on the tape.
    @usableFromInline let index: Int

    init(document: JSONDocument, index: Int) {
        self.document = document
        self.index = index
    }

    /// The root value of a document.
    package init(_ document: JSONDocument) {
        self.init(document: document, index: 1)
    }

    /// The kinds of JSON values.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// `null`
        case null
        /// `true` or `false`
        case bool
        /// An integer or a number with a fraction or an exponent.
        case number
        /// A string of Unicode scalars.
        case string
        /// An ordered list of values.
        case array
        /// Members: values with their keys.
        case object
    }

    /// The kind of this value.
    public var kind: Kind {
        switch ferry_json_tag(document.tape, index) {
        case JSONTag.string: .string
        case JSONTag.signed, JSONTag.unsigned, JSONTag.double: .number
        case JSONTag.yes, JSONTag.no: .bool
        case JSONTag.array: .array
        case JSONTag.object: .object
        default: .null
        }
    }

    /// A copy of the value that does not keep its document in memory.
    public func detached() -> JSON {
        var tape = TapeBuilder()
        tape.append(self)
        return JSON(document: tape.finish(), index: 1)
    }
}

// The value as a type, or `nil` if it has another kind. The throwing forms are `value(as:)` and its variants.
extension JSON {
    /// Whether the value is null.
    public var isNull: Bool { ferry_json_tag(document.tape, index) == JSONTag.null }

    /// `true` or `false`, or `nil` for anything else.
    public var bool: Bool? {
        switch ferry_json_tag(document.tape, index) {
        case JSONTag.yes: true
        case JSONTag.no: false
        default: nil
        }
    }

    /// The number as an `Int`, or `nil` if it is not an integer or does not fit. `1.0` and `1e2` are integers. A number
    /// of 2^53 or more that is written with a fraction or an exponent is `nil`, because it may have been rounded.
    public var int: Int? { document.tape.integer(at: index) }

    /// The number as a `UInt`, or `nil` if it is negative, not an integer, or does not fit. See `int`.
    public var uint: UInt? { document.tape.integer(at: index) }

    /// The number as a `Double`, or `nil` for anything else. An integer beyond 2^53 becomes the nearest double; use
    /// `int` or `uint` for the exact value.
    public var double: Double? { document.tape.number(at: index) }

    /// A string, or `nil` for anything else.
    public var string: String? {
        ferry_json_tag(document.tape, index) == JSONTag.string ? document.tape.string(at: index) : nil
    }

    /// The elements of an array, or `nil` for anything else.
    public var array: JSONArray? {
        ferry_json_tag(document.tape, index) == JSONTag.array ? JSONArray(document: document, index: index) : nil
    }

    /// The members of an object, or `nil` for anything else.
    public var object: JSONObject? {
        ferry_json_tag(document.tape, index) == JSONTag.object ? JSONObject(document: document, index: index) : nil
    }

    /// The value of a member, or `nil` if there is none or this is not an object. Takes time in the number of members.
    public subscript(key: String) -> JSON? {
        let tape = document.tape
        guard ferry_json_tag(tape, index) == JSONTag.object else { return nil }
        let found = tape.find(key, in: index)
        return found == 0 ? nil : JSON(document: document, index: found)
    }

    /// An element of an array, or `nil` if there is none or this is not an array. Takes time in the position: iterate
    /// over `array` to visit all elements.
    public subscript(position: Int) -> JSON? {
        let tape = document.tape
        guard position >= 0, ferry_json_tag(tape, index) == JSONTag.array else { return nil }
        let found = ferry_json_element(tape, index, position)
        return found == 0 ? nil : JSON(document: document, index: found)
    }
}

extension JSON {
    /// The value at a JSON Pointer (RFC 6901) such as `/items/3/name`, or `nil` if there is none or the text is not a
    /// pointer. The empty pointer is the value itself.
    public func value(atPointer pointer: String) -> JSON? {
        guard !pointer.isEmpty else { return self }
        guard pointer.utf8.first == UInt8(ascii: "/") else { return nil }
        var value = self
        for token in pointer.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let key = Self.unescaped(token) else { return nil }
            let next = value.kind == .array ? Self.position(key).flatMap { value[$0] } : value[key]
            guard let next else { return nil }
            value = next
        }
        return value
    }

    /// Unescapes `~1` to a slash and `~0` to a tilde; `nil` for any other tilde.
    private static func unescaped(_ token: Substring.UTF8View) -> String? {
        guard token.contains(UInt8(ascii: "~")) else { return String(Substring(token)) }
        var bytes: [UInt8] = []
        var rest = token.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "~") else {
                bytes.append(byte)
                continue
            }
            switch rest.next() {
            case UInt8(ascii: "0"): bytes.append(UInt8(ascii: "~"))
            case UInt8(ascii: "1"): bytes.append(UInt8(ascii: "/"))
            default: return nil
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A number of digits only, without a leading zero.
    private static func position(_ token: String) -> Int? {
        guard token.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
        guard token == "0" || token.utf8.first != UInt8(ascii: "0") else { return nil }
        return Int(token)
    }
}

extension JSON: Hashable {
    /// Compares numbers by value (`1` equals `1.0`), strings by their Unicode scalars, and objects without regard to
    /// the order of their members.
    public static func == (a: JSON, b: JSON) -> Bool {
        ferry_json_equal(a.document.tape, a.index, b.document.tape, b.index)
    }

    /// Hashes the value so that equal values have equal hashes.
    public func hash(into hasher: inout Hasher) {
        let tape = document.tape
        switch ferry_json_tag(tape, index) {
        case JSONTag.string: hasher.combine(bytes: UnsafeRawBufferPointer(tape.utf8(at: index)))
        case JSONTag.signed, JSONTag.unsigned, JSONTag.double: hashNumber(into: &hasher)
        case JSONTag.array:
            hasher.combine(count)
            for element in JSONArray(document: document, index: index) { element.hashScalar(into: &hasher) }
        case JSONTag.object:
            // Only the keys of the members, in any order; equal objects have the same set of keys.
            hasher.combine(Set(JSONObject(document: document, index: index).keys))
        case let tag: hasher.combine(tag)
        }
    }

    /// For an array or object within an array, hashes only its kind, so nesting needs no stack.
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
        // A large double equals the integer with the same value, however it was written.
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
    /// Compares two numbers by value: negative, 0 or positive.
    func compared(to other: JSON) -> Int {
        Int(ferry_json_compare_numbers(document.tape, index, other.document.tape, other.index))
    }
}
