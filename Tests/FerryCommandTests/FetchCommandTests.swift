import Ferry
import FerryMeasurement
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryCommand

/// The output of `ferry fetch`, and where it goes.
@Suite(.timeLimit(.minutes(2))) struct FetchCommandTests {
    private struct Outcome {
        var output: [UInt8] = []
        var said = ""
        var code = ExitCode.success
        var text: String { String(decoding: output, as: UTF8.self) }
    }

    private func fetch(_ line: String...) async throws -> Outcome {
        let plan = try FetchPlan(ParsedArguments(line, of: FetchCommand.allOptions))
        var outcome = Outcome()
        outcome.code = await FetchCommand.send(plan) {
            outcome.output += $0
        } saying: {
            outcome.said += $0
        }
        return outcome
    }

    /// The built command, started by a shell.
    private func run(_ script: String, _ arguments: String..., environment: [String: String] = [:]) throws
        -> ChildProcess.End
    {
        let bundle = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
        let program = URL(filePath: bundle).deletingLastPathComponent().appending(path: "ferry").path
        return try ChildProcess(["/bin/sh", "-c", script, program] + arguments, environment: environment).finish()
    }

    /// A new file in its place would leave the device, the pipe or the link's target as it was.
    @Test func aRecordingIsWrittenIntoTheFile() async throws {
        try await withLoopbackServer { server in
            let folder = FileManager.default.temporaryDirectory.appending(
                path: "ferry-har-\(UInt64.random(in: 0 ... .max))")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let (target, link) = (folder.appending(path: "target"), folder.appending(path: "link"))
            try Data("old".utf8).write(to: target)
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: target)
            let end = try run(#"exec "$0" "$@""#, "fetch", server.baseURL + "/hello", "--har", link.path)
            #expect(end.code == 0)
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link.path) == target.path)
            #expect(try String(decoding: Data(contentsOf: target), as: UTF8.self).contains("\"entries\""))
            let full = try run(#"exec "$0" "$@" 2>&1"#, "fetch", server.baseURL + "/hello", "--har", "/dev/full")
            let message = "ferry fetch: cannot write /dev/full: No space left on device\n"
            #expect(full.code == 3 && full.output.hasSuffix(message), "\(full)")
        }
    }

    @Test func aFileOfUnknownLengthIsSentWhole() async throws {
        // A file of sysfs says that it has a page.
        let cpus = "/sys/devices/system/cpu/online"
        let known = String(decoding: try InputFile.bytes(at: cpus), as: UTF8.self)
        try #require(!known.isEmpty)
        try await withLoopbackServer { server in
            for (path, content) in [("/proc/version", "Linux version"), (cpus, known)] {
                for line in [["-d", "@\(path)"], ["-F", "f=@\(path)"]] {
                    let end = try run(#"exec "$0" "$@""#, "fetch", server.baseURL + "/echo/body", line[0], line[1])
                    #expect(end.code == 0 && end.output.contains(content), "\(end)")
                    let name = "filename=\"\(path.split(separator: "/").last ?? "")\""
                    #expect(end.output.contains(name) == (line[0] == "-F"), "\(end)")
                }
                let curl = "curl \(server.baseURL)/echo/body -F f=@\(path)"
                _ = try run(#"exec "$0" "$@""#, "bench", "-n", "1", "-c", "1", "--from-curl", curl)
                #expect(server.requests.last?.text.contains(content) == true)
            }
        }
    }

    @Test func anEmptyFileKeepsItsNameAndAPipeHasNone() async throws {
        let file = try TemporaryFile([])
        try await withLoopbackServer { server in
            let url = server.baseURL + "/echo/body"
            let own = String(file.path.split(separator: "/").last ?? "")
            let empty = try run(#"exec "$0" "$@""#, "fetch", url, "-F", "f=@\(file.path)")
            #expect(empty.code == 0 && empty.output.contains("filename=\"\(own)\""), "\(empty)")
            for path in ["-", "/dev/stdin"] {
                let pipe = try run(#"echo piped | "$0" "$@""#, "fetch", url, "-F", "f=@\(path)")
                #expect(pipe.code == 0 && pipe.output.contains("filename=\"-\""), "\(pipe)")
            }
        }
    }

    @Test func anArgumentThatIsNoTextIsAUsageError() throws {
        let end = try run(#"exec "$0" fetch -d "$(printf 'a\377')" http://127.0.0.1:1/ 2>&1"#)
        #expect(end.code == 1 && end.output == "ferry: argument 3 is not valid UTF-8\n", "\(end)")
    }

    @Test func theBodyGoesOutAndNothingElse() async throws {
        try await withLoopbackServer { server in
            let outcome = try await fetch(server.baseURL + "/hello")
            #expect(outcome.text == "Hello, ferry" && outcome.said == "" && outcome.code == .success)
        }
    }

    @Test(arguments: ["gzip", "zstd"]) func aBodyIsCompressedOnDemand(coding: String) async throws {
        try await withLoopbackServer { server in
            server.handle("/upload") { request in
                LoopbackResponse(
                    headers: ["Content-Encoding": request.headers["Content-Encoding"] ?? ""], body: request.body)
            }
            let text = String(repeating: "a line of a log\n", count: 10_000)
            let file = try TemporaryFile(Array(text.utf8))
            for line in [["-d", text], ["-d", "@" + file.path]] {
                let words = [server.baseURL + "/upload", "--compress-body", coding] + line
                let plan = try FetchPlan(ParsedArguments(words, of: FetchCommand.allOptions))
                var output: [UInt8] = []
                let code = await FetchCommand.send(plan) {
                    output += $0
                } saying: { _ in
                }
                #expect(code == .success && output == Array(text.utf8))
                let sent = try #require(server.requests.last)
                #expect(sent.headers["Content-Encoding"] == coding && sent.body.count < text.count / 10)
            }
        }
        #expect(await Main.run(["fetch", "http://h/", "--compress-body", "gzip"]) == .usage)
        #expect(await Main.run(["fetch", "http://h/", "-d", "a", "--compress-body", "br"]) == .usage)
    }

    @Test func theBodyIsPutOutAsItComes() async throws {
        try await withLoopbackServer { server in
            server.script(
                path: "/slow",
                [.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"), .wait("go"), .send("def"), .close])
            let plan = try FetchPlan(ParsedArguments([server.baseURL + "/slow"], of: FetchCommand.allOptions))
            var pieces: [[UInt8]] = []
            let code = await FetchCommand.send(plan) { piece in
                pieces.append(Array(piece))
                server.signal("go")
            } saying: { _ in
            }
            // If it had been held back, nothing would have released the rest.
            #expect(code == .success && pieces.first == Array("abc".utf8))
            #expect(pieces.flatMap { $0 } == Array("abcdef".utf8))
        }
    }

    @Test func aBodyThatIsCutOffIsPutOutAndFails() async throws {
        try await withLoopbackServer { server in
            server.script(path: "/cut", [.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc"), .close])
            let outcome = try await fetch(server.baseURL + "/cut")
            #expect(outcome.text == "abc" && outcome.code == .transferFailed)
            #expect(outcome.said == "ferry fetch: the body ended early (expected: 6, got: 3)\n")
        }
    }

    @Test func anErrorStatusHasItsBodyAndALine() async throws {
        try await withLoopbackServer { server in
            let outcome = try await fetch(server.baseURL + "/status/503?body=later")
            #expect(outcome.text == "later" && outcome.code == .statusNotAccepted)
            #expect(outcome.said == "ferry fetch: status 503 is not accepted (expected 200-299)\n")
        }
    }

    @Test func repetitionsAreALineEach() async throws {
        try await withLoopbackServer { server in
            let outcome = try await fetch(server.baseURL + "/hello", "--json", "--repeat", "3", "-d", "x")
            let lines = outcome.text.split(separator: "\n")
            #expect(lines.count == 3 && lines.allSatisfy { $0.hasPrefix("{\"attempts\":1,") })
            #expect(lines.dropFirst().allSatisfy { $0.contains("\"reusedConnection\":true") })
            #expect(outcome.said == "")
        }
    }

    @Test func anAttemptThatReachesNoServerCounts() async throws {
        let one = try await fetch("http://127.0.0.1:1/", "--json")
        #expect(one.text.hasPrefix("{\"attempts\":1,"), "\(one.text)")
        let three = try await fetch("http://127.0.0.1:1/", "--json", "--retries", "2")
        #expect(three.text.hasPrefix("{\"attempts\":3,"), "\(three.text)")
    }

    @Test func standardInputIsTheBody() async throws {
        try await withLoopbackServer { server in
            let url = server.baseURL + "/hello"
            #expect(try run(#"printf 'a=1' | "$0" fetch -d @- --max-redirects 0 "$1""#, url).code == 0)
            let once = try #require(server.requests.last)
            #expect(once.text == "a=1" && once.headers["Transfer-Encoding"] == "chunked")
            #expect(try run(#"printf 'a=1' | "$0" fetch -d @- "$1""#, url).code == 0)
            #expect(server.requests.last?.text == "a=1")
            #expect(try run(#"printf 'a=1' | "$0" fetch -d @- --repeat 2 "$1""#, url).code == 0)
            #expect(server.requests.suffix(2).map(\.text) == ["a=1", "a=1"])
        }
    }

    @Test(arguments: [307, 308]) func standardInputGoesWhereARedirectPoints(status: Int) async throws {
        try await withLoopbackServer { server in
            server.handle("/moved") { _ in LoopbackResponse(status: status, headers: ["Location": "/echo"]) }
            let end = try run(#"printf 'a=1' | "$0" fetch -d @- "$1""#, server.baseURL + "/moved")
            #expect(end.code == 0)
            #expect(server.requests.map(\.text) == ["a=1", "a=1"])
        }
    }

    @Test func theProxyOfTheEnvironmentIsTakenOnRequest() async throws {
        try await withLoopbackServer { proxy in
            let environment = ["http_proxy": "http://127.0.0.1:\(proxy.port)", "no_proxy": ""]
            let url = "http://site.test/hello"
            let end = try run(#""$0" fetch --proxy-env "$1""#, url, environment: environment)
            #expect(end.output == "Hello, ferry" && proxy.requests.last?.target == url)
            let direct = try run(#""$0" fetch --deadline 5 "$1""#, "http://127.0.0.1:1/", environment: environment)
            #expect(direct.code == 3 && proxy.requestCount == 1)
        }
    }

    @Test func verboseSpeaksOnStandardErrorAndKeepsSecrets() async throws {
        try await withLoopbackServer { server in
            server.handle("/x") { _ in LoopbackResponse(headers: ["Set-Cookie": "canary", "X-A": "b"], text: "body") }
            let end = try run(
                #""$0" fetch -v -u kim:canary -H 'X-Api-Key: canary' --query t=canary "$1" 2>&1 >/dev/null"#,
                server.baseURL + "/x")
            #expect(end.code == 0 && end.output.contains("status=200") && end.output.contains("X-A: b"))
            #expect(end.output.contains("new connection to 127.0.0.1"))
            #expect(!end.output.contains("canary") && !end.output.contains("body"))
        }
    }

    @Test func toCurlSendsNothingAndKeepsSecrets() async throws {
        try await withLoopbackServer { server in
            let shown = #""$0" fetch -u kim:canary -d canary --query t=canary "$1" "#
            let redacted = try run(shown + "--to-curl", server.baseURL + "/hello")
            #expect(redacted.code == 0 && redacted.output.hasPrefix("curl ") && !redacted.output.contains("canary"))
            #expect(server.requestCount == 0)
            let whole = try run(shown + "--to-curl --show-secrets", server.baseURL + "/hello")
            #expect(try run(whole.output).output == "Hello, ferry")
            let seen = try #require(server.requests.last)
            #expect(seen.text == "canary" && seen.query == "t=canary")
            #expect(seen.headers["Authorization"] == "Basic a2ltOmNhbmFyeQ==")
        }
    }

    @Test func theHelpNamesEveryOption() {
        for option in FetchCommand.allOptions { #expect(FetchCommand.help.contains("--\(option.name)")) }
        #expect(Set(FetchCommand.allOptions.map(\.name)).count == FetchCommand.allOptions.count)
        let letters = FetchCommand.allOptions.compactMap(\.letter)
        #expect(Set(letters).count == letters.count)
    }
}
