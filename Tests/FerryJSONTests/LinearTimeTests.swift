import FerryJSON
import Testing

/// No choice of keys and texts in a document makes checking or comparing it take quadratic time.
@Suite struct LinearTimeTests {
    private func members(_ keys: some Sequence<String>, _ value: String) -> String {
        keys.map { "\"\($0)\":\(value)" }.joined(separator: ",")
    }

    @Test func aKeyThatStandsManyTimesIsCheckedInLinearTime() throws {
        let schema: JSONSchema = ["a": .string]
        let growth = try growthOfEightfold(2000) { count in
            let json = try JSON(parsing: "{\(members(repeatElement("a", count: count), "1")),\"a\":\"x\"}")
            return { try schema.check(json) }
        }
        #expect(growth < mostGrowth)
    }

    @Test func manyKeysThatStandTwiceAreCheckedInLinearTime() throws {
        let schema = JSONSchema.dictionary(of: .string)
        let growth = try growthOfEightfold(1000) { count in
            let keys = (0..<count).map { "key\($0)" }
            let json = try JSON(parsing: "{\(members(keys, "1")),\(members(keys, "\"x\""))}")
            return { try schema.check(json) }
        }
        #expect(growth < mostGrowth)
    }

    @Test func manyKeysThatStandTwiceAreDecodedInLinearTime() throws {
        let growth = try growthOfEightfold(1000) { count in
            let keys = (0..<count).map { "key\($0)" }
            let json = try JSON(parsing: "{\(members(keys, "\"x\"")),\(members(keys, "1"))}")
            return {
                let decoded = try FerryJSONDecoder().decode([String: Int].self, from: json)
                #expect(decoded.count == count)
            }
        }
        #expect(growth < mostGrowth)
    }

    @Test func ofAKeyThatStandsManyTimesOnlyTheLastHasToFit() throws {
        let keys = (0..<100).map { "key\($0)" }
        let twice = "\(members(keys, "1")),\(members(keys, "\"x\""))"
        for schema in [JSONSchema.dictionary(of: .string), ["key7": .string, "key99": .string]] {
            try schema.check(JSON(parsing: "{\(twice)}"))
            let error = #expect(throws: JSONMismatch.self) { try schema.check(JSON(parsing: "{\(twice),\"key7\":2}")) }
            #expect(error?.description == "$.key7: expected string, found number")
        }
    }

    @Test func wideObjectsAreComparedInLinearTime() throws {
        let growth = try growthOfEightfold(500) { count in
            let keys = (0..<count).map { "key\($0)" }
            let a = try JSON(parsing: "{\(members(keys, "[1]"))}")
            let b = try JSON(parsing: "{\(members(keys.reversed(), "[1.0]"))}")
            return { #expect(a == b) }
        }
        #expect(growth < mostGrowth)
    }

    @Test(arguments: [63, 64, 65, 200]) func wideObjectsAreEqualInAnyOrder(_ count: Int) throws {
        let keys = (0..<count).map { "key\($0)" }
        let json = try JSON(parsing: "{\(members(keys, "1"))}")
        let shuffled = try JSON(parsing: "{\(members(keys.reversed(), "1.0"))}")
        let repeated = try JSON(parsing: "{\"key3\":2,\(members(keys + keys, "1"))}")
        #expect(json == shuffled && json == repeated && repeated == json)
        #expect(json.hashValue == shuffled.hashValue && json.hashValue == repeated.hashValue)
        for other in ["\"key3\":2", "\"key\":1", "\"key3\":[1]"] {
            let changed = try JSON(parsing: "{\(members(keys, "1")),\(other)}")
            #expect(json != changed && changed != json && repeated != changed)
        }
        let fewer = try JSON(parsing: "{\(members(keys.dropLast(), "1")),\"key0\":1}")
        #expect(json != fewer && fewer != json)
    }

    @Test(arguments: ["[a-z]+[0-9]", #"[a-z0-9._]+@[a-z]+"#, "(a|b)+c", "^b|a+c$", "a{2,}b"])
    func aPatternThatIsNotAnchoredTakesLinearTime(_ pattern: String) throws {
        let schema = JSONSchema.string(matching: pattern)
        let growth = try growthOfEightfold(1000) { count in
            let text = JSON(String(repeating: "a", count: count))
            return { #expect(throws: JSONMismatch.self) { try schema.check(text) } }
        }
        #expect(growth < mostGrowth)
    }
}
