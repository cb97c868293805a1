import FerryJSON
import Testing

@Suite struct BuildingTests {
    @Test func literalsBecomeValues() {
        let json: JSON = ["n": .null, "b": true, "i": -3, "d": 2.5, "s": "x", "a": [1, "two", [3]], "o": ["k": .null]]
        #expect(json.description == #"{"n":null,"b":true,"i":-3,"d":2.5,"s":"x","a":[1,"two",[3]],"o":{"k":null}}"#)
        let (name, count) = ("kim", 2)
        #expect((["hello": "\(name) \(count)"] as JSON).description == #"{"hello":"kim 2"}"#)
    }

    @Test func partsOfDocumentsBecomePartsOfValues() throws {
        let parsed = try JSON(parsing: #"{"a":[1,{"b":"ü"}],"c":18446744073709551615}"#)
        let json: JSON = ["first": parsed["a"]!, "again": [parsed, parsed["c"]!]]
        #expect(
            json.description
                == #"{"first":[1,{"b":"ü"}],"again":[{"a":[1,{"b":"ü"}],"c":18446744073709551615},18446744073709551615]}"#
        )
        #expect(json["first"]?[1]?["b"]?.string == "ü")
        #expect(json["again"]?[0] == parsed)
        #expect(try JSON(parsing: json.description) == json)
    }

    @Test func valuesAreMadeFromVariables() {
        #expect(JSON(UInt64.max).description == "18446744073709551615")
        #expect(JSON(Int64.min).description == "-9223372036854775808")
        #expect(JSON([JSON(1), JSON("a")]).description == #"[1,"a"]"#)
        #expect(JSON(["b": 1, "a": 2]).description == #"{"a":2,"b":1}"#)
        #expect(JSON(members: [("b", 1), ("a", 2)]).description == #"{"b":1,"a":2}"#)
        #expect(JSON(Double.infinity).isNull)
        #expect(JSON(Double.nan).isNull)
    }

    @Test func textIsEscapedWhereItMustBe() {
        #expect(
            JSON("\"\\/\n\r\t\u{8}\u{0}\u{1f}\u{7f}é\u{1F600}").description
                == "\"\\\"\\\\/\\n\\r\\t\\u0008\\u0000\\u001f\u{7f}é\u{1F600}\"")
        #expect((["a\"b": 1] as JSON).description == #"{"a\"b":1}"#)
    }

    @Test func prettyTextHasALineForEachMember() {
        let json: JSON = ["a": [1, 2], "b": [:], "c": []]
        #expect(
            String(decoding: json.bytes(pretty: true), as: UTF8.self) == """
                {
                  "a": [
                    1,
                    2
                  ],
                  "b": {},
                  "c": []
                }
                """)
    }
}
