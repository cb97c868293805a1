internal import CFerry

/// Compresses the body of one request.
///
/// Sendable because it owns the only pointer to its state and is not copyable: one thread uses it at a time.
package struct BodyEncoder: ~Copyable, @unchecked Sendable {
    /// The format of the compressed body.
    package enum Coding: Sendable, Hashable {
        case gzip, zstd
    }

    private let encoder: OpaquePointer

    /// Creates an encoder. `nil` if there is not enough memory.
    package init?(_ coding: Coding) {
        var made: OpaquePointer?
        let number = coding == .gzip ? FERRY_ENCODE_GZIP : FERRY_ENCODE_ZSTD
        guard ferry_encoder_make(Int32(number), &made) == 0, let made else { return nil }
        encoder = made
    }

    deinit { ferry_encoder_free(encoder) }

    /// Compresses more bytes, and appends the output that is ready. A call with `isLast` completes the body. Returns
    /// `false` if there is not enough memory.
    package mutating func encode(
        _ bytes: UnsafeRawBufferPointer, isLast: Bool = false, to output: inout [UInt8]
    ) -> Bool {
        run(bytes, isLast ? FERRY_ENCODE_END : FERRY_ENCODE_MORE, &output)
    }

    /// Appends the output for all bytes so far, which can then be decoded. It costs a few bytes. Returns `false` if
    /// there is not enough memory.
    package mutating func flush(to output: inout [UInt8]) -> Bool {
        run(UnsafeRawBufferPointer(start: nil, count: 0), FERRY_ENCODE_FLUSH, &output)
    }

    private mutating func run(_ bytes: UnsafeRawBufferPointer, _ then: Int, _ output: inout [UInt8]) -> Bool {
        var rest = bytes[...]
        while true {
            var (taken, made) = (0, 0)
            let code = withUnsafeTemporaryAllocation(byteCount: Self.roomSize, alignment: 16) { room in
                let code = ferry_encode(
                    encoder, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count, Int32(then),
                    room.baseAddress!, room.count, &taken, &made)
                output.append(contentsOf: UnsafeRawBufferPointer(rebasing: room[..<made]))
                return code
            }
            if code < 0 { return false }
            rest = rest.dropFirst(taken)
            // If the room is not full, the encoder has no more output.
            if then != FERRY_ENCODE_MORE ? code == 1 : rest.isEmpty && made < Self.roomSize { return true }
        }
    }

    private static let roomSize = 16_384
}
