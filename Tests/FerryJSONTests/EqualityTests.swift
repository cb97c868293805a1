import FerryJSON
import Testing

@Suite struct EqualityTests {
    private func parsed(_ text: String) throws -> JSON { try JSON(parsing: text) }

    @Test(
        "Equal values have equal hashes",
        arguments: [
            ("1", "1.0"), ("100", "1e2"), ("-0", "0.0"), ("18446744073709551615", "18446744073709551615"),
            (#""é""#, #""\u00e9""#), (#"{"a":1,"b":2}"#, #"{ "b":2.0, "a":1 }"#), (#"{"a":1,"a":2}"#, #"{"a":2}"#),
            ("[1,[2]]", "[ 1.0 , [ 2e0 ] ]"), ("null", "null"), ("{}", "{}"),
        ])
    func equal(_ a: String, _ b: String) throws {
        #expect(try parsed(a) == parsed(b))
        #expect(try parsed(a).hashValue == parsed(b).hashValue)
    }

    @Test(
        "Different values are not equal",
        arguments: [
            ("1", "1.5"), ("1", "true"), ("0", "false"), ("null", "false"), ("9007199254740993", "9007199254740992.0"),
            ("18446744073709551615", "-1"), ("18446744073709551615", "18446744073709551616.0"), (#""1""#, "1"),
            ("[1,2]", "[2,1]"), ("[1]", "[1,1]"), ("[1,1]", "[1]"), ("[]", "{}"), (#"{"a":1}"#, #"{"b":1}"#),
            (#"{"a":1}"#, #"{"a":1,"b":1}"#), (#"{"a":1,"b":1}"#, #"{"a":1}"#), (#"{"a":1,"a":2}"#, #"{"a":1}"#),
            (#""é""#, #""e\u0301""#), ("9223372036854775807", "9223372036854775808.0"), ("-1", "18446744073709551615"),
        ])
    func different(_ a: String, _ b: String) throws {
        #expect(try parsed(a) != parsed(b))
        #expect(try parsed(b) != parsed(a))
    }

    @Test func deepObjectsAreComparedInReasonableTime() throws {
        let depth = 1000
        let text = String(repeating: #"{"a":"#, count: depth) + "1" + String(repeating: "}", count: depth)
        #expect(try parsed(text) == parsed(text))
    }
}
