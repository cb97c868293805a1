internal import CFerryJSON

/// The elements of an array, in their order.
public struct JSONArray: Sendable, Collection {
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

    /// A place in the array.
    public struct Index: Sendable, Comparable, Hashable {
        let word: Int

        public static func < (a: Index, b: Index) -> Bool { a.word < b.word }
    }

    /// Goes through the elements.
    public struct Iterator: IteratorProtocol {
        private let document: JSONDocument
        private var place: Int
        private let end: Int

        init(document: JSONDocument, place: Int, end: Int) {
            self.document = document
            self.place = place
            self.end = end
        }

        public mutating func next() -> JSON? {
            guard place < end else { return nil }
            let element = JSON(document: document, index: place)
            place = ferry_json_after(document.tape, place)
            return element
        }
    }

    public func makeIterator() -> Iterator { Iterator(document: document, place: start, end: end) }
    public var startIndex: Index { Index(word: start) }
    public var endIndex: Index { Index(word: end) }
    public func index(after index: Index) -> Index { Index(word: ferry_json_after(document.tape, index.word)) }
    public subscript(index: Index) -> JSON { JSON(document: document, index: index.word) }
}
