import FerryJSON
import Foundation
import Testing

/// Foundation's decoder and Ferry's give the same result for the same document, including errors and their coding
/// paths. Each document is tried unchanged, and with every part of it replaced or removed.
@Suite struct DifferentialTests {
    private func compare<T: Decodable & Equatable>(
        _ type: T.Type, _ document: String, _ strategies: Strategies = Strategies(), isValid: Bool = true,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let json = try JSON(parsing: document)
        let (_, ferry) = strategies.outcomes(type, document)
        if isValid, case .error(let text) = ferry { Issue.record("\(text)", sourceLocation: sourceLocation) }
        for text in [document] + json.variations.map(\.description) {
            let (foundation, ferry) = strategies.outcomes(type, text)
            #expect(foundation == ferry, "\(text)", sourceLocation: sourceLocation)
        }
    }

    @Test func structsOfPlainValues() throws {
        try compare(Plain.self, #"{"text":"ü","flag":true,"int":-7,"double":1.25,"maybe":"x","maybeInt":null}"#)
        try compare([Plain].self, #"[{"text":"","flag":false,"int":1e2,"double":7,"missing":true}]"#)
    }

    @Test func numbersOfEverySize() throws {
        try compare(
            Numbers.self,
            #"{"a":-128,"b":255,"c":-32768,"d":65535,"e":-2147483648,"f":4294967295,"g":-9223372036854775808,"h":18446744073709551615,"i":1.0,"j":0.1}"#
        )
        for text in [
            "1e39", "-1e39", "3.4e38", "9007199254740993", "0.1", "-0.0", "1e2", "1.0", "255.0", "256.0",
            "-1e0", "9007199254740993.0", "12345678901234567.0", "-9007199254740993e0", "9007199254740992.0", "1e18",
            "9223372036854775808.0", "1e19",
        ] {
            try compare([Float].self, "[\(text)]", isValid: false)
            try compare([Double].self, "[\(text)]", isValid: false)
            try compare([UInt8].self, "[\(text)]", isValid: false)
            try compare([Int].self, "[\(text)]", isValid: false)
        }
    }

    @Test func nestedTypesListsAndDictionaries() throws {
        try compare(
            Nested.self,
            #"{"inner":{"id":1,"names":["a","b"]},"list":[{"id":2,"names":[]}],"matrix":[[1],[2,3]],"byName":{"k":{"id":3,"names":["c"]}},"optional":{"id":4,"names":[]}}"#
        )
    }

    @Test func enumerationsOfRawValues() throws {
        try compare(Enums.self, #"{"kind":"one","code":2,"kinds":["two","one"]}"#)
        try compare([Kind].self, #"["one","three"]"#, isValid: false)
    }

    @Test func enumerationsWithPayloads() throws {
        try compare(
            [Payload].self,
            #"[{"none":{}},{"one":{"_0":5}},{"labelled":{"name":"n","count":1}},{"labelled":{"name":"n"}}]"#)
        try compare(Payload.self, #"{"one":{"_0":1},"none":{}}"#, isValid: false)
    }

    @Test func dictionariesWithIntegersForKeys() throws {
        try compare(IntKeys.self, #"{"values":{"1":"a","-2":"b"},"lists":{"3":[1,2]}}"#)
        try compare([Int: Int].self, #"{"x":1}"#, isValid: false)
        try compare([String: [String: Int]].self, #"{"a":{"b":1},"c":{}}"#)
    }

    @Test func foundationsOwnTypes() throws {
        try compare(
            Foundations.self,
            #"{"date":1.5,"data":"aGk=","url":"http://h/a?b=c","decimal":19.99,"uuid":"E621E1F8-C36C-495A-93FC-0C247A3E6E5F","dates":[0,1],"urls":{"a":"x://y"}}"#
        )
        for text in [
            "0.12345678901234567890123456789", "19.99", "1e2", "-0.5", "7", "18446744073709551615", "1e-30", "1E5",
            "123456789.123456789123",
        ] {
            try compare([Decimal].self, "[1, \(text), {\"a\":[\"x\"]}, 2.5]", isValid: false)
            try compare([Decimal].self, "[ 1 ,\n\(text), 2.5]")
        }
    }

    @Test func containersWithinContainersByHand() throws {
        try compare(Flattened.self, #"{"outer":{"value":1,"deep":["a"]},"list":[[1,2],{"value":3}]}"#)
        try compare(Derived.self, #"{"name":"n","super":{"id":1}}"#)
        try compare(Inspected.self, #"{"list":["a",null,{"b":1}],"numbers":[1,2]}"#, isValid: false)
    }

    @Test func textsAtTheTop() throws {
        for text in ["1", "\"a\"", "null", "true", "[]", "{}", "1.5", " 7 ", "\u{FEFF}7"] {
            try compare(Int.self, text, isValid: false)
            try compare(Int?.self, text, isValid: false)
            try compare(String.self, text, isValid: false)
            try compare([Int?].self, text, isValid: false)
            try compare([String: Int].self, text, isValid: false)
            try compare(Bool.self, text, isValid: false)
            try compare(Double.self, text, isValid: false)
        }
    }

    @Test(
        "A text that is not JSON gives the same error",
        arguments: [
            "", " ", "[1", "[1]x", "nul", "{\"a\":}", "[01]", "[1e999]", "\u{0}", "{\"a\":1,\"b\"",

        ])
    func notJSON(_ text: String) {
        let (foundation, ferry) = Strategies().outcomes([Int].self, text)
        #expect(foundation == ferry)
    }

    /// Foundation only validates a string when it is requested.
    @Test("An invalid string gives the same error", arguments: ["[\"\\ud800\"]", "[\"\u{1}\"]", "[\"\\x\"]", "[\"a"])
    func noString(_ text: String) {
        let (foundation, ferry) = Strategies().outcomes([String].self, text)
        #expect(foundation == ferry)
    }

    @Test func objectsWithManyMembers() throws {
        let members = (0..<100).map { "\"key\($0)\":\($0)" }.joined(separator: ",")
        let (foundation, ferry) = Strategies().outcomes([String: Int].self, "{\(members)}")
        #expect(foundation == ferry)
        try compare(
            Plain.self, #"{"text":"ü","flag":true,"int":-7,"double":1.25,\#(members)}"#)
    }
}
