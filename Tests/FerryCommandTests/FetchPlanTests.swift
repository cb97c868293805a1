import Ferry
import FerryTesting
import Testing

@testable import FerryCommand

@Suite struct FetchPlanTests {
    private func plan(_ line: String...) throws -> FetchPlan {
        try FetchPlan(ParsedArguments(line, of: FetchCommand.allOptions))
    }

    @Test func defaultsAreAPlainGet() throws {
        let plan = try plan("http://h/")
        #expect(plan.request.method == .get)
        #expect(plan.request.body == nil)
        #expect(plan.count == 1)
        #expect(plan.statusRanges == [200...299])
    }

    @Test func aBodyMakesItAPost() throws {
        #expect(try plan("http://h/", "-d", "x").request.method == .post)
        #expect(try plan("http://h/", "--form", "a=b").request.method == .post)
        #expect(try plan("http://h/", "--json-body", "[1]").request.method == .post)
        #expect(try plan("http://h/", "--json-body", "[1]", "-X", "PUT").request.method == .put)
    }

    @Test func eventsAreRetriedByTheStreamAlone() throws {
        let plan = try plan("http://h/", "--events", "--retries", "2")
        #expect(plan.configuration.retryPolicy.maxAttempts == 1 && plan.reconnection.maxFailures == 2)
        #expect(try self.plan("http://h/", "--retries", "2").configuration.retryPolicy.maxAttempts == 3)
    }

    @Test func whatARecordingHasNoPlaceForIsSaid() async throws {
        let (server, recorder) = (try LoopbackServer(), Recorder(maxEntries: 1))
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.recorder = recorder
        let agent = NetworkAgent(configuration: configuration)
        for shortage in [nil, "1 exchange was", "2 exchanges were"] {
            _ = try await agent.get("/hello")
            let expected = shortage.map { $0 + " not recorded: --har has room for 1 exchanges and 64 MiB" }
            #expect(recorder.shortage == expected)
        }
        await agent.shutdown()
    }

    @Test func queryIsEncodedAndPutBeforeTheFragment() throws {
        let encoded = try plan("http://h/p", "--query", "a=1&2", "--query", "ä=x y").request.path
        #expect(encoded == "http://h/p?a=1%262&%C3%A4=x%20y")
        #expect(try plan("http://h/p?q=1#f", "--query", "a=1").request.path == "http://h/p?q=1&a=1#f")
        #expect(try plan("http://h/p?", "--query", "a=1", "--query", "a=2").request.path == "http://h/p?a=1&a=2")
    }

