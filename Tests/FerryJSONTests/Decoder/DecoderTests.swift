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
        let count = 20_000
        let members = (0..<count).map { "\"key\($0)\":\($0)" }.joined(separator: ",")
        #expect(try FerryJSONDecoder().decode([String: Int].self, from: Data("{\(members)}".utf8)).count == count)
    }
}
