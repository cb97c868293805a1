import Testing

@testable import Ferry

@Suite struct PercentEncodingTests {
    @Test func allButTheUnreservedCharactersAreEscaped() {
        #expect(PercentEncoding.encoded("aZ09-._~") == "aZ09-._~")
        #expect(PercentEncoding.encoded("a b/?&=%ü") == "a%20b%2F%3F%26%3D%25%C3%BC")
    }

    @Test(arguments: [
        ("%41%7a%C3%bc", "Azü", true), ("", "", true), ("%2541", "%41", true), ("%", "%", false), ("%4", "%4", false),
        ("a%4g%41", "a%4gA", false), ("%%41", "%A", false), ("+", "+", true),
    ])
    func aBrokenEscapeStandsForItselfOrIsRefused(_ text: String, _ decoded: String, _ isWhole: Bool) {
        #expect(PercentEncoding.decoded(text.utf8) == Array(decoded.utf8))
        #expect(PercentEncoding.strictlyDecoded(text.utf8) == (isWhole ? Array(decoded.utf8) : nil))
    }
}
