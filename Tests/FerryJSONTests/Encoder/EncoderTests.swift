import FerryJSON
import Foundation
import Testing

/// The encoder writes the same text as Foundation's, for every strategy and for types that request containers by hand.
@Suite struct EncoderTests {
    private func compare<T: Encodable>(
        _ value: T, foundation: (JSONEncoder) -> Void = { _ in }, ferry: (inout FerryJSONEncoder) -> Void = { _ in },
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let layouts: [(JSONEncoder.OutputFormatting, FerryJSONEncoder.OutputFormatting)] = [
            ([.sortedKeys], [.sortedKeys]), ([.sortedKeys, .prettyPrinted], [.sortedKeys, .prettyPrinted]),
            ([.sortedKeys, .withoutEscapingSlashes], [.sortedKeys, .withoutEscapingSlashes]),
        ]
        for (theirLayout, ourLayout) in layouts {
            let theirs = JSONEncoder()
            var ours = FerryJSONEncoder()
            foundation(theirs)
            ferry(&ours)
            theirs.outputFormatting = theirLayout
            ours.outputFormatting = ourLayout
            let expected = Outcome { String(decoding: try theirs.encode(value), as: UTF8.self) }
            let found = Outcome { String(decoding: try ours.encode(value), as: UTF8.self) }
            #expect(found == expected, sourceLocation: sourceLocation)
            // In any order the text has the same values.
            ours.outputFormatting = []
            guard case .value(let text) = expected, let json = try? JSON(parsing: text) else { continue }
            #expect(Outcome { try JSON(parsing: ours.encode(value)) } == .value(json), sourceLocation: sourceLocation)
        }
    }

    struct Dated: Encodable {
        var date = Date(timeIntervalSince1970: 1_580_472_000)
        var fraction: Date? = Date(timeIntervalSince1970: -1.75)
        var dates = ["a": Date(timeIntervalSince1970: 0)]
        var list = [Date(timeIntervalSince1970: 1e9)]
    }

    private struct NoDate: Error {}

    @Test func dates() {
        compare(Dated())
        compare(
            Dated(), foundation: { $0.dateEncodingStrategy = .iso8601 }, ferry: { $0.dateEncodingStrategy = .iso8601 })
        compare(
            Dated(), foundation: { $0.dateEncodingStrategy = .secondsSince1970 },
            ferry: { $0.dateEncodingStrategy = .secondsSince1970 })
        compare(
            Dated(), foundation: { $0.dateEncodingStrategy = .millisecondsSince1970 },
            ferry: { $0.dateEncodingStrategy = .millisecondsSince1970 })
        let custom: @Sendable (Date, any Encoder) throws -> Void = { date, encoder in
            if date.timeIntervalSince1970 == 0 { return }
            if date.timeIntervalSince1970 < 0 {
                var container = encoder.unkeyedContainer()
                return try container.encode("before")
            }
            var container = encoder.singleValueContainer()
            try container.encode("at \(Int(date.timeIntervalSince1970))")
        }
        compare(
            Dated(), foundation: { $0.dateEncodingStrategy = .custom(custom) },
            ferry: { $0.dateEncodingStrategy = .custom(custom) })
        compare(
            Date(timeIntervalSince1970: 0), foundation: { $0.dateEncodingStrategy = .custom(custom) },
            ferry: { $0.dateEncodingStrategy = .custom(custom) })
        compare(
            Dated(), foundation: { $0.dateEncodingStrategy = .custom { _, _ in throw NoDate() } },
            ferry: { $0.dateEncodingStrategy = .custom { _, _ in throw NoDate() } })
    }

    @Test func datesOfAFormat() {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "yyyy-MM-dd"
        let style = Date.ISO8601FormatStyle().year().month().day()
        compare(
            Dated(), foundation: { $0.dateEncodingStrategy = .formatted(formatter) },
            ferry: { $0.dateEncodingStrategy = .formatted(style) })
    }

    @Test func bytes() {
        let value = ["a": Data([1, 2, 255]), "b": Data(), "c": Data(repeating: 63, count: 100)]
        compare(value)
        compare(
            value, foundation: { $0.dataEncodingStrategy = .deferredToData },
            ferry: { $0.dataEncodingStrategy = .deferredToData })
        let custom: @Sendable (Data, any Encoder) throws -> Void = { data, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(data.count)
        }
        compare(
            value, foundation: { $0.dataEncodingStrategy = .custom(custom) },
            ferry: { $0.dataEncodingStrategy = .custom(custom) })
    }

    @Test func numbersThatJSONCannotWrite() {
        let value = ["a": [1.5, .infinity], "b": [-.infinity, .nan], "c": []]
        compare(["a": [Double.infinity]])
        compare([[1, Float.nan]])
        compare(Double.nan)
        compare(
            value,
            foundation: {
                $0.nonConformingFloatEncodingStrategy = .convertToString(
                    positiveInfinity: "+∞", negativeInfinity: "-\"", nan: "nan")
            },
            ferry: {
                $0.nonConformingFloatEncodingStrategy = .convertToString(
                    positiveInfinity: "+∞", negativeInfinity: "-\"", nan: "nan")
            })
    }

