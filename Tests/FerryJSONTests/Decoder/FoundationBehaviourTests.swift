import FerryJSON
import Foundation
import Testing

/// Behaviour that types can observe besides values: names, paths and kinds of errors are those of Foundation.
@Suite struct FoundationBehaviourTests {
    private static let snake = Strategies(
        foundation: { $0.keyDecodingStrategy = .convertFromSnakeCase },
        ferry: { $0.keyDecodingStrategy = .convertFromSnakeCase })
    private static let iso8601 = Strategies(
        foundation: { $0.dateDecodingStrategy = .iso8601 }, ferry: { $0.dateDecodingStrategy = .iso8601 })

    private func compare<T: Decodable & Equatable>(
        _ type: T.Type, _ text: String, _ strategies: Strategies = Strategies(),
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let (foundation, ferry) = strategies.outcomes(type, text)
        #expect(foundation == ferry, "\(type) \(text)", sourceLocation: sourceLocation)
    }

    @Test(
        "A word of a snake case key also begins after digits and punctuation",
        arguments: [
            "icon_2x", "a_2b_c3d", "a_1b2c", "_icon_2x_", "a_b-c", "a_b.c_d'e", "a_-b", "a_b c", "x_ßa", "x_éa", "a_ǆb",
            "a_日本", "__2x", "2_x", "a_B2B", "a_iOS_app", "A_2X", "a_b\u{301}c", "a_\u{1F600}b",
        ])
    func wordsOfSnakeCase(_ key: String) {
        compare(StrategyTests.FirstKey.self, (["\(key)": 1] as JSON).description, Self.snake)
    }

    struct Accented: Codable, Equatable {
        enum CodingKeys: String, CodingKey {
            case composed = "caf\u{e9}"
            case decomposed = "nai\u{308}ve"
            case ascii = "K"
        }
        var composed: Int?
        var decomposed: Int?
        var ascii: Int?
    }

    @Test func keysAreComparedByCanonicalEquivalence() throws {
        for text in [
            #"{"café":1,"naïve":2,"K":3}"#, "{\"cafe\u{301}\":1,\"na\u{ef}ve\":2,\"\u{212a}\":3}",
            "{\"caf\u{e9}\":1,\"nai\u{308}ve\":2}", "{\"cafe\":1,\"naive\":2,\"k\":3}",
        ] {
            compare(Accented.self, text)
            compare([Accented].self, "[\(text),{},\(text)]")
            compare([String: Int].self, text)
        }
        let decoded = try FerryJSONDecoder().decode(Accented.self, from: Data("{\"\u{212a}\":3}".utf8))
        #expect(decoded.ascii == 3)
    }

    struct Dates: Decodable, Equatable {
        var date: Date?
        var dates: [Date?]?
        var byName: [String: Date]?
        var wrapped: Wrapped?
    }

    /// Asks a single value container for its date.
    struct Wrapped: Decodable, Equatable {
        var date: Date
        init(from decoder: any Decoder) throws {
            date = try decoder.singleValueContainer().decode(Date.self)
        }
    }

    @Test func aDateThatIsNoneHasFoundationsPath() {
        for text in [
            #"{"date":"x"}"#, #"{"date":1}"#, #"{"dates":[null,"x"]}"#, #"{"dates":["2020-01-01T00:00:00Z",2]}"#,
            #"{"byName":{"a":"x"}}"#, #"{"byName":{"a":[]}}"#, #"{"wrapped":"x"}"#, #"{"wrapped":null}"#,
            #"{"wrapped":1}"#,
        ] {
            compare(Dates.self, text, Self.iso8601)
            compare([Dates?].self, "[null,\(text)]", Self.iso8601)
        }
        for text in [#""x""#, "1", "null"] {
            compare(Date.self, text, Self.iso8601)
            compare(Date?.self, text, Self.iso8601)
            compare(Wrapped.self, text, Self.iso8601)
            compare([Wrapped?].self, "[\(text)]", Self.iso8601)
            compare([String: Date?].self, "{\"a\":\(text)}", Self.iso8601)
            compare([[Date]].self, "[[\(text)]]", Self.iso8601)
        }
    }

