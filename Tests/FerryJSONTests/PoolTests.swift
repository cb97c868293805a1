import CFerryJSON
import FerryJSON
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

    @Test func oneParserServesOneTextAfterAnother() throws {
        for count in 1...2000 {
            let text = "[" + String(repeating: "1,", count: count) + "2]"
            #expect(try JSON(parsing: text).array?.count == count + 1)
        }
    }
}
