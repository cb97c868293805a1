import Synchronization

/// Fingerprints of the spellings of healthy hosts, and whether each was asked for since ``takeUse(_:)`` last looked.
///
/// Readers take no lock; writers are one at a time, under the lock of the table. A fingerprint has two places, and the
/// one that finds neither free takes the first: who was there is asked the long way, and comes back by it.
struct HealthyHosts: ~Copyable, Sendable {
    private static let count = 2048
    private static let used: UInt64 = 1

    private let places = AtomicArray(count: Self.count)
    /// So that nobody can make names that fall on one fingerprint.
    private let seed = UInt64.random(in: .min ... .max)

    /// Of scheme, host and port as they are written; 0 when the text does not begin with them.
    @inline(__always)
    func fingerprint(of url: String) -> UInt64 {
        var url = url
        return url.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            let length = HostKey.prefixLength(bytes)
            // The shortest there is, `http://h`, has eight.
            return length < 8 ? 0 : max(hash(UnsafeRawBufferPointer(rebasing: bytes[..<length])) & ~Self.used, 2)
        }
    }

    @inline(__always)
    func contains(_ fingerprint: UInt64) -> Bool {
        guard let place = place(of: fingerprint) else { return false }
        // Written once after each look of the table, so that the line stays shared among the cores.
        if places[place].load(ordering: .relaxed) & Self.used == 0 {
            _ = places[place].compareExchange(
                expected: fingerprint, desired: fingerprint | Self.used, ordering: .relaxed)
        }
        return true
    }

    func insert(_ fingerprint: UInt64) {
        if place(of: fingerprint) != nil { return }
        let first = Self.first(fingerprint)
        let isTaken = places[first].load(ordering: .relaxed) != 0
        let free = isTaken && places[first ^ 1].load(ordering: .relaxed) == 0 ? first ^ 1 : first
        places[free].store(fingerprint | Self.used, ordering: .releasing)
    }

    func remove(_ fingerprint: UInt64) {
        while let place = place(of: fingerprint) { places[place].store(0, ordering: .releasing) }
    }

    /// Whether it was asked for since this was last called.
    func takeUse(_ fingerprint: UInt64) -> Bool {
        guard let place = place(of: fingerprint) else { return false }
        return places[place].compareExchange(
            expected: fingerprint | Self.used, desired: fingerprint, ordering: .relaxed
        ).exchanged
    }

    private static func first(_ fingerprint: UInt64) -> Int { Int(truncatingIfNeeded: fingerprint >> 32) & (count - 1) }

    @inline(__always)
    private func place(of fingerprint: UInt64) -> Int? {
        let first = Self.first(fingerprint)
        if places[first].load(ordering: .acquiring) | Self.used == fingerprint | Self.used { return first }
        if places[first ^ 1].load(ordering: .acquiring) | Self.used == fingerprint | Self.used { return first ^ 1 }
        return nil
    }

    /// Eight bytes at a time, each folded into what came before by a full multiplication.
    @inline(__always)
    private func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var state = seed ^ UInt64(truncatingIfNeeded: bytes.count)
        var index = 0
        while index + 8 <= bytes.count {
            state = Self.fold(state ^ bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            index += 8
        }
        // What is left is read together with bytes that were read before.
        state = Self.fold(state ^ bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self))
        return Self.fold(state)
    }

    @inline(__always)
    private static func fold(_ value: UInt64) -> UInt64 {
        let (high, low) = value.multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        return high ^ low
    }
}
