import FerryJSON
import Foundation
import Testing

@Suite struct StrategyTests {
    private func compare<T: Decodable & Equatable>(
        _ type: T.Type, _ strategies: Strategies, _ documents: [String],
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for document in documents {
            for text in [document] + (try JSON(parsing: document)).variations.map(\.description) {
                let (foundation, ferry) = strategies.outcomes(type, text)
                #expect(foundation == ferry, "\(text)", sourceLocation: sourceLocation)
            }
        }
    }

    @Test func dates() throws {
        let documents = [
            #"{"a":["2020-01-31T12:00:00Z"]}"#, #"{"a":["2020-01-31T12:00:00+02:00","2020-01-31"]}"#,
            #"{"a":[1580472000.5]}"#,
            #"{"a":[1580472000500]}"#, #"{"a":[-1]}"#, #"{"a":["2020-13-31T12:00:00Z"]}"#,
            #"{"a":["2020-01-31T12:00:00.123Z"]}"#,
        ]
        let all: [Strategies] = [
            Strategies(
                foundation: { $0.dateDecodingStrategy = .iso8601 }, ferry: { $0.dateDecodingStrategy = .iso8601 }),
            Strategies(
                foundation: { $0.dateDecodingStrategy = .secondsSince1970 },
                ferry: { $0.dateDecodingStrategy = .secondsSince1970 }),
            Strategies(
                foundation: { $0.dateDecodingStrategy = .millisecondsSince1970 },
                ferry: { $0.dateDecodingStrategy = .millisecondsSince1970 }),
            Strategies(),
            Strategies(
                foundation: {
                    $0.dateDecodingStrategy = .custom { try Date(timeIntervalSince1970: Double(String(from: $0)) ?? 0) }
                },
                ferry: {
                    $0.dateDecodingStrategy = .custom { try Date(timeIntervalSince1970: Double(String(from: $0)) ?? 0) }
                }),
        ]
        for strategies in all { try compare([String: [Date]].self, strategies, documents) }
    }

