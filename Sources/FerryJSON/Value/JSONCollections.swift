internal import CFerryJSON

/// The elements of a JSON array, in their order.
public struct JSONArray: Sendable, Collection {
    let document: JSONDocument
    private let start: Int
    private let end: Int
    /// The number of elements.
    public let count: Int

    init(document: JSONDocument, index: Int) {
        self.document = document
        start = index + 1
        end = ferry_json_close(document.tape, index)
        count = ferry_json_count(document.tape, index)
    }

    /// A position in the array.
    public struct Index: Sendable, Comparable, Hashable {
        let word: Int

        /// Whether the position comes before the other.
        public static func < (a: Index, b: Index) -> Bool { a.word < b.word }
    }

    /// Iterates over the elements.
    public struct Iterator: IteratorProtocol {
        private let document: JSONDocument
        private var place: Int
        private let end: Int

        init(document: JSONDocument, place: Int, end: Int) {
            self.document = document
            self.place = place
            self.end = end
        }

        /// The next element.
        public mutating func next() -> JSON? {
            guard place < end else { return nil }
            let element = JSON(document: document, index: place)
            place = ferry_json_after(document.tape, place)
            return element
        }
    }

    /// Creates an iterator over the elements, from the first.
    public func makeIterator() -> Iterator { Iterator(document: document, place: start, end: end) }
    /// The position of the first element.
    public var startIndex: Index { Index(word: start) }
    /// The position after the last element.
    public var endIndex: Index { Index(word: end) }
    /// The position after `index`.
    public func index(after index: Index) -> Index {
        check(index)
        return Index(word: ferry_json_after(document.tape, index.word))
    }
    /// The element at a position.
    public subscript(index: Index) -> JSON {
        check(index)
        return JSON(document: document, index: index.word)
    }

    private func check(_ index: Index) {
        precondition(index.word >= start && index.word < end, "the index is out of range")
    }
}

/// The members of a JSON object, in the order of the document. The collection contains a key twice if it appears twice
/// in the object; `subscript(key:)` finds the last value.
public struct JSONObject: Sendable, Collection {
    let document: JSONDocument
    private let start: Int
    private let end: Int
    /// The number of members.
    public let count: Int

    init(document: JSONDocument, index: Int) {
        self.document = document
        start = index + 1
        end = ferry_json_close(document.tape, index)
        count = ferry_json_count(document.tape, index)
    }

    /// A member: its key and its value.
    public typealias Element = (key: String, value: JSON)

    /// A position in the object.
    public struct Index: Sendable, Comparable, Hashable {
        let word: Int

        /// Whether the position comes before the other.
        public static func < (a: Index, b: Index) -> Bool { a.word < b.word }
    }

    /// Iterates over the members.
    public struct Iterator: IteratorProtocol {
        private let document: JSONDocument
        private var place: Int
        private let end: Int

        init(document: JSONDocument, place: Int, end: Int) {
            self.document = document
            self.place = place
            self.end = end
        }

        /// The next member.
        public mutating func next() -> Element? {
            guard place < end else { return nil }
            let member = (document.tape.string(at: place), JSON(document: document, index: place + 1))
            place = ferry_json_after(document.tape, place + 1)
            return member
        }
    }

    /// Creates an iterator over the members, from the first.
    public func makeIterator() -> Iterator { Iterator(document: document, place: start, end: end) }
    /// The position of the first member.
    public var startIndex: Index { Index(word: start) }
    /// The position after the last member.
    public var endIndex: Index { Index(word: end) }
    /// The position after `index`.
    public func index(after index: Index) -> Index {
        check(index)
        return Index(word: ferry_json_after(document.tape, index.word + 1))
    }
    /// The member at a position.
    public subscript(index: Index) -> Element {
        check(index)
        return (document.tape.string(at: index.word), JSON(document: document, index: index.word + 1))
    }

    private func check(_ index: Index) {
        precondition(index.word >= start && index.word < end, "the index is out of range")
    }

    /// The value of the last member with a key, or `nil` if there is none.
    public subscript(key: String) -> JSON? {
        let found = document.tape.find(key, in: start - 1)
        return found == 0 ? nil : JSON(document: document, index: found)
    }

    /// The keys in the order of the document.
    public var keys: [String] { map(\.key) }
}
