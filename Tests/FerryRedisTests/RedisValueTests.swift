import FerryCache
import Testing

@testable import FerryRedis

/// The value of an entry in Redis: unchanged, or compressed.
@Suite(.timeLimit(.minutes(2))) struct RedisValueTests {
    private let server = FakeRedis()
    private var name: String { "ferry:2:" + key(1).name }

    /// Text, which is worth compressing.
    private static let text = Array(String(repeating: "a line of text, and another one. ", count: 3000).utf8)

    /// Bytes that no compression makes smaller.
    private static func noise(_ count: Int) -> [UInt8] {
        var state: UInt64 = 88_172_645_463_325_252
        return (0..<count).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state >> 32)
        }
    }

    private static func frame(_ value: [UInt8]) -> ArraySlice<UInt8> { value[(RedisValue.mark.count + 8)...] }

    /// A frame with another length in front of it.
    private static func value(_ length: UInt64, _ frame: some Sequence<UInt8>) -> [UInt8] {
        RedisValue.mark + withUnsafeBytes(of: length.littleEndian) { Array($0) } + frame
    }

    private static func hasMark(_ value: [UInt8]) -> Bool { value.starts(with: RedisValue.mark) }

    // MARK: Where it pays

    @Test func largeCompressibleRecordsAreCompressed() throws {
        let value = RedisValue.of(Self.text, from: 8192)
        #expect(Self.hasMark(value) && value.count < Self.text.count / 20)
        #expect(RedisValue.record(value, most: Self.text.count) == Self.text)
    }

    @Test(arguments: [100, 8191, 60_000, 100_000, 1_000_000]) func smallOrIncompressibleRecordsAreUnchanged(count: Int)
    {
        let noise = Self.noise(count)
        #expect(RedisValue.of(noise, from: 8192) == noise && RedisValue.record(noise, most: count) == noise)
        let text = Array(Self.text.prefix(8191))
        #expect(RedisValue.of(text, from: 8192) == text && RedisValue.of(Self.text, from: nil) == Self.text)
        #expect(RedisValue.of([], from: 0) == [] && RedisValue.of(Array(text.prefix(255)), from: -1).count == 255)
    }

    // MARK: What a value may not be

    @Test func truncatedChangedOrLongerValuesAreRefused() {
        let value = RedisValue.of(Self.text, from: 0)
        let most = Self.text.count
        for count in 0..<value.count {
            let cut = RedisValue.record(Array(value.prefix(count)), most: most)
            // Shorter than its mark, it is read as a record, which is damaged.
            #expect(cut == nil || count < RedisValue.mark.count, "\(count)")
        }
        #expect(
            RedisValue.record(value + [0], most: most) == nil && RedisValue.record(value + value, most: most) == nil)
        for index in RedisValue.mark.count..<value.count {
            var changed = value
            changed[index] ^= 0x55
            // If the frame is still valid, the digest of the record detects the change.
            #expect(RedisValue.record(changed, most: most) != Self.text || index >= RedisValue.mark.count + 8)
        }
    }

    @Test func aLengthThatDiffersFromTheFrameIsRefused() {
        let frame = Self.frame(RedisValue.of(Self.text, from: 0))
        let count = UInt64(Self.text.count)
        for length in [0, 1, count - 1, count + 1, 1 << 40, .max, 1 << 63] {
            #expect(RedisValue.record(Self.value(length, frame), most: .max) == nil, "\(length)")
        }
        #expect(RedisValue.record(Self.value(count, frame), most: Self.text.count) == Self.text)
        #expect(!RedisValue.isTooLarge(Self.value(count, frame), most: Self.text.count))
        #expect(RedisValue.record(Self.value(count, frame), most: Self.text.count - 1) == nil)
        #expect(RedisValue.isTooLarge(Self.value(count, frame), most: Self.text.count - 1))
        #expect(RedisValue.record(Self.value(count, [1, 2, 3]), most: .max) == nil)
    }

    /// A gigabyte of zeros compresses to some kilobytes: nothing larger than an entry may be is decompressed.
    @Test func aBombIsNone() {
        let bomb = RedisValue.of(Array(repeating: 0, count: 64 << 20), from: 0)
        #expect(Self.hasMark(bomb) && bomb.count < 16 << 10)
        #expect(RedisValue.record(bomb, most: 5 << 20) == nil && RedisValue.isTooLarge(bomb, most: 5 << 20))
        let lying = Self.value(1000, Self.frame(bomb))
        #expect(RedisValue.record(lying, most: 5 << 20) == nil && !RedisValue.isTooLarge(lying, most: 5 << 20))
        // A frame that does not say how much it makes: two blocks of the same byte, each of 128 KiB.
        let unknown: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58, 0x02, 0x00, 0x10, 0x61, 0x03, 0x00, 0x10, 0x61]
        #expect(RedisValue.record(Self.value(262_144, unknown), most: 5 << 20) == nil)
    }

    // MARK: By the storage

    @Test func aLargeEntryIsCompressedInRedisAndComesBack() async throws {
        let storage = RedisCacheStorage(patient(server.path))
        #expect(await storage.write(entry(7, count: 100_000), under: key(1)))
        let value = try #require(server[name])
        #expect(Self.hasMark(value) && value.count < 2000)
        #expect(await storage.byte(key(1)) == 7)
        #expect(await storage.write(entry(8, count: 100), under: key(1)))
        #expect(server[name]?.count == entry(8, count: 100).record(for: key(1)).count)
        await storage.close()
        let plain = RedisCacheStorage(patient(server.path) { $0.minCompressedBytes = nil })
        #expect(await plain.write(entry(9, count: 100_000), under: key(1)))
        #expect(server[name].map { $0.count > 100_000 } == true)
        server[name] = value
        #expect(await plain.byte(key(1)) == 7, "what others have compressed is read")
        await plain.close()
        server.stop()
    }

    @Test func aDamagedValueIsAMissThatIsCountedAndRemoved() async throws {
        let storage = RedisCacheStorage(patient(server.path) { $0.maxEntryBytes = 200_000 })
        await storage.write(entry(7, count: 100_000), under: key(1))
        let whole = try #require(server[name])
        let other = RedisValue.of(entry(7, count: 100_000).record(for: key(2)), from: 0)
        let changed = RedisValue.of(Array(repeating: 7, count: 100_000), from: 0)
        let bomb = Self.value(1000, Self.frame(RedisValue.of(Array(repeating: 0, count: 8 << 20), from: 0)))
        let damaged = [Array(whole.dropLast()), whole + [0], changed, other, bomb, Array(whole.prefix(20))]
        for (index, value) in damaged.enumerated() {
            server[name] = value
            #expect(await storage.absence(key(1)) == .corrupt, "\(index)")
            #expect(storage.counts.corrupt == UInt64(index + 1))
            while server[name] != nil { await Task.yield() }
        }
        server[name] = whole
        #expect(await storage.byte(key(1)) == 7)
        await storage.close()
        server.stop()
    }

    /// Processes may have different limits: what is too large for one is an entry of another.
    @Test(arguments: [false, true]) func anEntryBeyondTheLimitIsNotFoundAndStays(isCompressed: Bool) async {
        let other = RedisCacheStorage(patient(server.path) { $0.minCompressedBytes = isCompressed ? 8192 : nil })
        let storage = RedisCacheStorage(patient(server.path) { $0.maxEntryBytes = 50_000 })
        // As a whole it would be larger than any reply to this process may be.
        #expect(await other.write(entry(7, count: 3_000_000), under: key(1)))
        #expect(server[name].map { Self.hasMark($0) } == isCompressed)
        #expect(await storage.write(entry(8), under: key(2)))
        async let small = storage.byte(key(2))
        #expect(await storage.absence(key(1)) == .notFound)
        #expect(await small == 8)
        #expect(storage.counts.corrupt == 0 && storage.counts.faults.isEmpty)
        await storage.close()
        #expect(server.count("UNLINK") == 0)
        #expect(await other.byte(key(1)) == 7)
        await other.close()
        server.stop()
    }

    @Test func theLimitIncludesTheWholeRecord() async {
        let size = entry(7, count: 1000).count
        for (limit, byte) in [(size, 7), (size - 1, nil)] as [(Int, UInt8?)] {
            let other = RedisCacheStorage(patient(server.path))
            let storage = RedisCacheStorage(patient(server.path) { $0.maxEntryBytes = limit })
            #expect(await other.write(entry(7, count: 1000), under: key(1)))
            #expect(await storage.byte(key(1)) == byte)
            await storage.close()
            await other.close()
        }
        #expect(server.count("UNLINK") == 0)
        server.stop()
    }
}
