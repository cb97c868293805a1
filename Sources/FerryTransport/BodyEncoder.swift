internal import CFerry

/// Compresses one body of a request.
///
/// Sendable because it has the only pointer to its state, and is used by one thread at a time.
package struct BodyEncoder: ~Copyable, @unchecked Sendable {
    /// What the body is compressed to.
    package enum Coding: Sendable, Hashable {
        case gzip, zstd
    }

    private let encoder: OpaquePointer

    /// An encoder that has seen no byte; `nil` where there is no memory for it.
    package init?(_ coding: Coding) {
        var made: OpaquePointer?
        let number = coding == .gzip ? FERRY_ENCODE_GZIP : FERRY_ENCODE_ZSTD
        guard ferry_encoder_make(Int32(number), &made) == 0, let made else { return nil }
        encoder = made
    }

    deinit { ferry_encoder_free(encoder) }

    /// Appends what can be made of these bytes. After a call with `isLast` the body is complete. Returns `false` where
    /// there is no memory for it.
    package mutating func encode(
        _ bytes: UnsafeRawBufferPointer, isLast: Bool = false, to output: inout [UInt8]
    ) -> Bool {
        var rest = bytes[...]
        while true {
            var (taken, made) = (0, 0)
            let code = withUnsafeTemporaryAllocation(byteCount: Self.roomSize, alignment: 16) { room in
                let code = ferry_encode(
                    encoder, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count, isLast ? 1 : 0,
                    room.baseAddress!, room.count, &taken, &made)
                output.append(contentsOf: UnsafeRawBufferPointer(rebasing: room[..<made]))
                return code
            }
            if code < 0 { return false }
            rest = rest.dropFirst(taken)
            // Where the room was not filled, there is nothing more to be made.
            if isLast ? code == 1 : rest.isEmpty && made < Self.roomSize { return true }
        }
    }

    private static let roomSize = 16_384
}
