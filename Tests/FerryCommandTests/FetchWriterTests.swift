import Ferry
import FerryMeasurement
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryCommand

/// How a response is printed, and where its body goes.
@Suite struct FetchWriterTests {
    private func printed(
        _ form: FetchForm, type: String = "text/plain", _ pieces: String...
    ) async throws -> (text: String, fault: String?) {
        let stub = StubTransport(always: .response(headers: ["Content-Type": type, "X-A": "1"]))
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://h"), stub: stub)
        let head = try await agent.get("/")
        var bytes: [UInt8] = []
        let writer = FetchWriter(form, file: nil) { bytes += $0 }
        writer.head(head)
        for piece in pieces { Array(piece.utf8).withUnsafeBytes(writer.body) }
        writer.end()
        return (String(decoding: bytes, as: UTF8.self), writer.fault)
    }

    private var terminal: FetchForm {
        var form = FetchForm()
        form.isTerminal = true
        form.formatsJSON = true
        return form
    }

    @Test func aPipeGetsTheBytesAsTheyAre() async throws {
        #expect(try await printed(FetchForm(), "a\u{1B}[1m", "b") == ("a\u{1B}[1mb", nil))
        #expect(try await printed(FetchForm(), type: "application/json", "{\"a\":1}").text == "{\"a\":1}")
    }

    @Test func onATerminalTheBodyEndsWithItsLine() async throws {
        #expect(try await printed(terminal, "a").text == "a\n")
        #expect(try await printed(terminal, "a\n").text == "a\n")
        #expect(try await printed(terminal, "a", "\tb\r\n").text == "a\tb\r\n")
    }

    @Test(arguments: ["\u{1B}[2J", "\u{7F}", "\0", "\u{9B}2J", "\u{202E}x", "\u{2028}x", "secret\rshown"])
    func whatCommandsATerminalIsNotPrinted(text: String) async throws {
        let (shown, fault) = try await printed(terminal, "good ", text, "more")
        #expect(shown == "good ")
        #expect(fault?.contains("-o FILE") == true)
    }

