import FerryJSON
import Foundation
import Testing

@Suite struct DecoderTests {
    @Test func aTextThatIsNotJSONSaysWhere() throws {
        do {
            _ = try FerryJSONDecoder().decode([Int].self, from: Data("[1,2,x]".utf8))
            Issue.record("it was decoded")
        } catch DecodingError.dataCorrupted(let context) {
            #expect(context.underlyingError as? JSONSyntaxError == JSONSyntaxError(reason: .structure, offset: 5))
        }
    }

    @Test func ofAKeyThatStandsTwiceTheLastCounts() throws {
        let decoder = FerryJSONDecoder()
        #expect(try decoder.decode([String: Int].self, from: Data(#"{"a":1,"a":2}"#.utf8)) == ["a": 2])
        #expect(try decoder.decode(Nested.Inner.self, from: Data(#"{"id":"x","names":[],"id":2}"#.utf8)).id == 2)
        let many = (0..<50).map { "\"k\($0)\":0" }.joined(separator: ",")
        #expect(try decoder.decode([String: Int].self, from: Data("{\(many),\"k7\":1}".utf8))["k7"] == 1)
        #expect(try decoder.decode([String: Int].self, from: Data("{\(many),\"k7\":1}".utf8)).count == 50)
    }

    private enum Color: String, Decodable, CodingKeyRepresentable { case red, blue }

