import FerryCacheProbe
import Testing

@testable import FerryCache

@Suite struct CacheEntryTests {
    private let key = Sample.key(1).digest

    private func record(_ number: Int = 1, count: Int = 300) -> [UInt8] {
        Sample.entry(number, generation: 5, count: count).sealed(under: Sample.key(number).digest)
    }

    private func parsed(_ record: [UInt8], row: Int64? = nil) -> CacheEntry? {
        record.withUnsafeBytes { CacheEntry(record: $0, row: row ?? key.number) }
    }

    @Test func aRecordBringsBackWhatWasKept() throws {
        var marks = CacheEntry.Marks(stored: 123_456_789)
        marks.version = -7
        marks.sensitiveData = CacheDigest(of: "user 1")
        marks.applicationVersion = CacheDigest(of: "2.0")
        let kept = CacheEntry(marks, attributes: [1, 2], head: [3, 4, 5], body: [6])
        let entry = try #require(parsed(kept.sealed(under: key)))
        #expect(entry.marks == marks)
        #expect(entry.key == key)
        #expect(entry.withAttributes { Array($0) } == [1, 2])
        #expect(entry.withHead { Array($0) } == [3, 4, 5])
        #expect(entry.withBody { Array($0) } == [6])
    }

    @Test func emptyPartsArePartsToo() throws {
        let kept = CacheEntry(CacheEntry.Marks(stored: 1), attributes: [], head: [], body: [])
        let entry = try #require(parsed(kept.sealed(under: key)))
        #expect(entry.withBody { $0.count } == 0)
    }

    @Test func everyFlippedByteIsFound() {
        let whole = record()
        #expect(parsed(whole) != nil)
        for index in whole.indices {
            for bits: UInt8 in [0x01, 0x80, 0xFF] {
                var broken = whole
                broken[index] ^= bits
                #expect(parsed(broken) == nil, "byte \(index) xor \(bits)")
            }
        }
    }

    @Test func aRecordCutAtAnyLengthIsFound() {
        let whole = record()
        for count in whole.indices { #expect(parsed(Array(whole[..<count])) == nil, "cut at \(count)") }
        #expect(parsed(whole + [0]) == nil)
    }

    @Test func lengthsThatAreNotThoseOfTheRecordAreFoundThoughTheDigestFits() {
        for (offset, value) in [(144, Int64.max), (152, -1), (160, 0), (144, 2)] {
            var broken = record()
            broken.withUnsafeMutableBytes { bytes in
                bytes.storeBytes(of: value, toByteOffset: offset, as: Int64.self)
                let digest = CacheDigest(of: UnsafeRawBufferPointer(rebasing: bytes[32...]))
                digest.withBytes { UnsafeMutableRawBufferPointer(rebasing: bytes[..<32]).copyMemory(from: $0) }
            }
            #expect(parsed(broken) == nil)
        }
    }

    @Test func aRecordInTheRowOfAnotherIsFound() {
        #expect(parsed(record(2)) == nil)
        #expect(parsed(record(), row: key.number &+ 1) == nil)
    }

    @Test func theDigestIsThatOfTheStandard() {
        // The one-block example of FIPS 180-4.
        let digest = CacheDigest(of: "abc").withBytes { Array($0.prefix(4)) }
        #expect(digest == [0xBA, 0x78, 0x16, 0xBF])
        #expect(CacheDigest(of: "").withBytes { Array($0.prefix(4)) } == [0xE3, 0xB0, 0xC4, 0x42])
    }
}
