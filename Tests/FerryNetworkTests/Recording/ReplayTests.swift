import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A recording answers as the server did.
@Suite(.timeLimit(.minutes(1))) struct ReplayTests {
    /// What `body` finds with the server, and again with the recording of that.
    private func twice<Found: Equatable & Sendable>(
        configuring configure: (inout NetworkConfiguration) -> Void = { _ in },
        serving serve: (LoopbackServer) -> Void = { _ in }, _ body: (NetworkAgent) async throws -> Found
    ) async throws -> HTTPArchive {
        let (server, recorder) = (try LoopbackServer(), Recorder())
        serve(server)
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configure(&configuration)
        var recorded = configuration
        recorded.recorder = recorder
        let agent = NetworkAgent(configuration: recorded)
        let first = try await body(agent)
        await agent.shutdown()
        let archive = try HTTPArchive(json: Array(recorder.archive.json()))
        let player = NetworkAgent(configuration: configuration, stub: StubTransport(har: archive))
        let second = try await body(player)
        await player.shutdown()
        #expect(first == second)
        return archive
    }

    private static let gzip: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4B, 0x4C, 0x4A, 0x06, 0x00, 0xC2, 0x41, 0x24,
        0x35, 0x03, 0x00, 0x00, 0x00,
    ]

    /// Each exchange is taken apart once, not for every request.
    @Test func aLongRecordingIsReplayedToItsEnd() async throws {
        let count = 5_000
        let entries = (0..<count).map { number in
            """
            {"startedDateTime": "2026-01-01T00:00:00Z", "time": 1, "cache": {}, "timings": {"send": 0, "wait": 1,
            "receive": 0}, "request": {"method": "POST", "url": "http://h/x?n=\(number)&token=***",
            "httpVersion": "HTTP/1.1", "cookies": [], "headers": [], "queryString": [], "headersSize": -1,
            "bodySize": 20, "postData": {"mimeType": "application/json", "params": [],
            "text": "{\\"n\\": \(number), \\"token\\": \\"***\\"}"}}, "response": {"status": 200, "statusText": "OK",
            "httpVersion": "HTTP/1.1", "cookies": [], "headers": [], "redirectURL": "", "headersSize": -1,
            "bodySize": 1, "content": {"size": 4, "mimeType": "text/plain", "text": "\(number)"}}}
            """
        }
        let text =
            #"{"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": ["#
            + entries.joined(separator: ",") + "]}}"
        let agent = NetworkAgent(
            configuration: NetworkConfiguration(baseURL: "http://h"),
            stub: StubTransport(har: try HTTPArchive(json: Array(text.utf8))))
        for number in 0..<count {
            let body = RequestBody.string(
                "{\"n\": \(number), \"token\": \"abc\"}", contentType: "application/json")
            let reply = try await agent.send(HTTPRequest(.post, "/x?n=\(number)&token=abc", body: body))
            if reply.text != "\(number)" { Issue.record("request \(number) got \(reply.text)") }
        }
        await agent.shutdown()
    }

    /// The body stays as it came, and so does the field that says what it is.
    @Test(arguments: ["gzip, gzip", "compress"]) func aBodyThatWasNotDecodedKeepsItsCoding(coding: String) async throws
    {
        _ = try await twice(serving: { server in
            server.handle("/x") { _ in LoopbackResponse(headers: ["Content-Encoding": coding], body: Self.gzip) }
        }) { agent in
            let reply = try await agent.send(Get("/x"))
            return [reply.headers["Content-Encoding"] ?? "none", "\(reply.bytes)"]
        }
    }

    @Test func aBodyThatWasDecodedIsPlain() async throws {
        _ = try await twice(serving: { server in
            server.handle("/x") { _ in LoopbackResponse(headers: ["Content-Encoding": "gzip"], body: Self.gzip) }
        }) { agent in
            try await agent.send(Get("/x")).text
        }
    }

    @Test func streamsAndBodiesThatAreNoTextAreReplayed() async throws {
        _ = try await twice(serving: { server in
            server.handle("/raw") { _ in LoopbackResponse(body: [0xFF, 0, 1, 2]) }
        }) { agent in
            var found = [Array(try await agent.stream(Get("/raw")).body.collect(upTo: 100))]
            let body = RequestBody.stream { Pieces(pieces: [[0xFF, 1], [2]]) }
            found.append(try await agent.post("/echo/body", body: body).bytes)
            found.append(try await agent.post("/echo/body", body: .bytes(Array("abc".utf8)).compressed(.gzip)).bytes)
            return found
        }
    }

    @Test func redirectsTokensAndCookiesAreReplayedWithoutTheirSecrets() async throws {
        let archive = try await twice(
            configuring: { configuration in
                configuration.authenticator = Session(token: "canary-old")
                configuration.keepsCookies = true
            },
            serving: { server in
                let tokens = TokenServer(on: server)
                server.handle("/start") { _ in
                    LoopbackResponse(
                        status: 307,
                        headers: [
                            "Location": "/end?session_token=canary-a&page=2", "Set-Cookie": "sid=canary-b; Path=/",
                            "Refresh": "0; url=http://kim:canary-c@h/", "Link": "</x?key=canary-d>; rel=next",
                        ])
                }
                server.handle("/end") { request in
                    guard tokens.isValid(request) else { return LoopbackResponse(status: 401) }
                    return LoopbackResponse(json: #"{"ok": true, "access_token": "canary-e"}"#)
                }
            }
        ) { agent in
            let reply = try await agent.send(HTTPRequest(.post, "/start", body: .json(["password": "canary-f"])))
            return [reply.status, reply.redirects.count, reply.attempts]
        }
        let text = String(decoding: try archive.json(), as: UTF8.self)
        #expect(!text.contains("canary-a") && !text.contains("canary-b") && !text.contains("canary-c"))
        #expect(!text.contains("canary-d") && !text.contains("canary-e") && !text.contains("canary-f"))
        #expect(archive.entries.map(\.response.status).contains(307))
    }

    /// The boundary of a form is random, and JSON is written anew when a secret in it is masked.
    @Test func bodiesWithSecretsAreFoundAgain() async throws {
        let archive = try await twice { agent in
            var found: [String] = []
            for name in ["kim", "eve"] {
                var form = Multipart()
                form.append("name", name)
                form.append("password", "canary-\(UInt64.random(in: 0 ... .max))")
                form.append(
                    "data", Array(#"{"token": "canary-\#(UInt64.random(in: 0 ... .max))", "n": 1}"#.utf8),
                    contentType: "application/json")
                let reply = try await agent.post("/echo/body", body: .multipart(form))
                found.append(reply.text.contains("\r\n\r\n\(name)\r\n") ? name : reply.text)
                let lines = "{\"name\": \"\(name)\"}\r\n{\"token\": \"canary\", \"n\": 1}\n"
                let body = RequestBody.string(lines, contentType: "application/x-ndjson")
                found.append("\(try await agent.post("/echo/body", body: body).text.contains(name))")
            }
            return found
        }
        #expect(archive.entries.allSatisfy { $0.request.postData?.text?.contains("***") == true })
        #expect(archive.entries.allSatisfy { $0.request.postData?.text?.contains("canary") == false })
    }

    /// Recorded by this or an earlier version: the request that matches, and one that does not.
    @Test(arguments: [
        ("/lf?a=1;token=***;b=2", "/lf?a=1;token=x;b=2", "/lf?a=2;token=x;b=2"),
        ("/x?token=***;b=2", "/x?token=y;b=2", "/x?token=y;b=3"),
        ("/x?token=***&b=2", "/x?token=y;z&b=2", "/x?token=y&b=3"),
        ("/x?q=a***b", "/x?q=a***b", "/x?q=acb"),
    ])
    func maskedArgumentsMatchAnyValue(recorded: String, same: String, other: String) async throws {
        let text = #"""
            {"log": {"version": "1.2", "entries": [
              {"startedDateTime": "", "time": 1, "request": {"method": "GET", "url": "http://shop.test\#(recorded)",
               "headers": [], "httpVersion": ""}, "response": {"status": 200, "statusText": "", "httpVersion": "",
               "headers": [], "content": {"size": 1, "text": "x"}}, "cache": {},
               "timings": {"send": 0, "wait": 0, "receive": 0}}]}}
            """#
        let stub = StubTransport(har: try HTTPArchive(json: Array(text.utf8)))
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: "http://shop.test"), stub: stub)
        #expect(try await agent.get(same).text == "x")
        #expect(await code { () throws(RequestError) in try await agent.get(other) }.map { .connect ~= $0 } == true)
    }

    @Test(arguments: [
        (#"{"token":"***","n":1}"#, #"{"token": "abc", "n": 1}"#, #"{"token": "abc", "n": 2}"#),
        ("{\"a\": 1}\n\u{1E}{\"token\":\"***\"}\n", "{\"a\": 1}\n\u{1E}{\"token\": 3}\n", "{\"a\": 1}\n{\"a\": 3}\n"),
        ("{\"token\":\"***\"}\n{}", "{\"token\": 3}\r\n{}", "{\"token\": 3}\n{}\n"),
    ])
    func linesAreComparedAsJSON(recorded: String, same: String, other: String) {
        let type = "application/x-ndjson"
        #expect(RecordedBody.matches(Array(recorded.utf8), type, Array(same.utf8), type))
        #expect(!RecordedBody.matches(Array(recorded.utf8), type, Array(other.utf8), type))
    }

    @Test func partsAreComparedOneByOne() {
        func form(_ boundary: String, _ password: String, _ json: String, extra: String = "") -> [UInt8] {
            let type = "Content-Type: application/json\r\n\r\n\(json)"
            return ["Content-Disposition: form-data; name=\"password\"\r\n\r\n\(password)\r\n", "\(type)\r\n\(extra)"]
                .reduce(into: []) { $0 += Array("--\(boundary)\r\n\($1)".utf8) } + Array("--\(boundary)--\r\n".utf8)
        }
        let (type, other) = ("multipart/form-data; boundary=a", "multipart/form-data; boundary=\"b c\"")
        let recorded = form("a", "***", #"{"token":"***","n":1}"#)
        #expect(RecordedBody.matches(recorded, type, form("b c", "p", #"{"token": 7, "n": 1}"#), other))
        #expect(!RecordedBody.matches(recorded, type, form("b c", "p", #"{"token": 7, "n": 2}"#), other))
        #expect(!RecordedBody.matches(recorded, type, form("b c", "p", "{}"), other))
        let extra = "--b c\r\n\r\nmore\r\n"
        #expect(!RecordedBody.matches(recorded, type, form("b c", "p", #"{"token": 7, "n": 1}"#, extra: extra), other))
        #expect(!RecordedBody.matches(recorded, type, form("b c", "p", #"{"token": 7, "n": 1}"#), type))
        #expect(!RecordedBody.matches(recorded, type, form("b c", "p", #"{"token": 7, "n": 1}"#), "text/plain"))
    }

    @Test func aResponseToHEADKeepsItsLength() async throws {
        _ = try await twice { agent in
            let reply = try await agent.send(HTTPRequest(.head, "/bytes/1000"))
            return [reply.headers["Content-Length"] ?? "none", "\(reply.bodyLength)"]
        }
    }

    /// Also if the head had arrived, and nothing of the body.
    @Test func aFailureIsReplayedAsAFailure() async throws {
        _ = try await twice(serving: { server in
            server.script(path: "/cut", [.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"), .close])
        }) { agent in
            await agent.result(Get("/cut")).error != nil
        }
    }

    @Test func anExchangeIsRecordedInBothDirections() async throws {
        let (server, recorder) = (try LoopbackServer(), Recorder())
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        (configuration.recorder, configuration.engine) = (recorder, .automatic)
        let agent = NetworkAgent(configuration: configuration)
        func echo(_ agent: NetworkAgent) async throws -> Data {
            try await agent.exchange(HTTPRequest(.post, "/echo/body"), trailers: ["X-Sum"]) { response, body in
                try await body.write("abc")
                try body.finish(trailers: ["X-Sum": "1"])
                return try await response.body.collect(upTo: 10)
            }
        }
        #expect(try await echo(agent) == Data("abc".utf8))
        await agent.shutdown()
        configuration.recorder = nil
        let player = NetworkAgent(configuration: configuration, stub: StubTransport(har: recorder.archive))
        #expect(try await echo(player) == Data("abc".utf8))
        await player.shutdown()
        let entry = try #require(recorder.archive.entries.first)
        #expect(entry.request.postData?.text == "abc" && entry.response.content.text == "abc")
        #expect(recorder.archive.entries.count == 1 && entry._error == nil)
    }
}