    @Test func datesOfAFormat() throws {
        let foundation: @Sendable (JSONDecoder) -> Void = {
            let formatter = DateFormatter()
            formatter.locale = Locale(identifier: "en_US_POSIX")
            formatter.timeZone = TimeZone(secondsFromGMT: 0)
            formatter.dateFormat = "yyyy-MM-dd"
            $0.dateDecodingStrategy = .formatted(formatter)
        }
        let style = Date.ISO8601FormatStyle().year().month().day()
        try compare(
            [String: [Date]].self,
            Strategies(foundation: foundation, ferry: { $0.dateDecodingStrategy = .formatted(style) }),
            [#"{"a":["2020-01-31","2021-12-01"]}"#])
    }

    @Test func bytes() throws {
        let documents = [
            #"{"a":"aGk="}"#, #"{"a":"aGk"}"#, #"{"a":[104,105]}"#, #"{"a":[256]}"#, #"{"a":""}"#, #"{"a":"?"}"#,
        ]
        try compare([String: Data].self, Strategies(), documents)
        try compare(
            [String: Data].self,
            Strategies(
                foundation: { $0.dataDecodingStrategy = .deferredToData },
                ferry: { $0.dataDecodingStrategy = .deferredToData }),
            documents)
        try compare(
            [String: Data].self,
            Strategies(
                foundation: { $0.dataDecodingStrategy = .custom { try Data(String(from: $0).utf8) } },
                ferry: { $0.dataDecodingStrategy = .custom { try Data(String(from: $0).utf8) } }), documents)
    }

    @Test func numbersThatJSONCannotWrite() throws {
        let strategies = Strategies(
            foundation: {
                $0.nonConformingFloatDecodingStrategy = .convertFromString(
                    positiveInfinity: "+inf", negativeInfinity: "-inf", nan: "nan")
            },
            ferry: {
                $0.nonConformingFloatDecodingStrategy = .convertFromString(
                    positiveInfinity: "+inf", negativeInfinity: "-inf", nan: "nan")
            })
        try compare([Double].self, strategies, [#"["+inf","-inf",1]"#, #"["inf"]"#])
        try compare([Float].self, strategies, [#"["+inf","-inf",1]"#, #"["inf"]"#])
        var decoder = FerryJSONDecoder()
        strategies.ferry(&decoder)
        #expect(try decoder.decode([Double].self, from: Data(#"["nan"]"#.utf8))[0].isNaN)
        try compare([Double].self, Strategies(), [#"["+inf"]"#])
    }

    @Test func keysInSnakeCase() throws {
        let strategies = Strategies(
            foundation: { $0.keyDecodingStrategy = .convertFromSnakeCase },
            ferry: { $0.keyDecodingStrategy = .convertFromSnakeCase })
        try compare(
            Snake.self, strategies,
            [
                #"{"created_at":1,"_last_seen_URL":"x","inner_value":[{"some_id":1,"deep_value":{"a_b":{"c_d":1}}}],"counts":{"a_b":1}}"#,
                #"{"createdAt":1,"inner_value":[],"counts":{}}"#,
            ])
        for key in ["a_b", "_a_b", "a_b_", "__a__b__", "_", "a", "A_B", "aB_cD", "a1_b2", "a_1", "", "é_ü", "ab_CD_eF"]
        {
            let text = (["\(key)": 1] as JSON).description
            let (foundation, ferry) = strategies.outcomes(FirstKey.self, text)
            #expect(foundation == ferry, "\(key)")
        }
    }

    struct FirstKey: Decodable, Equatable {
        let key: String
        init(from decoder: any Decoder) throws {
            key = try decoder.container(keyedBy: Inspected.AnyKey.self).allKeys.map(\.stringValue).joined()
        }
    }

    /// Foundation takes the first of them, as the manual's table says.
    @Test func ofKeysThatBecomeTheSameTheLastCounts() throws {
        struct Name: Decodable, Equatable {
            let userName: Int
        }
        var decoder = FerryJSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        for (text, value) in [
            (#"{"user_name":1,"userName":2}"#, 2), (#"{"userName":1,"user_name":2}"#, 2),
            (#"{"user_name":1,"user__name":2,"x":3}"#, 2), (#"{"user_name":1,"user_name":2}"#, 2),
        ] {
            #expect(try decoder.decode(Name.self, from: Data(text.utf8)).userName == value)
            // And for each object of an array, whatever the previous one had.
            let list = Data("[\(text),{\"user_name\":7},\(text)]".utf8)
            #expect(try decoder.decode([Name].self, from: list).map(\.userName) == [value, 7, value])
        }
        struct Accent: Decodable {
            let é: Int
        }
        let keys = Data("{\"\u{e9}\":1,\"e\u{301}\":2}".utf8)
        #expect(try FerryJSONDecoder().decode(Accent.self, from: keys).é == 2)
        struct Degrees: Decodable {
            enum CodingKeys: String, CodingKey { case kelvin = "K" }
            let kelvin: Int
        }
        // The Kelvin sign is equivalent to an ASCII letter.
        for (text, value) in [
            ("{\"\u{212a}\":1}", 1), ("{\"K\":1,\"\u{212a}\":2}", 2), ("{\"\u{212a}\":1,\"K\":2}", 2),
        ] {
            #expect(try FerryJSONDecoder().decode(Degrees.self, from: Data(text.utf8)).kelvin == value)
        }
    }

    @Test func keysOfOnesOwn() throws {
        struct UpperKey: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }
        let strategies = Strategies(
            foundation: {
                $0.keyDecodingStrategy = .custom { UpperKey(stringValue: $0.last!.stringValue.lowercased()) }
            },
            ferry: { $0.keyDecodingStrategy = .custom { UpperKey(stringValue: $0.last!.stringValue.lowercased()) } })
        try compare(Nested.Inner.self, strategies, [#"{"ID":1,"Names":["a"]}"#])
        try compare([Nested.Inner].self, strategies, [#"[{"ID":1,"Names":["a"]}]"#])
    }

    @Test func whatTypesAreToldByTheUser() throws {
        let key = CodingUserInfoKey(rawValue: "k")!
        let strategies = Strategies(foundation: { $0.userInfo = [key: "told"] }, ferry: { $0.userInfo = [key: "told"] })
        let (foundation, ferry) = strategies.outcomes(UserInfo.self, "{}")
        #expect(ferry == foundation)
        #expect(ferry == .value(UserInfo(told: "told")))
    }

    struct UserInfo: Decodable, Equatable {
        let told: String?
        init(told: String?) { self.told = told }
        init(from decoder: any Decoder) throws { told = decoder.userInfo[CodingUserInfoKey(rawValue: "k")!] as? String }
    }
}
