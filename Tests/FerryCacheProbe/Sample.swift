package import FerryCache
import Glibc

/// Entries that can be checked for damage: all bytes follow from the number of the key and a generation that is stored
/// in them.
package enum Sample {
    package static func key(_ number: Int) -> CacheKey { CacheKey(Array("key \(number)".utf8)) }

    package static func entry(_ number: Int, generation: UInt64, count: Int? = nil) -> CacheEntry {
        let head = bytes(UInt64(number) &+ generation &* 31, count: 40 + Int(generation % 90))
        let body = body(number, generation, count: count)
        return CacheEntry(CacheEntry.Marks(stored: currentCacheTime()), attributes: [7], head: head, body: body)
    }

    /// The generation of an entry that is whole and under its key; otherwise `nil`.
    package static func generation(of entry: CacheEntry, _ number: Int) -> UInt64? {
        entry.withBody { found in
            guard found.count >= 8 else { return nil }
            let generation = found.loadUnaligned(as: UInt64.self)
            let body = body(number, generation, count: found.count)
            let head = bytes(UInt64(number) &+ generation &* 31, count: 40 + Int(generation % 90))
            let isWhole =
                isEqual(body, found) && entry.withHead { isEqual(head, $0) }
                && entry.withAttributes { isEqual([7], $0) }
            return isWhole ? generation : nil
        }
    }

    private static func isEqual(_ bytes: [UInt8], _ found: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count == found.count, let start = found.baseAddress else { return bytes.isEmpty && found.isEmpty }
        return memcmp(bytes, start, bytes.count) == 0
    }

    private static func body(_ number: Int, _ generation: UInt64, count: Int?) -> [UInt8] {
        let count = count ?? 100 + Int((UInt64(number) &* 7 &+ generation &* 131) % 5000)
        var body = withUnsafeBytes(of: generation) { Array($0) }
        body += bytes(generation &+ UInt64(number) &* 1000, count: max(count - 8, 0))
        return body
    }

    /// A part of a table that begins where the seed says. Made anew for each entry, the bytes would take most of the
    /// time of the tests in a debug build.
    private static func bytes(_ seed: UInt64, count: Int) -> [UInt8] {
        let mixed = (seed &+ 0x9E37_79B9_7F4A_7C15) &* 0xBF58_476D_1CE4_E5B9
        let start = Int((mixed ^ mixed >> 31) % UInt64(table.count))
        var bytes = Array(table[start..<min(start + count, table.count)])
        while bytes.count < count { bytes += table.prefix(count - bytes.count) }
        return bytes
    }

    private static let table: [UInt8] = {
        var (state, words): (UInt64, [UInt64]) = (1, [])
        for _ in 0..<8192 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            words.append(state ^ state >> 29)
        }
        return words.withUnsafeBytes { [UInt8]($0) }
    }()
}

extension CacheEntry {
    /// An entry with these bytes.
    package init(_ marks: Marks, attributes: [UInt8], head: [UInt8], body: [UInt8]) {
        self = head.withUnsafeBytes { head in
            body.withUnsafeBytes { CacheEntry(marks, attributes: attributes, head: head, body: $0) }
        }
    }
}