    /// Not even its type matters.
    @Test func aValueWhoseKeyStandsAgainMayHaveAnyType() throws {
        func decoded<T: Decodable>(_ text: String, as type: T.Type) throws -> T {
            try FerryJSONDecoder().decode(type, from: Data(text.utf8))
        }
        #expect(try decoded(#"{"a":"x","b":2,"a":1}"#, as: [String: Int].self) == ["a": 1, "b": 2])
        #expect(try decoded(#"{"a":[1],"a":null,"a":"x"}"#, as: [String: String].self) == ["a": "x"])
        #expect(try decoded(#"{"a":"x","a":0.5}"#, as: [String: Double].self) == ["a": 0.5])
        let nested = try decoded(#"{"a":{"b":1},"a":{"b":"x","b":true}}"#, as: [String: [String: Bool]].self)
        #expect(nested == ["a": ["b": true]])
        #expect(try decoded(#"{"red":"x","red":1}"#, as: [Color: Int].self) == [.red: 1])
        #expect(try decoded(#"{"1":"x","1":1}"#, as: [Int: Int].self) == [1: 1])
        for text in [#"{"a":1,"a":"x"}"#, #"{"a":"x","b":1}"#, #"{"a":"x","a":1,"b":"x"}"#] {
            #expect(throws: DecodingError.self) { try decoded(text, as: [String: Int].self) }
            #expect(throws: DecodingError.self) { try decoded(text, as: [String: Int8].self) }
        }
    }

    @Test func aValueParsedBeforeIsDecodedToo() throws {
        let json = try JSON(parsing: #"{"x":{"id":1,"names":["a"]},"d":[0.1,1e2,5]}"#)
        let decoder = FerryJSONDecoder()
        #expect(try decoder.decode(Nested.Inner.self, from: json["x"]!) == Nested.Inner(id: 1, names: ["a"]))
        #expect(try decoder.decode([Decimal].self, from: json["d"]!) == [Decimal(string: "0.1")!, 100, 5])
        #expect(try decoder.decode(Nested.Inner.self, from: ["id": 3, "names": []]) == Nested.Inner(id: 3, names: []))
        #expect(throws: DecodingError.self) { try decoder.decode(Int.self, from: json["x"]!) }
    }

    @Test func aDecoderMayOutliveItsDocument() throws {
        final class Kept: Decodable {
            let decoder: any Decoder
            init(from decoder: any Decoder) throws { self.decoder = decoder }
        }
        let kept = try FerryJSONDecoder().decode(Kept.self, from: Data(#"{"id":9,"names":["later"],"d":0.5}"#.utf8))
        for _ in 0..<50 { _ = try JSON(parsing: #"["other text"]"#) }
        #expect(try Nested.Inner(from: kept.decoder) == Nested.Inner(id: 9, names: ["later"]))
        #expect(try [String: JSON](from: kept.decoder)["d"]?.double == 0.5)
    }

    @Test func aDecimalOfAnUnsignedIntegerHasAllItsDigits() throws {
        let decoder = FerryJSONDecoder()
        #expect(try decoder.decode(Decimal.self, from: JSON(UInt64.max)) == Decimal(UInt64.max))
        #expect(try decoder.decode([Decimal].self, from: Data("[18446744073709551615]".utf8)) == [Decimal(UInt64.max)])
    }

    @Test(
        "An integer beyond 64 bits is decoded as Foundation does",
        arguments: [
            "18446744073709551616", "-9223372036854775809", "123456789012345678901234567890", "36893488147419107329",
            "-18446744073709551615",
        ])
    func integersBeyond64Bits(number: String) throws {
        let text = Data(#"{"a":"x","id":\#(number),"n":1}"#.utf8)
        func decoded<T: Decodable & Equatable>(_ type: T.Type) -> (ours: T?, theirs: T?) {
            (
                try? FerryJSONDecoder().decode(Numbered<T>.self, from: text).id,
                try? JSONDecoder().decode(Numbered<T>.self, from: text).id
            )
        }
        let (double, decimal) = (decoded(Double.self), decoded(Decimal.self))
        #expect(double.ours == double.theirs && double.ours == Double(number))
        #expect(decimal.ours == decimal.theirs && decimal.ours == Decimal(string: number))
        let (int, unsigned) = (decoded(Int.self), decoded(UInt64.self))
        #expect(int.ours == nil && int.theirs == nil && unsigned.ours == nil && unsigned.theirs == nil)
        #expect(decoded(Int128.self).ours == Int128(number))
        // The rest of the document is usable.
        #expect(try FerryJSONDecoder().decode(Numbered<Double>.self, from: text).n == 1)
        #expect(throws: DecodingError.self) { try FerryJSONDecoder().decode(Numbered<Int>.self, from: text) }
    }

    @Test func anIntegerIsReadFromItsDigitsOrNotAtAll() throws {
        let decoder = FerryJSONDecoder()
        func decoded<T: Decodable>(_ type: T.Type, _ text: String) -> T? {
            try? decoder.decode([T].self, from: Data("[0,\(text)]".utf8))[1]
        }
        #expect(decoded(Int.self, "12345678901234567.0") == 12_345_678_901_234_567)
        #expect(decoded(Int.self, "-900719925474099300e-2") == -9_007_199_254_740_993)
        #expect(decoded(Int.self, "-9223372036854775808.0") == .min)
        #expect(decoded(Int.self, "9223372036854775808.0") == nil)
        #expect(decoded(UInt.self, "18446744073709551615.000") == .max)
        #expect(decoded(UInt.self, "1844674407370955161.5E1") == .max)
        #expect(decoded(UInt.self, "18446744073709551616.0") == nil)
        #expect(decoded(UInt.self, "-1e18") == nil)
        #expect(decoded(Int.self, "9007199254740993.5") == nil)
        #expect(decoded(Int.self, "1e300") == nil)
        #expect(decoded(Int.self, "0.000012345678901234567e21") == 12_345_678_901_234_567)
        #expect(decoded(Int128.self, "1e30") == 1_000_000_000_000_000_000_000_000_000_000)
        #expect(decoded(UInt8.self, "1e16") == nil)
        // Without the text it is unknown which integer it was.
        let json = try JSON(parsing: "9007199254740993.0")
        #expect(throws: DecodingError.self) { try decoder.decode(Int.self, from: json) }
    }

    @Test(arguments: [10, 30]) func anObjectMayBeATypeAndADictionaryOfAllThatStandsInIt(_ count: Int) throws {
        struct Both: Decodable {
            enum Keys: String, CodingKey { case createdAt }
            let createdAt: Int
            let all: [String: Int]

            init(from decoder: any Decoder) throws {
                let isFirst = decoder.userInfo[CodingUserInfoKey(rawValue: "dictionary")!] != nil
                let before = isFirst ? try decoder.singleValueContainer().decode([String: Int].self) : nil
                createdAt = try decoder.container(keyedBy: Keys.self).decode(Int.self, forKey: .createdAt)
                all = try before ?? decoder.singleValueContainer().decode([String: Int].self)
            }
        }
        let others = (0..<count).map { "\"a_\($0)\":\($0)" }.joined(separator: ",")
        var decoder = FerryJSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        for userInfo: [CodingUserInfoKey: any Sendable] in [[:], [CodingUserInfoKey(rawValue: "dictionary")!: true]] {
            decoder.userInfo = userInfo
            let both = try decoder.decode(Both.self, from: Data("{\"created_at\":7,\(others)}".utf8))
            #expect(both.createdAt == 7)
            #expect(both.all.count == count + 1)
            #expect(both.all["created_at"] == 7 && both.all["a_3"] == 3)
        }
    }

    @Test func jsonIsCodable() throws {
        let text = #"{"a":[1,-2,1.5,"x",null,true,{"b":18446744073709551615}]}"#
        let json = try JSON(parsing: text)
        #expect(try FerryJSONDecoder().decode(JSON.self, from: Data(text.utf8)) == json)
        #expect(try FerryJSONDecoder().decode([String: JSON].self, from: Data(text.utf8))["a"] == json["a"])
        #expect(try JSONDecoder().decode(JSON.self, from: Data(text.utf8)) == json)
        #expect(try JSON(parsing: JSONEncoder().encode(json)) == json)
    }

    @Test func theDeepestDocumentIsDecoded() throws {
        struct Deep: Decodable {
            let next: [Deep]
        }
        let depth = 200
        let text = String(repeating: #"{"next":["#, count: depth) + String(repeating: "]}", count: depth)
        var value = try FerryJSONDecoder().decode(Deep.self, from: Data(text.utf8))
        var count = 1
        while let next = value.next.first { (value, count) = (next, count + 1) }
        #expect(count == depth)
    }

    @Test func aWideObjectIsReadInLinearTime() throws {
        let growth = try growthOfEightfold(1000) { count in
            let members = (0..<count).map { "\"key\($0)\":\($0)" }.joined(separator: ",")
            let text = Data("{\(members)}".utf8)
            return {
                let decoded = try FerryJSONDecoder().decode([String: Int].self, from: text)
                #expect(decoded.count == count)
            }
        }
        #expect(growth < mostGrowth)
    }
}

private struct Numbered<T: Decodable>: Decodable {
    var id: T
    var n: Int
}
