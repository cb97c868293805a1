internal import CFerryJSON

/// The members of an object, in the order of the document. A key that stands twice is here twice; `subscript` finds the
/// last one.
public struct JSONObject: Sendable, Collection {
    let document: JSONDocument
    private let start: Int
    private let end: Int
    public let count: Int

    init(document: JSONDocument, index: Int) {
        self.document = document
        start = index + 1
        end = ferry_json_close(document.tape, index)
        count = ferry_json_count(document.tape, index)
    }

    public typealias Element = (key: String, value: JSON)

    /// A place in the object.
    public struct Index: Sendable, Comparable, Hashable {
        let word: Int

        public static func < (a: Index, b: Index) -> Bool { a.word < b.word }
    }

    /// Goes through the members.
    public struct Iterator: IteratorProtocol {
        private let document: JSONDocument
        private var place: Int
        private let end: Int

        init(document: JSONDocument, place: Int, end: Int) {
            self.document = document
            self.place = place
            self.end = end
        }

        public mutating func next() -> Element? {
            guard place < end else { return nil }
            let member = (document.tape.string(at: place), JSON(document: document, index: place + 1))
            place = ferry_json_after(document.tape, place + 1)
            return member
        }
    }

    public func makeIterator() -> Iterator { Iterator(document: document, place: start, end: end) }
    public var startIndex: Index { Index(word: start) }
    public var endIndex: Index { Index(word: end) }
    public func index(after index: Index) -> Index { Index(word: ferry_json_after(document.tape, index.word + 1)) }
    public subscript(index: Index) -> Element {
        (document.tape.string(at: index.word), JSON(document: document, index: index.word + 1))
    }

    public subscript(key: String) -> JSON? {
        let found = document.tape.find(key, in: start - 1)
        return found == 0 ? nil : JSON(document: document, index: found)
    }

    public var keys: [String] { map(\.key) }
}
