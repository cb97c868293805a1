import CFerry

/// Bytes of a request's body that stand in a file, and are sent from there without a copy (sendfile(2)).
package struct TransferPiece: Sendable, Equatable {
    /// The loop's from here on, which closes it.
    package var descriptor: Int32
    package var offset: Int64
    package var length: UInt64

    package init(descriptor: Int32, offset: Int64, length: UInt64) {
        self.descriptor = descriptor
        self.offset = offset
        self.length = length
    }

    /// Whether a piece may stand in the place of bytes for this space, and costs less; only while it is being filled.
    package static func isTaken(for space: UnsafeMutableRawBufferPointer) -> Bool {
        ferry_takes_piece(space.baseAddress) != 0
    }

    /// Whether the system has all of these bytes in memory, so that nobody waits for the disk.
    package static func isInMemory(_ descriptor: Int32, _ range: Range<UInt64>) -> Bool {
        ferry_file_is_cached(descriptor, Int64(range.lowerBound), UInt64(range.count)) != 0
    }
}
