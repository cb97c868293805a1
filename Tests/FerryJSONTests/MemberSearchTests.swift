import FerryJSON
import Testing

/// A search for a member starts where the last one ended, which must not be noticeable.
@Suite struct MemberSearchTests {
    private func object(_ keys: [String]) throws -> JSON {
        try JSON(parsing: "{" + keys.enumerated().map { "\(JSON($1)): \($0)" }.joined(separator: ",") + "}")
    }

    /// The expected result for every member: the last one with its key.
    private func expectAll(_ keys: [String], in json: JSON, by order: [Int]) {
        for index in order {
            let key = keys[index]
            #expect(json[key]?.int == keys.lastIndex(of: key), "\(key) of \(keys)")
            #expect(json.object?[key]?.int == keys.lastIndex(of: key))
        }
    }

    @Test(arguments: [
        [], ["a"], ["a", "b", "c"], ["a", "a"], ["a", "b", "a"], ["a", "b", "b"], ["", "a", ""],
        ["ab", "ac", "ab", "b"],
        ["abcd", "abce", "abcd"], ["abcdefgh", "abcdefgi", "abcdXfgh", "abcdefgh"],
        ["a", "aa", "aaa", "aaaa", "aaaaa"],
        ["key", "ключ", "ключи", "key"], ["a\u{0}", "a", "a\u{0}"],
        ["a key of more than sixteen bytes", "a key of more than sixteen byteS", "a key of more than sixteen bytes"],
    ])
    func everyMemberIsFoundInAnyOrder(_ keys: [String]) throws {
        let orders = [
            Array(keys.indices), keys.indices.reversed(), Array(keys.indices) + Array(keys.indices),
            keys.indices.flatMap { [$0, $0] }, Array(keys.indices.dropFirst(1)) + Array(keys.indices.prefix(1)),
        ]
        for order in orders {
            let json = try object(keys)
            expectAll(keys, in: json, by: order)
            for absent in ["x", "abc", "a key of more than sixteen", "aaaaaa", "abcdefgg"] {
                #expect(json[absent] == nil)
            }
            expectAll(keys, in: json, by: order)
        }
    }

    @Test(arguments: [1, 63, 64, 65, 300]) func largeObjects(_ count: Int) throws {
        let unique = (0..<count).map { "key\($0)" }
        for keys in [unique, unique + ["key0"], unique + [unique[count - 1]]] {
            expectAll(keys, in: try object(keys), by: Array(keys.indices))
        }
    }