    @Test func whatIsNotTextIsNotPrintedAndACharacterMayComeInPieces() async throws {
        let agent = NetworkAgent(
            configuration: NetworkConfiguration(baseURL: "http://h"), stub: StubTransport(always: .response()))
        let head = try await agent.get("/")
        for (pieces, text) in [
            ([[0x61, 0xC3], [0xA4, 0x62]], "aäb\n"), ([[0xF0, 0x9F], [0x98], [0x80]], "😀\n"),
            ([[0x61, 0x0D], [0x0A]], "a\r\n"),
            ([[0x61, 0x0D], [0x62]], nil), ([[0x89, 0xFF, 0xFE]], nil), ([[0x61, 0xC3]], nil), ([[0xC3], [0x28]], nil),
        ] as [([[UInt8]], String?)] {
            var bytes: [UInt8] = []
            let writer = FetchWriter(terminal, file: nil) { bytes += $0 }
            writer.head(head)
            for piece in pieces { piece.withUnsafeBytes(writer.body) }
            writer.end()
            #expect((writer.fault == nil) == (text != nil), "\(pieces)")
            if let text { #expect(String(decoding: bytes, as: UTF8.self) == text) }
        }
    }

    @Test func deepJSONIsNotIndentedWithoutEnd() throws {
        let deep = Array((String(repeating: "[", count: 900) + String(repeating: "]", count: 900)).utf8)
        let text = try #require(JSONPrinter.text(of: deep, usesColor: false))
        #expect(text.utf8.count < 900 * 2 * 82)
    }

    @Test func jsonIsIndentedOnATerminal() async throws {
        let (text, fault) = try await printed(terminal, type: "application/problem+json; x=y", "{\"a\":", "[1,2]}")
        #expect(text == "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n" && fault == nil)
        // A body that is only declared as JSON is printed unchanged.
        #expect(try await printed(terminal, type: "application/json", "{\"a\":").text == "{\"a\":\n")
        var raw = terminal
        raw.formatsJSON = false
        #expect(try await printed(raw, type: "application/json", "{\"a\":1}").text == "{\"a\":1}\n")
    }

    @Test func theHeadComesFirst() async throws {
        var form = FetchForm()
        form.includesHead = true
        #expect(try await printed(form, "b").text == "HTTP/1.1 200\r\nContent-Type: text/plain\r\nX-A: 1\r\n\r\nb")
    }

    // MARK: JSON

    @Test(arguments: [
        ("{}", "{}\n"), ("[ ]", "[]\n"), (" 1.50 ", "1.50\n"), ("[1e5,-0]", "[\n  1e5,\n  -0\n]\n"),
        (#"{"a\"}":{"b":[]},"c":"x: {y, [z"}"#, "{\n  \"a\\\"}\": {\n    \"b\": []\n  },\n  \"c\": \"x: {y, [z\"\n}\n"),
        (#"["\u001b[1m",true,null]"#, "[\n  \"\\u001b[1m\",\n  true,\n  null\n]\n"),
        ("[\"\u{9B}\u{202E}\"]", "[\n  \"\\u009b\\u202e\"\n]\n"),
        ("[12345678901234567890123]", "[\n  12345678901234567890123\n]\n"),
    ]) func numbersAndStringsKeepTheirSpelling(json: String, text: String) {
        #expect(JSONPrinter.text(of: Array(json.utf8), usesColor: false) == text)
    }

    @Test func colorsSurroundTokensOnly() {
        let text = JSONPrinter.text(of: Array(#"{"a":[1,"b",true]}"#.utf8), usesColor: true) ?? ""
        #expect(text.contains("\u{1B}[1;34m\"a\"\u{1B}[0m: ["))
        #expect(text.contains("\u{1B}[36m1\u{1B}[0m") && text.contains("\u{1B}[32m\"b\"\u{1B}[0m"))
        #expect(text.contains("\u{1B}[35mtrue\u{1B}[0m"))
    }

    @Test(arguments: ["", "{", "[1,]", "nonsense", "{} {}"]) func whatIsNoJSONIsNotPrinted(text: String) {
        #expect(JSONPrinter.text(of: Array(text.utf8), usesColor: false) == nil)
    }

    // MARK: Files

    private func withFolder(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.path() + "/ferry-output-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body(folder)
    }

    private func text(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func theBodyGoesToAFileWithJSONToo() async throws {
        try await withLoopbackServer { server in
            try withFolder { folder in
                let file = folder + "/out"
                let plain = try FerryProgram.run("fetch", server.baseURL + "/bytes/10", "-o", file)
                #expect(plain.code == 0 && plain.output.isEmpty && text(file) == "abcdefghij")
                let json = try FerryProgram.run("fetch", server.baseURL + "/bytes/12", "--json", "-o", file)
                #expect(json.code == 0 && json.output.hasPrefix("{") && text(file) == "abcdefghijkl")
                let head = try FerryProgram.run("fetch", "-I", server.baseURL + "/bytes/10")
                #expect(head.code == 0 && head.output.hasPrefix("HTTP/1.1 200\r\n") && !head.output.contains("abc"))
                #expect(server.requests.last?.method == "HEAD")
            }
        }
    }

    @Test func whatCannotBeWrittenIsKnownBeforeAnythingIsSent() async throws {
        try await withLoopbackServer { server in
            try withFolder { folder in
                for path in [folder, folder + "/missing/out"] {
                    let end = try FerryProgram.run("fetch", server.baseURL + "/hello", "-o", path)
                    #expect(end.code == 2 && end.output.hasPrefix("ferry fetch: cannot write \(path): "), "\(end)")
                }
                #expect(server.requestCount == 0)
            }
        }
    }

    @Test(arguments: [
        (["-o", "a", "-O", "http://h/x"], "--output and --remote-name cannot be combined"),
        (["-O", "http://h/"], "--remote-name needs a URL that ends in a file name"),
        (["-I", "-X", "GET", "http://h/"], "--head and --request cannot be combined"),
        (["-I", "-d", "x", "http://h/"], "--head cannot be combined with a body"),
        (["-i", "--json", "http://h/"], "--json and --include cannot be combined"), ([""], "the URL is empty"),
        (["-o", "-", "--json", "http://h/"], "--json and --output - cannot be combined"),
    ]) func whatContradictsItselfIsAUsageError(line: [String], text: String) throws {
        let end = try FerryProgram.run(["fetch"] + line)
        #expect(end.code == 1 && end.output.contains(text), "\(end)")
    }

    // MARK: Events, traces, recordings

    private func withEvents(_ body: (LoopbackServer) throws -> Void) async throws {
        try await withLoopbackServer { server in
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            server.script(
                path: "/events", uses: 1,
                [
                    .expectHead,
                    .send(head + "retry: 1\nid: 7\nevent: price\ndata: 1\ndata: 2\n\ndata: \u{1B}[1m\n\n"), .close,
                ])
            server.handle("/events") { _ in LoopbackResponse(status: 204) }
            try body(server)
        }
    }

    @Test func eventsArePrintedUntilTheServerEndsThem() async throws {
        try await withEvents { server in
            let end = try FerryProgram.run("fetch", "--events", server.baseURL + "/events")
            #expect(
                end.code == 0
                    && end.output == "event: price\nid: 7\ndata: 1\ndata: 2\n\nid: 7\ndata: \u{1B}[1m\n\n", "\(end)")
            #expect(server.requests.last?.headers["Last-Event-ID"] == "7")
        }
        try await withEvents { server in
            let end = try FerryProgram.run("fetch", "--events", "--json", server.baseURL + "/events")
            #expect(end.output.hasPrefix(#"{"data":"1\n2","event":"price","id":"7"}"# + "\n"), "\(end)")
        }
        // Each connection sends the body again, so that it is held.
        try await withEvents { server in
            let script = #"echo body | "$0" fetch --events --max-redirects 0 -d @- "$1" 2>&1"#
            let end = try ChildProcess(["/bin/sh", "-c", script, FerryProgram.path, server.baseURL + "/events"])
                .finish()
            #expect(end.code == 0 && server.requestCount == 2 && server.requests.last?.bodyLength == 5, "\(end)")
        }
        try await withLoopbackServer { server in
            let end = try FerryProgram.run("fetch", "--events", server.baseURL + "/status/404")
            #expect(end.code == 5 && end.output == "ferry fetch: status 404 is not accepted (expected 200)\n", "\(end)")
            let text = try FerryProgram.run("fetch", "--events", server.baseURL + "/hello")
            #expect(text.code == 4 && text.output.contains("text/event-stream"), "\(text)")
            let json = try FerryProgram.run("fetch", "--events", "--json", server.baseURL + "/status/404")
            #expect(json.code == 5 && json.output == end.output, "\(json)")
        }
    }

    @Test func aTraceAndAKeyAreSent() async throws {
        try await withLoopbackServer { server in
            let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            let line = ["--traceparent", parent, "--idempotency-key", "auto", "-d", "x", server.baseURL + "/upload"]
            #expect(try FerryProgram.run(["fetch"] + line).code == 0)
            let headers = try #require(server.requests.last?.headers)
            #expect(headers["traceparent"]?.hasPrefix(String(parent.prefix(36))) == true)
            #expect(headers["traceparent"] != parent)
            #expect(UUID(uuidString: headers["Idempotency-Key"] ?? "") != nil)
            let end = try FerryProgram.run("fetch", "--traceparent", "nonsense", server.baseURL)
            #expect(end.code == 1 && end.output.contains("--traceparent must be"), "\(end)")
        }
    }

    @Test func theExchangesAreWrittenAsHAR() async throws {
        try await withLoopbackServer { server in
            try withFolder { folder in
                let path = folder + "/x.har"
                let end = try FerryProgram.run(
                    "fetch", "--har", path, "--bearer", "canary", server.baseURL + "/redirect/1")
                #expect(end.code == 0, "\(end)")
                let archive = try HTTPArchive(contentsOf: path)
                #expect(archive.entries.map(\.response.status) == [302, 200])
                #expect(archive.entries.last?.response.content.text != nil)
                #expect(text(path)?.contains("canary") == false)
            }
        }
    }

    @Test func pipesAndStandardInputAreBodies() async throws {
        try await withLoopbackServer { server in
            for script in [
                #"echo piped | "$0" fetch -d @- "$1""#, #"echo piped | "$0" fetch -d @/dev/stdin "$1""#,
                #"cd "$(mktemp -d)" && echo file >- && echo piped | "$0" fetch -d @- "$1""#,
            ] {
                let shell = ["/bin/sh", "-c", script, try FerryProgram.path, server.baseURL + "/echo/body"]
                let end = try ChildProcess(shell).finish()
                #expect(end.code == 0 && end.output == "piped\n", "\(end)")
            }
        }
    }
}
