import FerryJSON
import Testing

@Suite struct SchemaPatternTests {
    private func matches(_ pattern: String, _ text: String) -> Bool {
        (try? JSONSchema.string(matching: pattern).check(JSON(text))) != nil
    }

    @Test(
        "A pattern is found, or not",
        arguments: [
            ("^a+$", "aaa", "b"), ("b", "abc", "ac"), (#"^\d{3}-\d{2}$"#, "123-45", "123-4"),
            (#"^[\w.-]+@[\w-]+$"#, "a.b-c@d", "a b@c"),
            ("^(?:ab|cd)?$", "cd", "abcd"), (#"\."#, "a.b", "ab"), (#"^[^\]]$"#, "a", "]"), (#"^[\]x]$"#, "]", "a"),
            ("^[a-c^-]+$", "a^-", "d"),
            ("^.{3}$", "äöü", "äö"), (#"^\u00e4$"#, "ä", "a"), (#"^\S+$"#, "ab", "a b"), ("^[^a]$", "b", "a"),
            ("^$", "", "a"),
            (#"^\$\{\}$"#, "${}", "$"), ("^a|b$", "xb", "xc"), (#"\bword\b"#, "a word here", "swords"),
            ("^[[]$", "[", "a"), ("^[\\^]$", "^", "a"),
            (#"^a\/b$"#, "a/b", "ab"), ("^(a|b){2,3}$", "aba", "abab"),
        ])
    func found(_ pattern: String, _ text: String, _ other: String) {
        #expect(matches(pattern, text))
        #expect(!matches(pattern, other))
    }

    /// A long text is searched by another expression, which has to find the same.
    @Test(
        "A pattern is found in a long text, or not",
        arguments: [
            (#"[a-z]+\d"#, "ab1", "ab"), ("b+$", "ab", "ba"), ("^b|a+$", "a", "ab"), ("(^b|a)+c", "ac", "bc"),
            ("(b$|a)+.?$", "b", "bc"),
            (#"\bword+\b"#, "word", "swords"), (#"\Bo+rd"#, "word", "ord"), ("é+x", "éx", "ex"),
            (".+end", "-end", "end"),
            ("(a|b*)+c", "c", "d"), (#"[^ \n\r]{9,}"#, "123456789", "12345678"), (#"x\)*y"#, "x))y", "x(y"),
        ])
    func foundInALongText(_ pattern: String, _ end: String, _ other: String) {
        for filler in [String(repeating: "ä \n\r", count: 20), String(repeating: "\u{0} - ", count: 40) + "\n"] {
            #expect(matches(pattern, filler + end))
            #expect(!matches(pattern, filler + other))
        }
        #expect(matches("^b|a+$", "b" + String(repeating: "c", count: 100)))
        #expect(matches("(^b+|x)c", "bc" + String(repeating: "d", count: 100)))
    }

    @Test func aBracketThatClosesNothingIsItself() {
        #expect(matches("a)+b", "xa))b"))
        #expect(matches("^a)|b+", "b") && matches("^a)|b+", "a)") && !matches("^a)|b+", "a"))
        #expect(matches("^a)|b+", String(repeating: "c", count: 100) + "b"))
    }

    @Test func aTextWithANULIsSearchedWhole() {
        #expect(matches("b$", "a\u{0}b"))
        #expect(!matches("^a$", "a\u{0}b"))
    }

    @Test(
        "What cannot be used is an error that says so",
        arguments: [
            "(?=a)", "(?!a)", "(?<n>a)", #"(a)\1"#, "a*?", "a++", "[", "(", "a{1000}", "*a", "[]", #"\p{L}"#, "a{2",
            "[b-a]", #"\"#,
        ])
    func refused(_ pattern: String) throws {
        let document: JSON = ["properties": ["a": ["pattern": .init(pattern)]]]
        let error = #expect(throws: JSONSchemaError.self) { try JSONSchema(document: document) }
        #expect(error?.keyword == "pattern")
        #expect(error?.pointer == "/properties/a")
    }

    @Test func aHostileTextTakesNoExponentialTime() {
        #expect(!matches("^(a+)+$", String(repeating: "a", count: 5000) + "b"))
    }

    @Test func patternsMayBeUsedByManyTasksAtOnce() async {
        let schema = JSONSchema.string(matching: #"^[a-z]+\d$"#)
        await withTaskGroup(of: Bool.self) { group in
            for task in 0..<8 {
                group.addTask {
                    (0..<200).allSatisfy { _ in
                        ((try? schema.check(JSON("abc\(task)"))) != nil) && ((try? schema.check(JSON("abc"))) == nil)
                    }
                }
            }
            for await isRight in group { #expect(isRight) }
        }
    }
}