    @Test func objectsWithinObjects() throws {
        let json = try JSON(parsing: #"{"a": {"a": 1, "b": 2}, "b": {"b": 3, "a": 4}, "c": {"a": 5}, "a": {"a": 6}}"#)
        for _ in 0..<3 {
            #expect(json["a"]?["a"] == 6)
            #expect(json["b"]?["b"] == 3)
            #expect(json["b"]?["a"] == 4)
            #expect(json["a"]?["b"] == nil)
            #expect(json["c"]?["a"] == 5)
        }
        let built: JSON = ["a": ["x": 1], "b": 2, "c": ["x": 3, "y": 4]]
        for _ in 0..<3 {
            #expect(built["a"]?["x"] == 1 && built["b"] == 2 && built["c"]?["y"] == 4 && built["c"]?["x"] == 3)
        }
    }

    /// A parser from the pool keeps no note of its last document.
    @Test func documentsDoNotKnowOfOneAnother() throws {
        for _ in 0..<100 {
            do {
                let json = try JSON(parsing: #"{"a": 1, "b": 2}"#)
                #expect(json["a"] == 1)
            }
            let json = try JSON(parsing: #"{"b": 1, "b": 2}"#)
            #expect(json["b"] == 2)
        }
    }

    @Test func threadsSearchOneDocument() async throws {
        let keys = (0..<20).map { "key\($0)" }
        let json = try JSON(parsing: "[\((0..<8).map { _ in try! object(keys).description }.joined(separator: ","))]")
        await withTaskGroup(of: Bool.self) { group in
            for task in 0..<8 {
                group.addTask {
                    (0..<200).allSatisfy { round in
                        keys.indices.allSatisfy { json[(task + round) % 3]?[keys[$0]]?.int == $0 }
                    }
                }
            }
            for await isRight in group { #expect(isRight) }
        }
    }

    /// Compared with a simple search, on random documents with few keys.
    @Test func randomObjects() throws {
        var random = SystemRandomNumberGenerator()
        let names = [
            "a", "b", "ab", "abc", "abcd", "abcde", "abcdf", "abcdefghij", "abcdefghik", "é", "", "zzzzzzzzzzzzzzzzzz",
        ]
        for _ in 0..<500 {
            let keys = (0..<Int.random(in: 1...10, using: &random)).map { _ in names.randomElement(using: &random)! }
            let order = (0..<20).map { _ in Int.random(in: 0..<keys.count, using: &random) }
            expectAll(keys, in: try object(keys), by: order)
        }
    }

    /// Objects with random differences, searched one after another. Each search is compared with one that goes through
    /// all members.
    @Test func objectsThatAreAlmostAlikeAreToldApart() throws {
        var random = SystemRandomNumberGenerator()
        let values = ["1", "-2.5", "null", "true", "\"text\"", "\"key3\"", "[1,2]", "{\"key1\":1}", "[]", "{}", "\"\""]
        for width in [2, 11, 12, 13, 40, 64, 65, 255, 256, 257] {
            let keys = (0..<width).map {
                $0 % 3 == 0 ? "key\($0)" : $0 % 3 == 1 ? "k\($0)" : "a long key, number \($0)"
            }
            let base = keys.map { (key: $0, value: values.randomElement(using: &random)!) }
            let objects = (0..<30).map { number in
                var members = base
                for _ in 0..<Int.random(in: 0...2, using: &random) {
                    let place = Int.random(in: 0..<width, using: &random)
                    switch Int.random(in: 0..<5, using: &random) {
                    case 0: members[place].value = values.randomElement(using: &random)!
                    case 1: members[place].key = members.randomElement(using: &random)!.key
                    case 2: members[place].key += "x"
                    case 3: members.swapAt(place, Int.random(in: 0..<width, using: &random))
                    default: members[place].key = String(members[place].key.dropLast()) + "~"
                    }
                }
                return "{" + members.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
            }
            let document = try JSON(parsing: "[" + objects.joined(separator: ",") + "]")
            let asked = (0..<5).map { _ in keys.randomElement(using: &random)! } + ["absent", keys[width - 1]]
            for object in document.array! {
                for key in asked {
                    let expected = Array(object.object!).last { $0.key == key }?.value
                    #expect(object[key]?.description == expected?.description, "\(key) of \(width)")
                }
            }
        }
    }

    @Test func aKeyThatStandsTwiceInOneOfManyAlikeObjectsCountsWithItsLastValue() throws {
        let members = (0..<20).map { "\"member\($0)\":\($0)" }.joined(separator: ",")
        let twice = "{\(members.replacing("member19", with: "member3"))}"
        let document = try JSON(parsing: "[{\(members)},{\(members)},\(twice),{\(members)},\(twice)]")
        #expect(document.array?.map { $0["member3"]?.int } == [3, 3, 19, 3, 19])
        #expect(document.array?.map { $0["member19"]?.int } == [19, 19, nil, 19, nil])
    }

    /// The strings of two objects are the same in sequence, but not all of them are keys.
    @Test func aTextThatReadsLikeAKeyIsNone() throws {
        let numbers = (0..<20).map { "\"m\($0)\":1" }
        var texts = numbers
        texts[10] = "\"m10\":\"m11\""
        texts.remove(at: 11)
        texts.append("\"m20\":1")
        let document = try JSON(
            parsing: "["
                + [numbers, numbers, texts, numbers].map { "{\($0.joined(separator: ","))}" }.joined(separator: ",")
                + "]")
        #expect(document.array?.map { $0["m11"]?.int } == [1, 1, nil, 1])
        #expect(document.array?.map { $0["m19"]?.int } == [1, 1, 1, 1])
    }
}