    @Test func datesAreReadAsFoundationReadsThem() {
        let days = ["0001-01-01", "1582-10-15", "1583-01-01", "1900-02-28", "1969-12-31", "2000-02-29", "2023-02-29"]
        let more = ["2024-02-29", "2024-12-31", "2100-02-29", "9999-12-31", "2024-00-10", "2024-13-01", "2024-04-31"]
        let times = ["00:00:00Z", "23:59:59Z", "24:00:00Z", "12:60:00Z", "12:00:60Z", "12:00:00", "1a:00:00Z"]
        for day in days + more { for time in times { compare(Date.self, "\"\(day)T\(time)\"", Self.iso8601) } }
        for text in ["2024-01-01 00:00:00Z", "2024-01-01t00:00:00z", "2024-1-1T00:00:00Z", "20240101T000000Z"] {
            compare(Date.self, "\"\(text)\"", Self.iso8601)
        }
    }

    @Test(arguments: ["01", "1", "+1", "-0", "0x1", " 1", "1.0", "9223372036854775808", "a"])
    func keysOfDictionariesHaveFoundationsIntegers(_ key: String) {
        compare([Int: Bool].self, "{\"\(key)\":1}")
        compare([String: Bool].self, "{\"\(key)\":1}")
        compare([String: [String: Bool?]].self, "{\"\(key)\":{\"\(key)\":1}}")
        compare([Int: [Bool]].self, "{\"\(key)\":[1]}")
        compare([Side: [Bool]].self, "{\"\(key)\":[1]}")
        compare([Side: Plain].self, "{\"left\":{\"text\":\"\(key)\"}}")
        compare([String: Plain].self, "{\"\(key)\":{\"text\":\"\(key)\"}}", Self.snake)
        compare([Side: Bool].self, "{\"le_ft\":1,\"left\":true}", Self.snake)
    }

    enum Side: String, Codable, CodingKeyRepresentable { case left, right, leFt }

    /// Asks the decoder for a superclass's members at an absent key, in one of many ways.
    struct Parent: Decodable, Equatable {
        enum Keys: CodingKey { case absent }
        var errors: [String] = []

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            for parent in [try container.superDecoder(), try container.superDecoder(forKey: .absent)] {
                let single = try parent.singleValueContainer()
                note { try parent.container(keyedBy: Keys.self) }
                note { try parent.unkeyedContainer() }
                note { single.decodeNil() }
                note { try single.decode(Bool.self) }
                note { try single.decode(String.self) }
                note { try single.decode(Int.self) }
                note { try single.decode(Double.self) }
                note { try single.decode(UInt8.self) }
                note { try single.decode(Date.self) }
                note { try single.decode(Data.self) }
                note { try single.decode(URL.self) }
                note { try single.decode(UUID.self) }
                note { try single.decode(Decimal.self) }
                note { try single.decode([Int].self) }
                note { try single.decode([String: Int].self) }
                note { try single.decode(Plain.self) }
                note { try single.decode(Kind.self) }
                note { try single.decode(Int?.self) }
                note { try Plain(from: parent) }
            }
        }