    @Test(arguments: [
        [], ["http://h/", "http://i/"], ["http://h/", "-d", "a", "--form", "b=c"], ["http://h/", "--json-body", "{"],
        ["http://h/", "--json-body", "[1,]"], ["http://h/", "--json-body", "01"], ["http://h/", "--json-body", "-"],
        ["http://h/", "--json-body", "[1e999, 01]"], ["http://h/", "--json-body", "[1e999, 1.e1]"],
        ["http://h/", "--json-body", "[1e999"], ["http://h/", "--json-body", #"["\", 1e999]"#],
        ["http://h/", "--json-body", "1e999 1e999"], ["http://h/", "--json-body", "-1e+"],
        ["http://h/", "--json-body", #""\ud800""#],
        ["http://h/", "--basic", "nocolon"], ["http://h/", "--basic", "a:b", "--bearer", "t"],
        ["http://h/", "--pin", "x"], ["http://h/", "--engine", "x"], ["http://h/", "--engine", ""],
        ["http://h/", "--repeat", "0"], ["http://h/", "--max-body", "-1"], ["http://h/", "-F", "noequals"],
        ["http://h/", "-F", "a=b", "-d", "c"], ["http://h/", "--digest", "nocolon"],
        ["http://h/", "--digest", "a:b", "--basic", "a:b"], ["http://h/", "--max-redirects", "-1"],
        ["http://h/", "--retries", "x"], ["http://h/", "--tls-min", "1.1"], ["http://h/", "--key", "/dev/null"],
        ["http://h/", "--proxy", "http://p", "--proxy-env"], ["http://h/", "--no-proxy", "h"],
        ["http://h/", "--resolve", "h"], ["http://h/", "--resolve", "h:80"], ["http://h/", "--resolve", "[::1]"],
        ["http://h/", "--resolve", ":80:1.1.1.1"], ["http://h/", "--resolve", "h:80:x"],
        ["http://h/", "--resolve", "h:0:1.1.1.1"], ["http://h/", "--resolve", "h:80:1.1.1.1,"],
        ["http://h/", "--resolve", "[::1]:80:1.1.1.1"], ["http://h/", "--resolve", "h/:80:1.1.1.1"],
        ["http://h/", "--resolve", "h:80:" + Array(repeating: "1.1.1.1", count: 17).joined(separator: ",")],
        ["http://h/", "--unix-socket", ""], ["http://h/", "--unix-socket", String(repeating: "a", count: 108)],
        ["http://h/", "--proxy", ""], ["http://h/", "--proxy", "https://p"], ["http://h/", "--proxy", "h:x"],
        ["http://h/", "--proxy", "h", "--no-proxy", "a/b"],
        ["http://h/", "--events", "--status", "200"], ["http://h/", "--har", "-"],
        ["http://h/", "--json", "--to-curl"], ["http://h/", "--show-secrets"], ["http://h/", "--schema"],
    ])
    func nonsenseIsAUsageError(line: [String]) {
        #expect(throws: UsageError.self) { try FetchPlan(ParsedArguments(line, of: FetchCommand.allOptions)) }
    }

    /// `ferry bench` and `ferry download` have these options, too. The messages name them, and no password.
    @Test(arguments: [
        (["--resolve", ":80:1.1.1.1"], "--resolve must be HOST:PORT:ADDRESS, not ':80:1.1.1.1'"),
        (["--unix-socket", ""], "--unix-socket must be a path of 1 to 107 bytes, not of 0"),
        (["--proxy", "ftp://x"], "--proxy must be http://, socks5:// or socks5h://, and a host, not 'ftp://x'"),
        (["--proxy", "ftp://u:pw@x"], "--proxy must be http://, socks5:// or socks5h://, and a host"),
    ]) func aWrongAddressIsSaidOfItsOption(line: [String], message: String) {
        for options in [FetchCommand.allOptions, BenchCommand.allOptions, DownloadCommand.allOptions] {
            #expect(throws: UsageError(message)) { try NetworkConfiguration(ParsedArguments(line, of: options)) }
        }
    }

    @Test func addressesOfBothKindsAreTaken() throws {
        let overrides = try plan("http://h/", "--resolve", "h:80:::1,[::2],1.2.3.4").configuration.hostOverrides
        #expect(overrides == ["h:80": ["::1", "[::2]", "1.2.3.4"]])
        #expect(try plan("http://h/", "--proxy", "socks5h://u:p@h:1", "--no-proxy", "a, .b,10.0.0.0/8").count == 1)
    }

    /// The grammar of JSON has no limit for numbers (RFC 8259, 6).
    @Test(arguments: ["1e400", #"{"a": [-1.5E+999, "-", "\"", 1e999], "1e4": 0}"#, String(repeating: "9", count: 400)])
    func jsonMayHaveNumbersOfAnySize(text: String) throws {
        #expect(
            try FetchBody.held(ParsedArguments(["--json-body", text], of: FetchCommand.allOptions))?.bytes
                == Array(text.utf8))
    }

    @Test func aFileThatIsNotThereIsAnInputError() {
        #expect(throws: InputError.self) { try plan("http://h/", "-d", "@/nonexistent/file") }
        #expect(throws: InputError.self) { try plan("http://h/", "--cacert", "/nonexistent/file") }
        #expect(throws: InputError.self) { try plan("http://h/", "--cert", "/nonexistent/file") }
        #expect(throws: InputError.self) { try plan("http://h/", "-F", "a=@/nonexistent/file") }
        #expect(throws: InputError.self) { try plan("http://h/", "--json-body", "@/nonexistent/file") }
        #expect(throws: InputError.self) { try plan("http://h/", "--schema", "/nonexistent/file") }
    }

    @Test func timeoutTakesThePlaceOfTheIdleBound() throws {
        let timeouts = try #require(plan("http://h/", "--timeout", "90", "--connect-timeout", "2").request.timeouts)
        #expect(timeouts.total == .seconds(90))
        #expect(timeouts.idle == nil)
        #expect(timeouts.connect == .seconds(2))
    }
}
