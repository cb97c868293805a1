import FerryMeasurement
import Testing

@testable import FerryCommand

@Suite struct OptionParserTests {
    private static let options = [
        CommandOption("header", "H", value: "'N: V'", "A field"),
        CommandOption("repeat", value: "N", "How often"),
        CommandOption("retries", value: "N", "More tries"),
        CommandOption("json", "Objects"),
        CommandOption("insecure", "k", "No checks"),
    ]

    private func parse(_ line: String...) throws(UsageError) -> ParsedArguments {
        try ParsedArguments(line, of: Self.options)
    }

    @Test func optionsAndOperandsMayBeMixed() throws {
        let parsed = try parse("http://h/", "-k", "--repeat", "3", "-HA: b", "--repeat=4", "other", "--json")
        #expect(parsed.operands == ["http://h/", "other"])
        #expect(parsed.last("repeat") == "4")
        #expect(parsed.all("repeat") == ["3", "4"])
        #expect(parsed.all("header") == ["A: b"])
        #expect(parsed.has("insecure") && parsed.has("json"))
    }

    @Test func theBeginningOfOneOptionIsEnough() throws {
        #expect(try parse("--js", "--rep=2").last("repeat") == "2")
        #expect(try parse("--js").has("json"))
    }

    /// The engine and getopt read these variables.
    @Test func theEnvironmentChangesNoCommandLine() throws {
        for (name, value, code) in [
            ("POSIXLY_CORRECT", "1", Int32(0)), ("FERRY_ENGINE", "", 0), ("FERRY_ENGINE", "libcurl", 0),
            ("FERRY_ENGINE", "bogus", 1),
        ] {
            let end = try FerryProgram.run(["fetch", "http://h/", "--to-curl"], environment: [name: value])
            let message = "FERRY_ENGINE must be automatic or libcurl, not 'bogus'"
            #expect(end.code == code && end.output.contains(message) == (code == 1), "\(end)")
        }
        let named = try FerryProgram.run(
            ["fetch", "http://h/", "--to-curl", "--engine", "libcurl"], environment: ["FERRY_ENGINE": "bogus"])
        #expect(named.code == 0, "\(named)")
    }

    @Test func twoDashesEndTheOptions() throws {
        #expect(try parse("--", "--json").operands == ["--json"])
        #expect(try !parse("--", "--json").has("json"))
    }

    @Test(arguments: [
        (["--bad"], "unknown option --bad"),
        (["-q"], "unknown option -q"),
        (["x", "--bad=1"], "unknown option --bad=1"),
        (["--jsno=1"], "unknown option --jsno=1 (did you mean --json?)"),
        (["--haeder", "A: b"], "unknown option --haeder (did you mean --header?)"),
        (["--secure"], "unknown option --secure (did you mean --insecure?)"),
        (["--repeat"], "option --repeat needs a value"),
        (["--re"], "option --re is ambiguous: --repeat, --retries"),
        (["a", "--re=1", "b"], "option --re is ambiguous: --repeat, --retries"),
        (["-H"], "option -H needs a value"),
        (["--json=yes"], "option --json takes no value"),
    ])
    func wrongOptionsAreNamed(line: [String], message: String) {
        #expect(throws: UsageError(message)) { try ParsedArguments(line, of: Self.options) }
    }

    @Test(arguments: [
        ("fecth", " (did you mean fetch?)"), ("bnech", " (did you mean bench?)"), ("ru", " (did you mean run?)"),
        ("upload", ""), ("x", ""), ("", ""), (String(repeating: "fetch", count: 100_000), ""),
    ])
    func aWordThatIsAlmostOneSuggestsIt(word: String, suggestion: String) {
        #expect(Suggestion.text(for: word, in: Main.subcommands.map { $0.name }) == suggestion)
    }

    @Test func parsingBeginsAnewEachTime() throws {
        for _ in 0..<3 {
            _ = try? parse("-k", "--bad")
            #expect(try parse("-k", "a").operands == ["a"])
        }
    }
}

