import CFerryJSON
import FerryJSON
import Testing

@Suite struct PoolTests {
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

    @Test func oneParserServesOneTextAfterAnother() throws {
        for count in 1...2000 {
            let text = "[" + String(repeating: "1,", count: count) + "2]"
            #expect(try JSON(parsing: text).array?.count == count + 1)
        }
    }
}
