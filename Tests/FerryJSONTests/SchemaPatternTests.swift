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

    /// A long text is searched by another expression, which must find the same.
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
        "Classes are those of ECMA-262",
        arguments: [
            (#"^\D$"#, "a", "1"), (#"^\D$"#, " ", "5"), (#"^\D$"#, "é", "0"), (#"^\W$"#, "-", "a"),
            (#"^\W$"#, "é", "_"),
            (#"^\S$"#, "a", "\u{2003}"), (#"^\S$"#, "\u{200b}", "\u{feff}"), (#"^\s$"#, "\u{a0}", "a"),
            (#"^\s{4}$"#, "\u{1680}\u{2028}\u{202f}\u{3000}", "\u{1680}\u{2028}\u{202f}\u{180e}"),
            (#"^\s+$"#, " \t\n\r\u{b}\u{c}", "\u{85}"), (#"^\d$"#, "7", "\u{0667}"), (#"^\w$"#, "_", "é"),
            (#"\bb"#, "éb", "ab"), (#"^.$"#, "\u{85}", "\u{2029}"), (#"^.$"#, "😀", "\n"), ("a$", "ba", "a\n"),
            (#"^[\s\S]$"#, "\n", "ab"), (#"^[^\W_]+$"#, "aZ9", "a_"), (#"^[^\S\n]$"#, "\t", "\n"),
            (#"^[\D]$"#, "x", "3"),
            (#"^[\W\d]+$"#, "-1é", "-1a"), ("^[à-ü]+$", "éö", "e"), ("^[а-яё]+$", "ёж", "z"),
            (#"^[\u4e00-\u9fff]$"#, "中", "x"),
            ("^[^]$", "\n", ""), ("^(?:a|[])$", "a", ""), (#"^\p{L}+$"#, "aéж中", "a1"), (#"^[\p{Lu}\d]+$"#, "ÉA1", "é"),
            (#"^\p{Script=Greek}+$"#, "αβ", "ab"), (#"^\P{Letter}$"#, "1", "a"), (#"^\p{gc=Nd}$"#, "٣", "x"),
            (#"^\p{ASCII}$"#, "a", "é"), (#"^\p{Any}|\P{Any}$"#, "é", ""),
        ])
    func classes(_ pattern: String, _ text: String, _ other: String) {
        #expect(matches(pattern, text))
        #expect(!matches(pattern, other))
    }

    @Test(
        "Escapes and characters are those of ECMA-262",
        arguments: [
            (#"^\x00\x41$"#, "\u{0}A", "A"), (#"^\0$"#, "\u{0}", "0"), (#"^\cJ$"#, "\n", "J"),
            (#"^[\cA-\cC]$"#, "\u{2}", "A"),
            (#"^\u{1F600}$"#, "😀", "a"), (#"^\ud83d\ude00$"#, "😀", "\u{fffd}"),
            (#"^[\ud83d\ude00-\ud83d\ude4f]$"#, "😁", "a"),
            (##"^\-\/\#\ $"##, "-/# ", "-/#"), ("^a{$", "a{", "a"), ("^a{,2}$", "a{,2}", "aa"), ("^{a}$", "{a}", "a"),
            ("^a{2", "a{2", "aa"), ("^x{1,2}?$", "xx", "xxx"), ("^a*?b+?c??$", "aabc", "aac"),
            (#"^[\b]$"#, "\u{8}", "b"),
            ("^[a-]+$", "a-", "b"), ("^[-a]+$", "a-", "b"), (#"^[\w-.]+$"#, "a-.", "a,"), ("^[.-/]$", "/", "0"),
            ("^]$", "]", "["),
            ("^(?<year>\\d{4})-(?<month>\\d\\d)$", "2024-05", "2024-5"), ("^(?<größe>x)$", "x", "y"),
            ("^a{300}$", String(repeating: "a", count: 300), "a"), ("^[[:alpha:]]$", "a]", "a"),
            ("^[&&a]+$", "a&", "b"),
            (#"^\Bb$"#, "", "b"), (#"^(?:\B|x)$"#, "", "a"), ("^(?:)$", "", "a"), ("^(a|)$", "", "b"),
            ("(?:a$|^b)", "b", "ab"),
            (#"^[^\x00-\x1f\x7f]+$"#, "aé", "a\u{7f}"), ("^~`!@#%&_=:;\"'<>,/$", "~`!@#%&_=:;\"'<>,/", "~"),
        ])
    func characters(_ pattern: String, _ text: String, _ other: String) {
        if pattern != #"^\Bb$"# { #expect(matches(pattern, text)) }
        #expect(!matches(pattern, other))
    }

    @Test func aPlaceWithinAWordIsNeverWithinACharacter() {
        #expect(!matches(#"\B"#, "aéb") && matches(#"\B"#, "aéé") && matches(#"\B"#, "ab"))
        #expect(!matches(#"^a.\Bb"#, "aéb") && matches(#"\B"#, "") && !matches(#"\B"#, "a"))
    }

    /// Usual patterns for addresses, names, versions and dates.
    @Test(
        "Common patterns are accepted",
        arguments: [
            (
                #"^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$"#,
                "a.b@c.de"
            ),
            (#"^(https?|ftp):\/\/[^\s/$.?#].[^\s]*$"#, "https://a.de/x"),
            (#"^#?([a-fA-F0-9]{6}|[a-fA-F0-9]{3})$"#, "#ffee00"),
            (#"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$"#, ""), (#"^(?:\d{1,3}\.){3}\d{1,3}$"#, "1.2.3.4"),
            (
                #"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$"#,
                "1.2.3-rc.1+b5"
            ),
            (
                #"^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"#,
                "123e4567-e89b-12d3-a456-426614174000"
            ),
            (#"^\+?[1-9]\d{1,14}$"#, "+4930123"), (#"^[A-ZÄÖÜ][a-zäöüß'-]*(?: [A-ZÄÖÜ][a-zäöüß'-]*)*$"#, "Jörg Groß"),
            (#"^data:([a-z]+\/[a-z0-9-+.]+)?;base64,[A-Za-z0-9+/]+={0,2}$"#, "data:image/png;base64,aGk="),
            (#"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"#, "aGk="),
            (#"^[^\\/:*?"<>|\x00-\x1f]{1,255}$"#, "file.txt"),
            (#"^\S(?:[\s\S]*\S)?$"#, "a b"), (#"^([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?$"#, "23:59"),
            (#"^P(?:\d+D)?(?:T\d+H)?$"#, "P1DT2H"),
        ])
    func common(_ pattern: String, _ text: String) throws {
        if pattern.contains("(?!") {
            #expect(throws: JSONSchemaError.self) { try JSONSchema(document: ["pattern": .init(pattern)]) }
        } else {
            #expect(matches(pattern, text))
            #expect(!matches(pattern, "\u{1} "))
        }
    }

    @Test(
        "A pattern that cannot be used is an error that says so",
        arguments: [
            ("(?=a)", "look-ahead is not supported"), ("a(?!b)", "look-ahead is not supported"),
            ("(?<=a)b", "look-behind is not supported"), ("(?<!a)b", "look-behind is not supported"),
            (#"(a)\1"#, "a back-reference is not supported"), (#"(?<n>a)\k<n>"#, "a back-reference is not supported"),
            ("a{1001}", "a repetition of more than 1000 is not supported"),
            ("(a{100}){100}", "repetitions within one another of more than 1000 in all are not supported"),
            (#"\p{Emoji}"#, "the Unicode property Emoji is not supported"),
            (#"\p{Script=Elvish}"#, "an unknown script"),
            (#"\p{sc=Lu}"#, "an unknown script"),
            (
                "(?:(?:.{1,30}a){1,30}|(?:.{1,30}b){1,30}){1,1}(?:.{900}|.{800}c.{100}|.{1,900}d.{1,99})(?:.{999}){1}(?:.{999}e)",
                "needs too much memory"
            ),
            ("a++", "nothing to repeat"), ("*a", "nothing to repeat"), ("^*", "nothing to repeat"),
            ("a|{2}", "nothing to repeat"),
            ("a{2,1}", "a repetition whose bounds are in the wrong order"), ("[", "[ without ]"), ("[a", "[ without ]"),
            ("(", "( without )"), ("[b-a]", "a range that goes backwards"), (#"\"#, "\\ at the end"),
            (#"[\"#, "\\ at the end"),
            (#"\A"#, #"\A is no escape"#), (#"\Qa"#, #"\Q is no escape"#), ("(?i)a", "( with an unknown kind of group"),
            ("(?P<n>a)", "( with an unknown kind of group"), ("(?<1>a)", "a group's name is not an identifier"),
            ("(?<a>x)(?<a>y)", "two groups have one name"), (#"\x4"#, "an escape without its hexadecimal digits"),
            (#"\u{110000}"#, "an escape of a character that is none"), (#"\00"#, "an octal escape"),
            (#"\c1"#, "\\c without a letter"),
            (#"\p"#, "\\p without a property"), (#"\k"#, "\\k without the name of a group"),
            (String(repeating: "(", count: 20_000) + String(repeating: ")", count: 20_000), "is too long"),
            (
                String(repeating: "(", count: 201) + String(repeating: ")", count: 201),
                "groups are nested more than 200 deep"
            ),
            (String(repeating: "(?:", count: 5000), "groups are nested more than 200 deep"),
        ])
    func refused(_ pattern: String, _ message: String) throws {
        let document: JSON = ["properties": ["a": ["pattern": .init(pattern)]]]
        let error = #expect(throws: JSONSchemaError.self) { try JSONSchema(document: document) }
        #expect(error?.keyword == "pattern")
        #expect(error?.pointer == "/properties/a")
        #expect(error?.message == message)
    }

    @Test func deepGroupsAreRead() {
        #expect(matches(String(repeating: "(", count: 200) + "a" + String(repeating: ")", count: 200), "a"))
    }

    /// RE2 interprets these differently: as flags, quotations, classes and anchors of its own.
    @Test(arguments: ["a", "é", "z", "[", "Q", " ", "\n", "]:"])
    func noSyntaxOfRE2sOwnComesThrough(_ text: String) {
        #expect(
            matches(#"^[\[:alpha:\]]+$"#, text)
                == text.unicodeScalars.allSatisfy { "[:alpha]".unicodeScalars.contains($0) })
        #expect(matches("^[^é]$", text) == (text.unicodeScalars.count == 1 && text != "é"))
        #expect(matches("^#.*$", text) == false)
    }

    @Test func aHostileTextTakesNoExponentialTime() {
        #expect(!matches("^(a+)+$", String(repeating: "a", count: 5000) + "b"))
    }

    /// Each of them took over half a minute with a backtracking matcher; the limit is far above RE2's time.
    @Test(
        .timeLimit(.minutes(1)),
        arguments: [
            "^.*a.{30}$", "(a{1,255}){1,3}b", "(a|aa)+$b", "(.*a){20}b", "^(?:a?){500}a{500}b", #"^(\S+\s?)+$b"#,
        ])
    func aLongTextTakesLinearTime(_ pattern: String) {
        #expect(!matches(pattern, String(repeating: "a", count: 65_536) + "\n"))
    }

    @Test func manyPatternsTakeBoundedMemory() throws {
        func schema(_ count: Int, _ pattern: (Int) -> String) throws -> JSONSchema {
            let members = (0..<count).map { ("p\($0)", ["pattern": JSON(pattern($0))] as JSON) }
            return try JSONSchema(document: ["properties": JSON(members: members)])
        }
        _ = try schema(5000) { _ in "^a{2,500}$" }
        _ = try schema(900) { "^a\($0)$" }
        let error = #expect(throws: JSONSchemaError.self) { try schema(3000) { "^a\($0)$" } }
        #expect(error?.keyword == "pattern" && error?.message == "the patterns of the schema need too much memory")
        #expect(throws: JSONSchemaError.self) { try schema(200) { #"^\S{900}\#($0)$"# } }
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
