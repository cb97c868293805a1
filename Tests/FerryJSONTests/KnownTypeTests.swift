import CFerryJSON
import Testing

/// The table of what is known about types.
@Suite struct KnownTypeTests {
    /// More than share a place in the table. A type that found none had a new reader, which was never freed, at each
    /// use.
    @Test func aTypeBeyondTheRoomOfTheTableIsKnownToo() {
        // No types have these addresses, and all of them have the same place.
        let types = (1...200).compactMap { UnsafeRawPointer(bitPattern: UInt($0) << 40) }
        for (number, type) in types.enumerated() {
            #expect(ferry_json_known_type(type) == 0)
            #expect(ferry_json_know_type(type, UInt(number + 1)) == UInt(number + 1))
        }
        for (number, type) in types.enumerated() {
            #expect(ferry_json_known_type(type) == UInt(number + 1))
            #expect(ferry_json_know_type(type, 1_000) == UInt(number + 1), "the first one stays")
        }
    }
}
