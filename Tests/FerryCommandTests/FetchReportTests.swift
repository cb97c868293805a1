import Ferry
import FerryMeasurement
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryCommand

@Suite struct FetchReportTests {
    /// What `--json` promises to scripts.
    private static let fields: Set = [
        "ok", "status", "url", "fromCache", "bytes", "sha256", "headers", "redirects", "attempts", "reusedConnection",
        "engine", "metrics", "error", "cacheStatus",
        "trailers", "informational",
    ]

    private func report(_ line: String...) async throws -> FetchReport {
        let plan = try FetchPlan(ParsedArguments(line, of: FetchCommand.allOptions))
        return await withNetworkAgent(configuration: plan.configuration, grace: .zero) { agent in
            await FetchReport(of: plan, by: agent)
        }
    }

    private func object(_ report: FetchReport) throws -> [String: JSONText] {
        #expect(!report.json.contains("\n"))
        return try JSONDecoder().decode([String: JSONText].self, from: Data(report.json.utf8))
    }

    @Test func aGoodAnswerHasAllFields() async throws {
        try await withLoopbackServer { server in
            server.handle("GET", "/two") { _ in
                let headers: LoopbackHeaders = ["X-A": "1", "x-a": "2", "Set-Cookie": "a=1", "Set-Cookie": "b=2"]
                return LoopbackResponse(headers: headers, text: "abc")
            }
            let report = try await report(server.baseURL + "/two")
            let object = try object(report)
            #expect(Set(object.keys) == Self.fields)
            #expect(object["ok"] == "true")
            #expect(object["status"] == "200")
            #expect(object["bytes"] == "3")
            #expect(object["sha256"] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
            #expect(object["error"] == "null")
            #expect(report.json.contains(#""x-a":"1, 2""#))
            #expect(report.json.contains(#""set-cookie":"a=1\nb=2""#))
            #expect(report.exitCode == .success)
        }
    }

    @Test(arguments: [("automatic", "http1"), ("libcurl", "libcurl")])
    func theEngineAskedForIsTheOneThatCarries(engine: String, carrier: String) async throws {
        try await withLoopbackServer { server in
            let report = try await report(server.baseURL + "/hello", "--engine", engine)
            #expect(report.json.contains("\"engine\":\"\(carrier)\""), "\(report.json)")
        }
    }

    @Test func aStatusThatIsNotAcceptedKeepsItsBody() async throws {
        try await withLoopbackServer { server in
            let report = try await report(server.baseURL + "/status/404?body=nothing")
            let object = try object(report)
            #expect(Set(object.keys) == Self.fields)
            #expect(object["ok"] == "false")
            #expect(object["status"] == "404")
            #expect(report.response?.text == "nothing")
            #expect(report.fault?.code == "invalidStatusCode")
            #expect(report.exitCode == .statusNotAccepted)
        }
    }

    @Test func noAnswerIsAnErrorWithAllFields() async throws {
        try await withLoopbackServer { server in
            let report = try await report(server.baseURL + "/delay/60000", "--timeout", "0.05")
            let object = try object(report)
            #expect(Set(object.keys) == Self.fields)
            #expect(object["status"] == "null")
            #expect(report.fault?.code == "timeout")
            #expect(report.fault?.phase == "waitingHead")
            #expect(report.fault?.mayHaveBeenProcessed == true)
            #expect(report.exitCode == .transferFailed)
        }
    }

    @Test(arguments: [
        ("http://a b/", "invalidURL", ExitCode.usage), ("gopher://h/", "unsupportedScheme", .usage),
        ("http://127.0.0.1:1/", "connect", .transferFailed),
    ])
    func whatCannotBeSentHasItsCode(url: String, code: String, exitCode: ExitCode) async throws {
        let report = try await report(url)
        #expect(report.fault?.code == code)
        #expect(report.exitCode == exitCode)
    }

    @Test func aURLWithoutItsBeginningIsOneOfHTTP() async throws {
        try await withLoopbackServer { server in
            let report = try await report(String(server.baseURL.dropFirst("http://".count)) + "/hello")
            #expect(report.response?.status == 200)
        }
        let end = try FerryProgram.run("download", "ftp://127.0.0.1:1/x")
        #expect(end.code == 1 && end.output.hasSuffix(": a URL begins with http:// or https://\n"), "\(end)")
    }

    @Test(arguments: [
        (["http://nobody.invalid/"], "could not resolve \"nobody.invalid\""),
        (["127.0.0.1:1/x"], "could not connect to 127.0.0.1:1: connection refused"),
        (["//127.0.0.1:1/x"], "could not connect to 127.0.0.1:1: connection refused"),
        (["http://h/", "--unix-socket", "/none"], "could not connect to /none: No such file or directory"),
        (["http://h/", "--proxy", "127.0.0.1:1"], "could not connect to the proxy: Connection refused"),
    ]) func aFailureNamesWhatItIsAbout(line: [String], text: String) throws {
        let end = try FerryProgram.run(["fetch"] + line)
        #expect(end.code == 3 && end.output == "ferry fetch: \(text)\n", "\(end)")
    }

