internal import CFerryJSON

/// A type that is created from a JSON value by code of its own, without the containers of `Codable`. This is the
/// fastest way from a document to values.
///
///     struct User: JSONConvertible {
///         let name: String, level: Int, tags: [String], bio: String?
///         init(json: JSON) throws {
///             name = try json.value("name")
///             level = try json.value("level")
///             tags = try json.value("tags")
///             bio = try json.value("bio")        // absent or null: nil
///         }
///     }
public protocol JSONConvertible {
    /// Creates the value, or throws. The methods of `JSON` throw a `JSONMismatch`, which says what was expected and
    /// where. In a request with this value type, it fails the run with `decoding`, like a `DecodingError`. A
    /// `RequestError` stays as it is, and any other error is `applicationError`.
    init(json: JSON) throws

    /// The value for an absent member. The default is nil: an absent member is an error.
    static var valueWhenAbsent: Self? { get }

    /// The value at a place in the document of `json`. The default creates a `JSON` of the place first; types such as
    /// the scalars read the document directly.
    static func value(at place: JSON.Place, in json: JSON) throws -> Self
}

extension JSONConvertible {
    /// An absent member is an error.
    @inlinable
    public static var valueWhenAbsent: Self? { nil }

    /// Creates a `JSON` of the place first. A value that is nested too deeply for the thread's stack is an error.
    @inlinable
    public static func value(at place: JSON.Place, in json: JSON) throws -> Self {
        try Self(json: try json.descend(to: place))
    }
}

extension Optional: JSONConvertible where Wrapped: JSONConvertible {
    /// Null is `nil`.
    @inlinable
    public init(json: JSON) throws { self = json.isNull ? nil : .some(try Wrapped(json: json)) }

    /// An absent member is `nil`.
    @inlinable
    public static var valueWhenAbsent: Wrapped?? { .some(nil) }

    /// Null is `nil`.
    @inlinable
    public static func value(at place: JSON.Place, in json: JSON) throws -> Wrapped? {
        json.isNull(at: place) ? nil : .some(try Wrapped.value(at: place, in: json))
    }
}

extension Array: JSONConvertible where Element: JSONConvertible {
    /// Every element of an array; an error for anything else.
    @inlinable
    public init(json: JSON) throws { self = try Self.value(at: json.place, in: json) }

    /// Every element of an array; an error for anything else.
    @inlinable
    public static func value(at place: JSON.Place, in json: JSON) throws -> [Element] {
        var places = try json.elements(at: place)
        var array: [Element] = []
        array.reserveCapacity(places.count)
        while let place = places.next() { array.append(try Element.value(at: place, in: json)) }
        return array
    }
}

extension Dictionary: JSONConvertible where Key == String, Value: JSONConvertible {
    /// Every member of an object; an error for anything else.
    @inlinable
    public init(json: JSON) throws {
        let members = try json.asObject()
        self.init(minimumCapacity: members.count)
        for (key, value) in members { self[key] = try Value.value(at: value.place, in: value) }
    }
}

extension JSONConvertible where Self: RawRepresentable, RawValue: JSONConvertible {
    /// Creates the value with this raw value. Throws if there is none.
    @inlinable
    public init(json: JSON) throws {
        guard let value = Self(rawValue: try RawValue(json: json)) else {
            throw json.mismatch(expected: "a value of \(Self.self)")
        }
        self = value
    }
}

// Ways through a document that create no view for each value, and so count no references.
extension JSON {
    /// Where a value stands in its document.
    public struct Place: Sendable {
        @usableFromInline let word: Int

        @inlinable
        init(word: Int) { self.word = word }
    }

    /// The places of an array's elements that are still to come. Valid as long as the document, which is not kept.
    @usableFromInline
    struct Places {
        @usableFromInline let words: UnsafePointer<UInt64>
        @usableFromInline var nextWord: Int
        @usableFromInline let end: Int
        @usableFromInline let count: Int

        init(words: UnsafePointer<UInt64>, first: Int, end: Int, count: Int) {
            self.words = words
            nextWord = first
            self.end = end
            self.count = count
        }

        /// Steps over a value as `ferry_json_after` does, which cannot be inlined into other modules.
        @inlinable
        mutating func next() -> Place? {
            guard nextWord < end else { return nil }
            let place = Place(word: nextWord)
            let word = words[nextWord]
            switch UInt8(truncatingIfNeeded: word &>> 56) {
            case UInt8(ascii: "["), UInt8(ascii: "{"): nextWord = Int(UInt32(truncatingIfNeeded: word))
            case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): nextWord &+= 2
            default: nextWord &+= 1
            }
            return place
        }
    }

    @usableFromInline
    var place: Place { Place(word: index) }

    @usableFromInline
    func view(at place: Place) -> JSON { JSON(document: document, index: place.word) }

    /// The view of a value whose type may contain values of the same type.
    @usableFromInline
    func descend(to place: Place) throws -> JSON {
        if ferry_json_stack_is_low() { throw tooDeep(at: place) }
        return view(at: place)
    }

    @inline(never)
    private func tooDeep(at place: Place) -> JSONMismatch {
        JSONMismatch(at: view(at: place), expected: "less nesting, for the stack of this thread")
    }

    /// As `ferry_json_tag` does, which cannot be inlined into other modules.
    @inlinable
    func tag(at place: Place) -> UInt8 { UInt8(truncatingIfNeeded: document.words[place.word] &>> 56) }

    @inlinable
    func isNull(at place: Place) -> Bool { tag(at: place) == UInt8(ascii: "n") }

    /// Where the value of a member is on the tape, or 0.
    @usableFromInline
    func word(of key: String) -> Int { document.tape.find(key, in: index) }

    @usableFromInline
    func elements(at place: Place) throws -> Places {
        let tape = document.tape
        guard ferry_json_tag(tape, place.word) == JSONTag.array else { throw noArray(at: place) }
        return Places(
            words: tape.words, first: place.word + 1, end: ferry_json_close(tape, place.word),
            count: ferry_json_count(tape, place.word))
    }

    @inline(never)
    private func noArray(at place: Place) -> JSONMismatch { JSONMismatch(at: view(at: place), expected: "array") }
}