    private struct AnyKeys: Encodable {
        let names: [String]
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Inspected.AnyKey.self)
            for (place, name) in names.enumerated() {
                try container.encode([name: [place]], forKey: Inspected.AnyKey(stringValue: name)!)
            }
        }
    }

    @Test func keysInSnakeCase() {
        let names = [
            "", "a", "aB", "myURLProperty", "HTTPServer", "iOS", "a1B2", "already_snake", "_x", "ID", "userID", "aBCd",
            "éÜb", "xY_zW", "A", "aB1C", "1A", "x日本Y", "Aa", "aAA", "ǅa", "a\u{1F600}B",
        ]
        for name in names {
            compare(
                AnyKeys(names: [name]), foundation: { $0.keyEncodingStrategy = .convertToSnakeCase },
                ferry: { $0.keyEncodingStrategy = .convertToSnakeCase })
        }
        compare(
            Snake(createdAt: 1, innerValue: [SnakeInner(someId: 1, deepValue: ["aB": ["cD": 1]])], counts: ["eF": 1]),
            foundation: { $0.keyEncodingStrategy = .convertToSnakeCase },
            ferry: { $0.keyEncodingStrategy = .convertToSnakeCase })
    }

    @Test func keysOfOnesOwn() {
        let own: @Sendable ([any CodingKey]) -> any CodingKey = { path in
            Inspected.AnyKey(stringValue: path.map(\.stringValue).joined(separator: "/"))!
        }
        let value = [RandomPair(first: [1: "a"], second: [["b": 2]], isLast: true)]
        compare(
            value, foundation: { $0.keyEncodingStrategy = .custom(own) },
            ferry: { $0.keyEncodingStrategy = .custom(own) })
    }

    @Test func sortedKeysHaveFoundationsOrder() {
        let names = [
            "b", "a", "A", "a10", "a2", "é", "e\u{301}x", "z", "\u{1F600}", "\u{FFFD}", "a/b", "a\"", "a\\", "\n", "",
        ]
        compare(AnyKeys(names: names))
        compare(AnyKeys(names: names.reversed()))
        compare(Dictionary(uniqueKeysWithValues: names.enumerated().map { ($1, $0) }))
        compare((0..<200).map { "key\($0 * 7919 % 200)" }.reduce(into: [:]) { $0[$1] = $1 })
    }

    @Test(arguments: [3, 30, 300]) func ofAKeyThatComesTwiceTheLastValueStays(_ count: Int) {
        let names = (0..<count).map { "key\($0)" }
        compare(AnyKeys(names: names + names.reversed() + [names[0]]))
        compare(AnyKeys(names: ["x"] + names + ["x", "é\"", "é\""]))
    }

    /// Opens containers within containers and writes to them alternately.
    private struct Wandering: Encodable {
        enum Keys: String, CodingKey { case outer, list, own, last, absent }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(1, forKey: .own)
            var outer = container.nestedContainer(keyedBy: Keys.self, forKey: .outer)
            var list = container.nestedUnkeyedContainer(forKey: .list)
            try container.encode("x", forKey: .last)
            try list.encode(1)
            try outer.encode(true, forKey: .own)
            var deep = list.nestedUnkeyedContainer()
            try list.encodeNil()
            var deeper = deep.nestedContainer(keyedBy: Keys.self)
            try deeper.encode([1, 2], forKey: .list)
            try deep.encode("after")
            let parent = container.superEncoder()
            _ = container.superEncoder(forKey: .absent)
            _ = list.superEncoder()
            var again = encoder.container(keyedBy: Inspected.AnyKey.self)
            try again.encode(2.5, forKey: Inspected.AnyKey(stringValue: "again")!)
            var single = parent.singleValueContainer()
            try single.encode(["a": "b"])
            try outer.encodeNil(forKey: .last)
            let facts = [list.codingPath, deep.codingPath, deeper.codingPath, parent.codingPath, outer.codingPath]
            try list.encode(facts.map { $0.map(\.stringValue).joined(separator: ".") })
            try list.encode("\(list.count) \(deep.count)")
        }
    }

    @Test func containersThatAreFilledInTurns() {
        compare(Wandering())
        compare([Wandering(), Wandering()])
        compare(["a": ["b": Wandering()]])
    }

    /// Continues if a value cannot be encoded.
    private struct Forgiving: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Inspected.AnyKey.self)
            try container.encode(1, forKey: Inspected.AnyKey(stringValue: "a")!)
            try? container.encode([1, .infinity], forKey: Inspected.AnyKey(stringValue: "b")!)
            try? container.encode(Double.nan, forKey: Inspected.AnyKey(stringValue: "c")!)
            try? container.encode(["x": ["y": Float.nan]], forKey: Inspected.AnyKey(stringValue: "d")!)
            var list = container.nestedUnkeyedContainer(forKey: Inspected.AnyKey(stringValue: "e")!)
            try? list.encode(Double.nan)
            try list.encode(2)
            try? list.encode([[Double.nan]])
        }
    }

    /// Foundation's encoder cannot continue.
    @Test func whatCannotBeEncodedLeavesNothing() throws {
        let text = try FerryJSONEncoder().encode([Forgiving()])
        #expect(String(decoding: text, as: UTF8.self) == #"[{"a":1,"e":[2]}]"#)
    }

    private class Animal: Encodable {
        enum Keys: CodingKey { case name, legs }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode("animal", forKey: .name)
            try container.encode(4, forKey: .legs)
        }
    }

    private final class Bird: Animal {
        enum Keys: CodingKey { case name, wings }
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode("bird", forKey: .name)
            try super.encode(to: encoder)
            try container.encode(2, forKey: .wings)
        }
    }

    @Test func subclassesShareAContainerOrHaveTheirOwn() {
        compare(Bird())
        compare([Bird(), Animal()])
    }

    private struct Nothing: Encodable { func encode(to encoder: any Encoder) throws {} }
    private struct Empty: Encodable {}

    @Test func aValueThatEncodesNothingIsAnErrorOrAnEmptyObject() {
        compare(Nothing())
        compare([Nothing()])
        compare(["a": Nothing()])
        compare(Empty())
        compare([Empty()])
        compare([String: Int]())
        compare([[Int]]())
        compare(Int?.none)
        compare("text")
        compare(1.0)
    }

    @Test func keysThatAreNoStrings() {
        compare([1: "a", -2: "b"])
        compare([FoundationBehaviourTests.Side.left: 1, .right: 2])
        compare([Kind.one: 1])
        compare(["a": Int128.max])
        compare([Int128.min])
        compare(UInt128.max)
    }

    @Test func typesAreToldByTheUser() throws {
        struct Told: Encodable {
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(encoder.userInfo[CodingUserInfoKey(rawValue: "k")!] as? String)
            }
        }
        compare(
            [Told()], foundation: { $0.userInfo = [CodingUserInfoKey(rawValue: "k")!: "told"] },
            ferry: { $0.userInfo = [CodingUserInfoKey(rawValue: "k")!: "told"] })
    }

    @Test func documentsAreEncodedAsTheyWere() throws {
        let json = try JSON(parsing: #"{"b":[1,-2,1.5,"x/y",null,true,{"a":18446744073709551615}],"a":{}}"#)
        compare(json)
        #expect(try JSON(parsing: FerryJSONEncoder().encode(json)) == json)
    }

    @Test func anObjectOfManyMembersIsWrittenInLinearTime() throws {
        for layout: FerryJSONEncoder.OutputFormatting in [[], [.sortedKeys]] {
            let growth = try growthOfEightfold(2000) { count in
                let value = AnyKeys(names: (0..<count).map { "key\($0)" })
                var encoder = FerryJSONEncoder()
                encoder.outputFormatting = layout
                return { _ = try encoder.encode(value) }
            }
            #expect(growth < mostGrowth)
        }
    }

    /// An encoder that is used after its value is done is refused, without harm.
    @Test func whoKeepsAnEncoderIsRefused() throws {
        final class Keeping: Encodable {
            var kept: (any Encoder)?
            func encode(to encoder: any Encoder) throws {
                kept = encoder
                var container = encoder.unkeyedContainer()
                try container.encode(1)
            }
        }
        let keeping = Keeping()
        let text = try FerryJSONEncoder().encode([keeping])
        #expect(String(decoding: text, as: UTF8.self) == "[[1]]")
        let kept = try #require(keeping.kept)
        #expect(throws: EncodingError.self) {
            var container = kept.singleValueContainer()
            try container.encode(1)
        }
        var list = kept.unkeyedContainer()
        #expect(throws: EncodingError.self) { try list.encode(1) }
        var inner = list.nestedUnkeyedContainer()
        try inner.encode(1)
    }

    @Test func aValueNestedTooDeeplyForTheStackIsAnError() throws {
        final class Link: Encodable {
            enum Keys: CodingKey { case next }
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Keys.self)
                try container.encode(self, forKey: .next)
            }
        }
        #expect(throws: EncodingError.self) { try FerryJSONEncoder().encode(Link()) }
    }

    /// What is kept for a type is made once. Whether what came second is freed is for the sanitizers.
    @Test func threadsThatMeetATypeAtOnce() {
        func meet<T: Codable & Equatable & Sendable>(_ value: T, depth: Int) {
            let text = String(repeating: "[", count: depth) + "7" + String(repeating: "]", count: depth)
            DispatchQueue.concurrentPerform(iterations: 8) { _ in
                #expect((try? FerryJSONEncoder().encode(value)).map { String(decoding: $0, as: UTF8.self) } == text)
                #expect((try? FerryJSONDecoder().decode(T.self, from: Data(text.utf8))) == value)
            }
            if depth < 40 { meet([value], depth: depth + 1) }
        }
        meet(Int8(7), depth: 0)
    }
}