        private mutating func note<T>(_ body: () throws -> T) {
            switch Outcome(
                {
                    _ = try body()
                    return true
                })
            {
            case .value: errors.append("a value")
            case .error(let text): errors.append(text)
            }
        }
    }

    @Test func absentSuperclassesAreRefusedAsFoundationRefusesThem() {
        compare(Parent.self, "{}")
        compare([String: [Parent]].self, #"{"a":[{},{}]}"#)
        compare([Parent].self, "[{}]", Self.iso8601)
        compare([Parent].self, "[{}]", Self.snake)
    }

    /// A few of many keys, in any order, some of them absent.
    struct Picked: Decodable, Equatable {
        var values: [Int?] = []
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Inspected.AnyKey.self)
            for name in decoder.userInfo[Self.names] as? [String] ?? [] {
                let key = Inspected.AnyKey(stringValue: name)!
                let isThere = container.contains(key)
                values.append(isThere ? try container.decode(Int.self, forKey: key) : nil)
                #expect(try container.decodeIfPresent(Int.self, forKey: key) == values.last!)
            }
        }
        static let names = CodingUserInfoKey(rawValue: "names")!
    }

    @Test("Objects whose keys change in number, order and name are read like any other", arguments: 0..<60)
    func objectsOfChangingKeys(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let most = [3, 20, 40, 70, 300][Int(seed % 5)]
        let all = (0..<most).map { seed % 3 == 0 ? "some_key_\($0)" : seed % 3 == 1 ? "k\($0)é" : "key\($0)" }
        var keys = all.shuffled(using: &random)
        var objects: [String] = []
        for _ in 0..<12 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0: keys.shuffle(using: &random)
            case 1: keys = Array(keys.dropLast(Int.random(in: 0...2, using: &random)))
            case 2: keys.insert("other\(objects.count)", at: Int.random(in: 0...keys.count, using: &random))
            case 3: keys = all
            default: break
            }
            objects.append(
                "{\(keys.map { "\"\($0)\":\(Int.random(in: 0..<100, using: &random))" }.joined(separator: ","))}")
        }
        let asked = (all + ["absent", "other3"]).shuffled(using: &random).prefix(Int.random(in: 1...50, using: &random))
        for isSnake in [false, true] {
            let names = asked.map { isSnake ? $0.replacingOccurrences(of: "some_key_", with: "someKey") : $0 }
            let strategies = Strategies(
                foundation: {
                    $0.userInfo[Picked.names] = names
                    if isSnake { $0.keyDecodingStrategy = .convertFromSnakeCase }
                },
                ferry: {
                    $0.userInfo[Picked.names] = names
                    if isSnake { $0.keyDecodingStrategy = .convertFromSnakeCase }
                })
            compare([Picked].self, "[\(objects.joined(separator: ","))]", strategies)
            compare([[String: Int]].self, "[\(objects.joined(separator: ","))]", strategies)
        }
    }

    @Test("Decimals have all digits that Foundation keeps", arguments: 0..<200)
    func decimals(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        func digits(_ count: Int) -> String {
            (0..<count).map { _ in "\(Int.random(in: 0...9, using: &random))" }.joined()
        }
        let whole =
            Bool.random(using: &random) ? "0" : "\(Int.random(in: 1...9, using: &random))" + digits(Int(seed % 17))
        var text = (Bool.random(using: &random) ? "-" : "") + whole
        text += "." + digits(1 + Int.random(in: 0..<(36 - whole.count), using: &random))
        if seed % 3 == 0 { text += "e\(Int.random(in: -20...20, using: &random))" }
        let strategies = Strategies().outcomes([Decimal].self, "[\(text)]")
        #expect(strategies.foundation == strategies.ferry, "\(text)")
    }

    @Test(arguments: [
        "E621E1F8-C36C-495A-93FC-0C247A3E6E5F", "e621e1f8-c36c-495a-93fc-0c247a3e6e5f",
        "E621E1F8C36C495A93FC0C247A3E6E5F", "E621E1F8-C36C-495A-93FC-0C247A3E6E5", "",
        "G621E1F8-C36C-495A-93FC-0C247A3E6E5F",
        "E621E1F8-C36C-495A-93FC0-C247A3E6E5F", "E621E1F8-C36C-495A-93FC-0C247A3E6E5F ",
    ])
    func identifiers(_ text: String) { compare([UUID].self, "[\"\(text)\"]") }
}

/// The same numbers for the same seed.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 &+ 1 }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = (state ^ state >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}
