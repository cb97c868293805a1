public import FoundationEssentials

/// The body of a streamed response: pieces in their order, of any length, none empty.
///
/// Who reads slowly slows the server down: beyond half a megabyte that nobody has read, the socket is left alone. To be
/// read once, by one task at a time. When the last copy of it and of its response goes, what was not read is given up:
/// the exchange ends.
public struct ResponseBody: AsyncSequence, Sendable {
    /// A piece.
    public typealias Element = Data
    /// `incompleteBody`, `contentDecoding`, `timeout`, `cancelled` and the like.
    public typealias Failure = RequestError

    private let reading: Reading

    init(_ reading: Reading) { self.reading = reading }

    /// Reads on where another iterator has stopped.
    public func makeAsyncIterator() -> Iterator { Iterator(reading) }

    /// Reads piece by piece.
    public struct Iterator: AsyncIteratorProtocol {
        private let reading: Reading

        fileprivate init(_ reading: Reading) { self.reading = reading }

        /// The next piece; `nil` after the last.
        public mutating func next() async throws(RequestError) -> Data? { try await reading.next() }

        /// The next piece; `nil` after the last.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(RequestError) -> Data? {
            try await reading.next()
        }
    }

    /// All that is left, in memory. More than `limit` bytes are `responseTooLarge`, and the rest is not read.
    public func collect(upTo limit: Int) async throws(RequestError) -> Data {
        var collected = Data()
        while let piece = try await reading.next() {
            guard collected.count + piece.count <= limit else { throw reading.tooLarge(limit) }
            collected.append(piece)
        }
        return collected
    }
}