@Suite struct ArgumentValueTests {
    private func arguments(_ name: String, _ values: String...) -> ParsedArguments {
        ParsedArguments(options: values.map { (name, $0) }, operands: [])
    }

    @Test func secondsMayHaveAFraction() throws {
        #expect(try arguments("timeout", "0.25").seconds("timeout") == .milliseconds(250))
        #expect(try arguments("timeout", "3").seconds("timeout") == .seconds(3))
        #expect(try arguments("delay", "0").seconds("delay", allowingZero: true) == .zero)
        #expect(try arguments("timeout", "1").seconds("deadline") == nil)
    }

    /// 0 would be no limit.
    @Test func noTimeIsRoundedToNone() throws {
        #expect(try arguments("timeout", "1e-12").seconds("timeout") == .microseconds(1))
        #expect(Duration(seconds: 0) == .zero && Duration(seconds: 1.5e-6) == .nanoseconds(1500))
    }

    @Test func timesAndSizesMayHaveAUnit() throws {
        for (text, time) in [
            ("2s", Duration.seconds(2)), ("500ms", .milliseconds(500)), ("0.5s", .milliseconds(500)),
            ("250us", .microseconds(250)), ("2S", .seconds(2)), ("1m", .seconds(60)), ("2min", .seconds(120)),
            ("1h", .seconds(3600)),
        ] {
            #expect(try arguments("timeout", text).seconds("timeout") == time, "\(text)")
        }
        for (text, count) in [
            ("500000", 500_000), ("500K", 500_000), ("10MB", 10_000_000), ("10mb", 10_000_000), ("1.5G", 1_500_000_000),
            ("10MiB", 10 << 20), ("1Ki", 1024), ("7b", 7),
        ] {
            #expect(try arguments("max-body", text).bytes("max-body") == count, "\(text)")
        }
        for text in ["", "0", "-1", "K", "1X", "1KX", "1.5", "9999999999999T", "1 MB", "nan"] {
            #expect(throws: UsageError.self, "\(text)") { try arguments("max-body", text).bytes("max-body") }
        }
    }

    @Test(arguments: ["", "0", "-1", "abc", "nan", "inf", "1x", "s", "1 s", "1e99"])
    func whatIsNoTimeIsRefused(text: String) {
        #expect(throws: UsageError.self) { try arguments("timeout", text).seconds("timeout") }
    }

    @Test(arguments: ["", "0", "-1", "1.5", "99999999999999999999"])
    func whatIsNoCountIsRefused(text: String) {
        #expect(throws: UsageError.self) { try arguments("repeat", text).integer("repeat", in: 1...Int.max) }
    }

    @Test func statusCodesAreRangesOrLists() throws {
        #expect(try arguments("status", "200").statusRanges("status") == [200...200])
        #expect(try arguments("status", "200-299,404").statusRanges("status") == [200...299, 404...404])
    }

    @Test(arguments: ["", "2xx", "99", "300-200", "200-", "200,,404", "1000", "+200", "0200", "200-300-400"])
    func whatIsNoStatusIsRefused(text: String) {
        #expect(throws: UsageError.self) { try arguments("status", text).statusRanges("status") }
    }

    @Test func headerFieldsKeepColonsInTheirValue() throws {
        let fields = try arguments("header", "A: b:c", "D:", "E:  f ").headerFields("header")
        #expect(fields.map(\.name) == ["A", "D", "E"])
        #expect(fields.map(\.value) == ["b:c", "", "f "])
        #expect(throws: UsageError.self) { try arguments("header", "nothing").headerFields("header") }
        #expect(throws: UsageError.self) { try arguments("header", ": b").headerFields("header") }
    }

    @Test func pairsKeepEqualSignsInTheirValue() throws {
        let pairs = try arguments("query", "a=b=c", "d=").pairs("query")
        #expect(pairs.map(\.value) == ["b=c", ""])
        #expect(throws: UsageError.self) { try arguments("query", "nothing").pairs("query") }
    }
}