    @Test(arguments: [
        (["http://kim:secret@a b/x?q=1"], "invalid URL \"http://a b/x\": space at position 9"),
        (["http://kim:s3/pw@h:1/x?q=1"], "invalid URL \"http://h:1/x\": the port is not a number up to 65535"),
        (["http://kim:s3#pw@h:1/x"], "invalid URL \"http://h:1/x\": the port is not a number up to 65535"),
        (["http://kim:s3?pw@h/x"], "invalid URL \"http://h/x\": the port is not a number up to 65535"),
        (["http://h/a?q=b c"], "invalid URL \"http://h/a\": space in a part that is not shown"),
        (["/get"], "invalid URL \"http:///get\": no host"),
        (["http://kim:secret@:80/"], "invalid URL \"http://:80/\": no host"),
        (["http://[::1/x"], "invalid URL \"http://[::1/x\": no ] after the address"),
        (["http://h:99999/"], "invalid URL \"http://h:99999/\": port 99999 is not a number up to 65535"),
        (["http://h/", "-X", "a b"], "the method is not a token"),
        (["http://h/", "-H", "a b: c"], "the name of a header field is not a token"),
        (["gopher://h/x"], "\"gopher://h/x\" cannot be fetched: a URL begins with http:// or https://"),
    ]) func whatCannotBeSentIsWrongUsageEverywhere(line: [String], text: String) throws {
        for command in [["fetch"], ["fetch", "--to-curl"], ["bench", "-n", "1"]] {
            let end = try FerryProgram.run(command + line)
            let said = "ferry \(command[0]): \(text)" + (command[0] == "bench" ? " (see ferry bench --help)\n" : "\n")
            #expect(end.code == 1 && end.output == said, "\(end)")
        }
    }

    @Test func aBoundThatPassedIsNamed() async throws {
        try await withLoopbackServer { server in
            for (options, text) in [
                (["--deadline", "100ms"], "no complete response within 100 ms (deadline)"),
                (["--timeout", "0.2s"], "no complete response within 200 ms (timeout)"),
            ] {
                let end = try FerryProgram.run(["fetch", server.baseURL + "/delay/60000"] + options)
                #expect(end.code == 3 && end.output == "ferry fetch: \(text)\n", "\(end)")
            }
            // The handshake of TLS with a server that responds with nothing.
            server.script([.keepOpen])
            let place = "127.0.0.1:\(server.port)"
            let end = try FerryProgram.run(["fetch", "https://\(place)/", "--connect-timeout", "200ms"])
            let text = "no connection to \(place) within 200 ms (connect timeout)"
            #expect(end.code == 3 && end.output == "ferry fetch: \(text)\n", "\(end)")
        }
    }

    @Test(arguments: ["automatic", "libcurl"]) func aRejectedResponseIsExplained(engine: String) async throws {
        try await withLoopbackServer { server in
            server.script(
                path: "/length", [.send("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello"), .close])
            let coded = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello"
            server.script(path: "/coding", [.send(coded), .close])
            let tls = server.baseURL.replacing("http:", with: "https:")
            let long = String(repeating: "a", count: 70_000)
            server.script(path: "/head", [.send("HTTP/1.1 200 OK\r\nX-A: \(long)\r\n\r\n"), .close])
            for (line, text) in [
                ([server.baseURL + "/head"], "the head of the response has more than 65,536 bytes or 1,000 fields"),
                ([server.baseURL + "/length"], "malformedResponse(length): the response violates HTTP"),
                ([server.baseURL + "/coding"], "contentDecoding(corrupt): the compressed body is damaged"),
                (
                    [server.baseURL + "/bytes/20000", "--max-body", "10kB"],
                    "the body is larger than 10,000 bytes (--max-body)"
                ),
                (
                    [server.baseURL + "/hello", "--status", "201,300-399"],
                    "status 200 is not accepted (expected 201, 300-399)"
                ),
                ([tls], "no TLS connection to 127.0.0.1:\(server.port): wrong version number"),
            ] {
                let end = try FerryProgram.run(["fetch", "--engine", engine, "-o", "/dev/null"] + line)
                #expect(end.output == "ferry fetch: \(text)\n", "\(line): \(end)")
            }
        }
    }

    @Test func queryFormAndCredentialsArrive() async throws {
        try await withLoopbackServer { server in
            _ = try await report(
                server.baseURL + "/echo", "--query", "q=1 2", "--form", "a=b&c", "--basic", "kim:secret",
                "-H", "X-A: b")
            let seen = try #require(server.requests.last)
            #expect(seen.method == "POST")
            #expect(seen.query == "q=1%202")
            #expect(seen.text == "a=b%26c")
            #expect(seen.headers["Content-Type"] == "application/x-www-form-urlencoded")
            #expect(seen.headers["Authorization"] == "Basic a2ltOnNlY3JldA==")
            #expect(seen.headers["X-A"] == "b")
        }
    }
}

/// A JSON value as short text, for comparing.
private struct JSONText: Decodable, Equatable, ExpressibleByStringLiteral {
    let text: String

    init(stringLiteral value: String) {
        text = value
    }

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            text = "null"
        } else if let truth = try? value.decode(Bool.self) {
            text = "\(truth)"
        } else if let number = try? value.decode(Int.self) {
            text = "\(number)"
        } else {
            text = (try? value.decode(String.self)) ?? "…"
        }
    }
}
