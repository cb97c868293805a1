import CAllocations
import FerryJSON
import Testing

/// The number of allocations for a document once the pool of parsers is warm: counted, not timed.
@Suite(.enabled(if: allocations_are_counted())) struct AllocationTests {
    private static let spare = 64
    /// With padding after it, like bodies.
    private static func padded(_ text: String) -> [UInt8] {
        Array(text.utf8) + [UInt8](repeating: 0, count: spare)
    }

    private static let users = padded(
        "["
            + (0..<12).map {
                #"{"id":\#($0),"nick":"user number \#($0)","tags":["a","b"],"owner":{"id":1},"note":null}"#
            }
            .joined(separator: ",") + "]")
    private static let user: JSONSchema = [
        "id": .integer(in: 0...99), "nick": .string(minLength: 1), "tags": [.string], "owner": ["id": .number],
        "note": .string.nullable.optional,
    ]
    private static let schema: JSONSchema = [user]

    /// The allocations of one call, averaged over a thousand; the first calls warm up.
    private func allocations(_ body: () throws -> Void) rethrows -> Double {
        for _ in 0..<10 { try body() }
        let before = allocations_of_thread()
        for _ in 0..<1000 { try body() }
        return Double(allocations_of_thread() - before) / 1000
    }

    private func withText<R>(_ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0.dropLast(Self.spare))) }
    }

    @Test func theCounterCounts() {
        #expect(allocations { withExtendedLifetime(Box()) {} } == 1)
    }

    private final class Box { var value = 1 }

    @Test func aSchemaCheckAllocatesNothing() throws {
        try withText(Self.users) { text in
            let count = try allocations { try Self.schema.check(parsing: text, spare: Self.spare) }
            #expect(count == 0)
        }
    }

    @Test func norDoesOneThatCopiesTheText() throws {
        try withText(Self.users) { text in
            let count = try allocations { try Self.schema.check(parsing: text, spare: 0) }
            #expect(count == 0)
        }
    }

    @Test func aTextThatIsRefusedAtItsEndNeedsNoMoreThanOthers() {
        withText(Self.padded("[" + String(repeating: "1,", count: 500) + "1.1.1]")) { text in
            let count = allocations { #expect((try? JSON(parsing: text, spare: Self.spare)) == nil) }
            // The parser copies each number that is a whole document.
            #expect(count < 1000)
        }
    }

    @Test func aDocumentIsOneBlockAndItsViewsAreNone() throws {
        try withText(Self.users) { text in
            let parsing = try allocations { _ = try JSON(parsing: text, spare: Self.spare) }
            #expect(parsing == 1)
            let json = try JSON(parsing: text, spare: Self.spare)
            let checking = try allocations { try Self.schema.check(json) }
            #expect(checking == 0)
            let looking = allocations { _ = json[3]?["owner"]?["id"]?.int }
            #expect(looking == 0)
        }
    }
}
