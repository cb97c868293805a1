import CFerryJSON
import FerryJSON
import Foundation
import Testing

@Suite(.serialized) struct PoolTests {
    @Test func parsersGoBackToThePoolAndAreBounded() async throws {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for size in [1, 100, 10_000, 200_000] {
                        let text = "[\"" + String(repeating: "x", count: size) + "\"]"
                        let documents = (0..<20).compactMap { _ in try? JSON(parsing: text) }
                        #expect(documents.allSatisfy { $0[0]?.string?.utf8.count == size })
                    }
                }
            }
        }
        #expect((1...74).contains(ferry_json_pooled()))
    }

    @Test func whatIsNotUsedForAMinuteIsFreed() throws {
        let text = "[\"" + String(repeating: "x", count: 2 << 20) + "\"]"
        let documents = try (0..<2).map { _ in try JSON(parsing: text) }
        let small = try (0..<20).map { try JSON(parsing: "[\($0)]") }
        #expect(documents.count + small.count == 22)
        withExtendedLifetime((documents, small)) {}
        let waiting = ferry_json_pooled()
        ferry_json_pool_look(30)
        #expect(ferry_json_pooled() >= min(waiting, 10))
        ferry_json_pool_look(120)
        #expect(ferry_json_pooled() < 10)
        #expect(try JSON(parsing: "[1]")[0]?.int == 1)
    }

    /// Parsers for more than 1 MiB, although nobody releases another document.
    @Test func largeParsersAreFreedWhenNothingIsParsedAnyMore() async throws {
        ferry_json_pool_look(120)
        ferry_json_pool_wait(20)
        defer { ferry_json_pool_wait(60_000) }
        for _ in 0..<3 {
            _ = try JSON(parsing: "[\"" + String(repeating: "x", count: 3 << 20) + "\"]")
            let end = ContinuousClock.now + .seconds(20)
            while ferry_json_pooled() > 0, ContinuousClock.now < end { await Task.yield() }
            #expect(ferry_json_pooled() == 0)
        }
    }

    @Test func aViewOfALargeDocumentKeepsNoCopyOfItsText() throws {
        let text = "[\"" + String(repeating: "x", count: 64 << 20) + "\",[1,2,{\"a\":true}]]"
        let before = try Self.residentBytes()
        let json = try JSON(parsing: text)
        let after = try Self.residentBytes()
        // The string itself, and little else. The sanitizer keeps a shadow byte for every eight bytes.
        #if FERRY_ASAN
        let bound = 130 << 20
        #else
        let bound = 100 << 20
        #endif
        #expect(after - before < bound, "\((after - before) >> 20) MiB")
        #expect(json[1]?[2]?["a"]?.bool == true)
        #expect(json[0]?.string?.utf8.count == 64 << 20)
    }

    #if !FERRY_ASAN
    /// The sanitizer keeps what is freed for a while.
    @Test func longKeysThatWereAskedForAreNotKept() throws {
        let json = try JSON(parsing: #"{"a":1,"b":2}"#)
        let before = try Self.residentBytes()
        let long = String(decoding: [UInt8](repeating: 0x78, count: 8 << 20), as: UTF8.self)
        for number in 0..<16 {
            let key = long + "\(number)"
            #expect(json[key] == nil && json["b"]?.int == 2)
        }
        let after = try Self.residentBytes()
        #expect(after - before < 64 << 20, "\((after - before) >> 20) MiB")
    }
    #endif

    private static func residentBytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        return try #require(Int(status.split(separator: " ")[1])) * sysconf(Int32(_SC_PAGESIZE))
    }

    @Test func oneParserServesOneTextAfterAnother() throws {
        for count in 1...2000 {
            let text = "[" + String(repeating: "1,", count: count) + "2]"
            #expect(try JSON(parsing: text).array?.count == count + 1)
        }
    }
}
