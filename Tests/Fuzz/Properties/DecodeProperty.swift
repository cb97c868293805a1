import CCoreParts

/// A compressed body in pieces and with pauses decodes like one piece, and a compressed text decodes to itself. The
/// first eight bytes determine the pieces.
func checkDecoding(_ bytes: UnsafeRawBufferPointer) throws {
    guard bytes.count >= 8 else { return }
    let chance = bytes.loadUnaligned(as: UInt64.self) | 1
    let input = Array(bytes.dropFirst(8))
    for coding in [PARTS_GZIP, PARTS_DEFLATE, PARTS_BROTLI, PARTS_ZSTD] {
        let whole = Body(decoding: input, coding, chance: 0)
        let pieces = Body(decoding: input, coding, chance: chance)
        try promise((whole.raw.code == 0) == (pieces.raw.code == 0), "a fault in pieces only, or only as a whole")
        // Damaged and too large: which is detected first depends on how much is decoded at once.
        if whole.raw.code != FERRY_E_BODY_TOO_LARGE && pieces.raw.code != FERRY_E_BODY_TOO_LARGE {
            try promise(
                whole.raw.code == pieces.raw.code && whole.raw.detail == pieces.raw.detail, "another fault in pieces")
        }
        let (short, long) = whole.bytes.count < pieces.bytes.count ? (whole, pieces) : (pieces, whole)
        try promise(long.bytes.starts(with: short.bytes), "other bytes in pieces")
        if whole.raw.code == 0 {
            try promise(whole.bytes.count == pieces.bytes.count, "more or fewer bytes in pieces")
            try promise(whole.raw.ended == pieces.raw.ended, "another end in pieces")
        }
        try promise(long.bytes.count <= Body.limit, "more than the limit")
        for isBare in coding == PARTS_DEFLATE ? [false, true] : [false] {
            let packed = Body(encoding: input, coding, isBare: isBare)
            let unpacked = Body(decoding: packed.bytes, coding, chance: chance)
            if coding == PARTS_DEFLATE && isBare && looksFramed(packed.bytes) { continue }
            try promise(
                unpacked.raw.code == 0 && unpacked.raw.ended && unpacked.bytes == input, "not what was compressed")
        }
    }
}

/// Bare data whose first two bytes are also those of a frame (RFC 1950, 2.2): this is ambiguous.
private func looksFramed(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 2 else { return false }
    return bytes[0] & 0x0F == 8 && (Int(bytes[0]) << 8 | Int(bytes[1])) % 31 == 0
}

/// A body as decoded by the core.
private final class Body {
    static let limit = 1 << 16
    private(set) var raw = parts_body()

    init(decoding bytes: [UInt8], _ coding: Int, chance: UInt64) {
        bytes.withUnsafeBufferPointer {
            parts_decode(&raw, Int32(coding), $0.baseAddress, $0.count, chance, UInt64(Self.limit))
        }
    }

    init(encoding bytes: [UInt8], _ coding: Int, isBare: Bool) {
        bytes.withUnsafeBufferPointer { parts_encode(&raw, Int32(coding), isBare, $0.baseAddress, $0.count) }
    }

    deinit { parts_body_free(&raw) }

    private(set) lazy var bytes = Array(UnsafeRawBufferPointer(start: raw.bytes, count: raw.length))
}
