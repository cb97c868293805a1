import FerryJSON
import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Exchanges recorded as HAR, and replayed from it.
@Suite(.timeLimit(.minutes(1))) struct RecorderTests {
    private func recorded(
        _ recorder: Recorder = Recorder(), _ configure: (inout NetworkConfiguration) -> Void = { _ in },
        _ body: (LoopbackServer, NetworkAgent) async throws -> Void
    ) async throws -> HTTPArchive {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.recorder = recorder
        configure(&configuration)
        let agent = NetworkAgent(configuration: configuration)
        try await body(server, agent)
        await agent.shutdown()
        // As others read it: through the text.
        return try HTTPArchive(json: Array(recorder.archive.json()))
    }

    @Test func anEntryHasWhatWentThereAndBack() async throws {
        let archive = try await recorded { server, agent in
            server.handle("/orders") { _ in
                LoopbackResponse(status: 201, headers: ["Location": "/orders/7"], json: #"{"id": 7}"#)
            }
            try await agent.post("/orders", headers: ["X-A": "1"], json: ["n": 1])
        }
        let entry = try #require(archive.entries.first)
        #expect(archive.entries.count == 1)
        #expect(entry.request.method == "POST" && entry.request.url.hasSuffix("/orders"))
        #expect(entry.request.headers.contains(HTTPArchive.Pair(name: "X-A", value: "1")))
        #expect(entry.request.postData?.text == #"{"n":1}"#)
        #expect(entry.request.postData?.mimeType == "application/json")
        #expect(entry.request.bodySize == 7)
        #expect(entry.response.status == 201)
        #expect(entry.response.redirectURL == "/orders/7")
        #expect(entry.response.content.text == #"{"id": 7}"#)
        #expect(entry.response.content.size == 9 && entry.response.bodySize == 9)
        #expect(entry.serverIPAddress == "127.0.0.1")
        #expect(entry.time > 0 && entry.timings.connect ?? -1 >= 0)
        #expect(entry.startedDateTime.hasSuffix("Z") && entry.startedDateTime.contains("T"))
        #expect(entry._error == nil)
    }

    /// Masking them would hold the event loop.
    @Test(arguments: [true, false]) func bodiesWithTooManyPiecesAreNotRecorded(isTooMany: Bool) async throws {
        let more = isTooMany ? 1 : 0
        let parts = (0..<1000 + more).map { "--b\r\nContent-Disposition: form-data; name=n\($0)\r\n\r\nx\r\n" }
        let bodies = [
            ("application/x-www-form-urlencoded", String(repeating: "a&", count: 10_000 + more)),
            ("multipart/form-data; boundary=b", parts.joined() + "--b--\r\n"),
            ("text/event-stream", String(repeating: "\n", count: 50_000 + more)),
            ("application/jsonl", String(repeating: "\n", count: 50_000 + more)),
        ]
        let archive = try await recorded { _, agent in
            for (type, text) in bodies {
                let body = RequestBody.string(text, contentType: type)
                try await agent.send(HTTPRequest(.post, "/bytes/1", body: body))
            }
        }
        #expect(archive.entries.map(\.request.postData?.text) == bodies.map { isTooMany ? nil : $0.1 })
    }

    /// The system sends such a file itself.
    @Test func aLargeFileIsRecordedLikeAnyBody() async throws {
        let text = String(repeating: "0123456789", count: 60_000)
        let file = try TemporaryFile(Array(text.utf8))
        let archive = try await recorded { _, agent in
            try await agent.send(HTTPRequest(.post, "/bytes/1", body: .file(file.path, contentType: "text/plain")))
        }
        #expect(archive.entries.first?.request.postData?.text == text)
        let cut = try await recorded(Recorder(maxBodyBytes: 500_000)) { _, agent in
            try await agent.send(HTTPRequest(.post, "/bytes/1", body: .file(file.path, contentType: "text/plain")))
        }
        #expect(cut.entries.first?.request.postData?.text == nil)
    }

    @Test func everyAttemptAndEveryHopIsAnEntryAndSoIsAFailure() async throws {
        let archive = try await recorded(
            Recorder(), { $0.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .milliseconds(1)) }
        ) { server, agent in
            server.script(path: "/busy", uses: 1, [.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), .serve])
            server.handle("/busy") { _ in LoopbackResponse(status: 302, headers: ["Location": "/hello"]) }
            server.script(path: "/cut", [.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), .close])
            try await agent.send(Get("/busy"))
            let cut = await code { () throws(RequestError) in try await agent.send(Get("/cut")) }
            #expect(cut.map { .incompleteBody ~= $0 } == true)
        }
        #expect(archive.entries.map(\.response.status) == [503, 302, 200, 200, 200])
        #expect(archive.entries.map { $0._error != nil } == [false, false, false, true, true])
        #expect(archive.entries.last?.response.content.text == nil)
    }

    @Test func secretsAreNotRecorded() async throws {
        let archive = try await recorded(Recorder(sensitiveNames: ["X-Own", "mine"])) { server, agent in
            var request = HTTPRequest(
                .get, "/header?access_token=canary1&mine=canary2&q=a+b%20c&Set-Cookie=sid%3Dcanary3",
                headers: ["Cookie": "canary4", "X-Own": "canary5", "X-Api-Key": "canary6"])
            request.authorization = .basic("kim", "canary7")
            try await agent.send(request)
        }
        let text = String(decoding: try archive.json(), as: UTF8.self)
        for number in 1...7 { #expect(!text.contains("canary\(number)"), "canary\(number)") }
        #expect(!text.contains(Data("kim:canary7".utf8).base64EncodedString()))
        let query = try #require(archive.entries.first?.request.queryString)
        #expect(query.contains(HTTPArchive.Pair(name: "q", value: "a b c")))
        #expect(query.contains(HTTPArchive.Pair(name: "access_token", value: "***")))
    }

    @Test func secretsOfRedirectsAndFragmentsAreNotRecorded() async throws {
        let archive = try await recorded { server, agent in
            server.handle("/far") { _ in
                LoopbackResponse(status: 302, headers: ["Location": "//kim:canary1@127.0.0.1:1/x"])
            }
            server.handle("/login") { _ in
                LoopbackResponse(status: 303, headers: ["Location": "/done?code=canary2&state=s#access_token=canary3"])
            }
            server.handle("/here") { _ in LoopbackResponse(status: 302, headers: ["Location": "/done#?q=canary4"]) }
            for path in ["/far", "/login", "/here"] { _ = try? await agent.send(Get(path)) }
        }
        #expect(archive.entries.count >= 5)
        let text = String(decoding: try archive.json(), as: UTF8.self)
        for number in 1...4 { #expect(!text.contains("canary\(number)"), "canary\(number)") }
    }

    @Test func secretsOfFormsAndOfJSONAreNotRecorded() async throws {
        let archive = try await recorded(Recorder(sensitiveNames: ["mine"])) { server, agent in
            server.handle("/token") { _ in
                LoopbackResponse(
                    json:
                        #"{"access_token": "canary1", "expires_in": 3600, "n": 1.50, "a": [{"refresh_token": "canary2"}]}"#
                )
            }
            let form = "grant_type=password&username=kim&password=canary3&Client%5FSecret=canary4&mine=canary5&x=a+b"
            try await agent.post(
                "/token", headers: ["Content-Type": "application/x-www-form-urlencoded"], body: .string(form))
            try await agent.post(
                "/token", headers: ["Content-Type": "application/json; charset=utf-8"],
                body: .string(
                    #"{"user": "kim", "password": "canary6", "mine": ["canary7"], "author": {"name": "Ann"}}"#))
            try await agent.post("/token", headers: ["Content-Type": "application/json"], body: .string("{broken"))
        }
        let text = String(decoding: try archive.json(), as: UTF8.self)
        for number in 1...7 { #expect(!text.contains("canary\(number)"), "canary\(number)") }
        try #require(archive.entries.count == 3)
        #expect(
            archive.entries[0].request.postData?.text
                == "grant_type=password&username=kim&password=***&Client%5FSecret=***&mine=***&x=a+b")
        let answer = try #require(archive.entries[0].response.content.text)
        #expect(answer.contains("3600") && answer.contains("1.50") && answer.contains("***"))
        let sent = try #require(archive.entries[1].request.postData?.text)
        #expect(sent.contains("kim") && sent.contains("Ann"))
        #expect(archive.entries[2].request.postData?.text == nil)
        // A redacted secret matches any value when it is replayed.
        let base = try #require(archive.entries.first?.request.url.dropLast("/token".count))
        let agent = player(archive, base: String(base))
        let form = "grant_type=password&username=kim&password=other&Client%5FSecret=b&mine=c&x=a+b"
        let reply = try await agent.post(
            "/token", headers: ["Content-Type": "application/x-www-form-urlencoded"], body: .string(form))
        #expect(reply.text.contains("3600"))
        let json = #"{"user": "kim", "password": "other", "mine": 7, "author": {"name": "Ann"}}"#
        try await agent.post("/token", headers: ["Content-Type": "application/json"], body: .string(json))
    }

    @Test func bodiesAreKeptUpToABoundOfAllTogether() async throws {
        let archive = try await recorded(Recorder(maxTotalBytes: 25_000)) { _, agent in
            for _ in 0..<4 { try await agent.send(Get("/bytes/10000")) }
        }
        #expect(archive.entries.count == 4)
        #expect(archive.entries.map { $0.response.content.bytes != nil } == [true, true, false, false])
        #expect(archive.entries.allSatisfy { $0.response.content.size == 10_000 })
    }

    @Test func changesOfTrustAreToldThroughIt() async throws {
        let certificate = try ServerCertificate()
        let server = try LoopbackServer(.init(certificate: certificate))
        let folder = try Folder()
        let file = folder.file("authorities.pem")
        try Data(certificate.authority.utf8).write(to: URL(filePath: file), options: .atomic)
        var configuration = NetworkConfiguration(baseURL: "https://localhost:\(server.port)")
        configuration.engine = .automatic
        configuration.tls.authorityFile = file
        configuration.recorder = Recorder()
        let log = KeptLog()
        configuration.logSink = log
        let agent = NetworkAgent(configuration: configuration)
        let request = Full(path: "/hello", headers: ["Connection": "close"])
        try await agent.send(request)
        try Data("nonsense".utf8).write(to: URL(filePath: file), options: .atomic)
        while agent.statistics.trustFaults < 1 { try await agent.send(request) }
        #expect(log.entries.contains { $0.message.hasPrefix("changed TLS files cannot be used: ") })
        await agent.shutdown()
    }

    @Test func bodiesThatAreStreamedPulledOrNotTextAreRecorded() async throws {
        let bytes: [UInt8] = [0xFF, 0, 1, 2]
        let archive = try await recorded(Recorder(maxBodyBytes: 1000)) { server, agent in
            server.handle("/raw") { _ in LoopbackResponse(body: bytes) }
            let streamed = try await agent.stream(Get("/raw"))
            _ = try await streamed.body.collect(upTo: 100)
            let body = RequestBody.stream {
                AsyncStream<[UInt8]> {
                    $0.yield(bytes); $0.finish()
                }
            }
            try await agent.post("/upload", body: body)
            try await agent.send(Get("/bytes/1001"))
            try await agent.send(Get("/gzip/900"))
        }
        try #require(archive.entries.count == 4)
        #expect(archive.entries[0].response.content.encoding == "base64")
        #expect(archive.entries[0].response.content.bytes == bytes)
        #expect(archive.entries[1].request.postData?._encoding == "base64")
        #expect(archive.entries[1].request.postData?.bytes == bytes)
        #expect(archive.entries[2].response.content.bytes == nil && archive.entries[2].response.content.size == 1001)
        #expect(archive.entries[2].response.content.comment != nil)
        #expect(archive.entries[3].response.content.bytes == LoopbackServer.pattern(0..<900))
    }

    /// Nobody sees what is to be masked in it.
    @Test(arguments: [true, false])
    func aBodyWithMembersThatWasNotDecodedIsNotRecorded(isStreamed: Bool) async throws {
        // {"access_token":"canary"}, compressed twice
        let bytes: [UInt8] = [
            0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x93, 0xEF, 0xE6, 0x60, 0x00, 0x01, 0x26,
            0xE6, 0xD5, 0x61, 0x5E, 0x3E, 0x7E, 0x7E, 0xBA, 0x7A, 0x7D, 0xFA, 0x27, 0xCF, 0xFB, 0x9D, 0x0D, 0xDE,
            0x14, 0xE4, 0xE5, 0x77, 0xC6, 0x5B, 0x67, 0x55, 0xC8, 0x2A, 0x56, 0x06, 0xB7, 0xB0, 0xDF, 0x7F, 0x24,
            0x81, 0x8A, 0x00, 0x69, 0xB6, 0x5A, 0x26, 0x2D, 0x00, 0x00, 0x00,
        ]
        let archive = try await recorded { server, agent in
            for type in ["application/json", "image/svg+xml"] {
                server.handle("/" + type) { _ in
                    LoopbackResponse(headers: ["Content-Type": type, "Content-Encoding": "gzip, gzip"], body: bytes)
                }
                if isStreamed {
                    _ = try await agent.stream(Get("/" + type)).body.collect(upTo: 1000)
                } else {
                    try await agent.send(Get("/" + type))
                }
            }
        }
        let contents = archive.entries.map(\.response.content)
        try #require(contents.count == 2)
        #expect(contents[0].text == nil && contents[0].comment == "not recorded: compressed")
        #expect(contents[1].bytes == bytes)
    }

    /// The server refuses the body before its end: a part of it is no JSON in which secrets could be found.
    @Test func aBodyWithMembersThatWasCutOffIsNotRecorded() async throws {
        let archive = try await recorded { server, agent in
            let refusal = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            server.script(path: "/x", [.expectBytes(40), .send(refusal), .close])
            let pieces = [
                Array(#"{"password": "canary", "rows": ["#.utf8), [UInt8](repeating: UInt8(ascii: "1"), count: 20),
            ]
            for type in ["application/json", "text/csv"] {
                let body = RequestBody.stream(contentType: type) { Pieces(pieces: pieces, hangsAtEnd: true) }
                _ = try? await agent.post("/x", body: body)
            }
            for length in [16, nil] as [UInt64?] {
                let whole = RequestBody.stream(length: length, contentType: "application/json") {
                    Pieces(pieces: [Array(#"{"password": 12}"#.utf8)])
                }
                try await agent.post("/upload", body: whole)
            }
        }
        try #require(archive.entries.count == 4)
        let sent = archive.entries.map { $0.request.postData?.text }
        #expect(sent[0] == nil && sent[1]?.contains("canary") == true, "\(sent)")
        #expect(sent[2] == #"{"password": "***"}"# && sent[3] == sent[2], "\(sent)")
    }

    @Test func connectionsThatAreOpenedAheadAreNoExchange() async throws {
        // libcurl opens none.
        let archive = try await recorded {
            $0.engine = .automatic
        } _: { _, agent in
            try await agent.connect(to: "/hello", count: 2)
            try await agent.send(Get("/hello"))
        }
        #expect(archive.entries.count == 1)
    }

    @Test func itHasABound() async throws {
        let recorder = Recorder(maxEntries: 3)
        let archive = try await recorded(recorder) { _, agent in
            for _ in 0..<5 { try await agent.send(Get("/hello")) }
        }
        #expect(archive.entries.count == 3 && recorder.droppedExchanges == 2)
        recorder.removeAll()
        #expect(recorder.archive.entries.isEmpty && recorder.droppedExchanges == 0)
        let small = Recorder(maxTotalBytes: 10)
        let none = try await recorded(small) { _, agent in try await agent.send(Get("/hello")) }
        #expect(none.entries.isEmpty && small.droppedExchanges == 1)
    }

    // MARK: Replaying

    private func player(_ archive: HTTPArchive, base: String = "http://shop.test") -> NetworkAgent {
        NetworkAgent(configuration: NetworkConfiguration(baseURL: base), stub: StubTransport(har: archive))
    }

    @Test func whatWasRecordedIsAnswered() async throws {
        var base = ""
        let archive = try await recorded { server, agent in
            base = server.baseURL
            server.script(path: "/count", uses: 1, [.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"), .serve])
            server.handle("/count") { _ in LoopbackResponse(text: "2") }
            server.handle("/gone") { _ in LoopbackResponse(status: 302, headers: ["Location": "/count?token=a"]) }
            server.handle("/next") { _ in LoopbackResponse(status: 302, headers: ["Location": "/gzip/9?page=2#x"]) }
            for path in ["/count", "/count", "/next", "/gone", "/gzip/500", "/status/404"] {
                _ = try? await agent.send(Get(path))
            }
            try await agent.post("/echo/body", body: .string("a"))
            try await agent.post("/echo/body", body: .string("b"))
        }
        let agent = player(archive, base: base)
        #expect(try await agent.get("/count").text == "1")
        #expect(try await agent.get("/count").text == "2")
        // All of them were used: the last one is repeated.
        #expect(try await agent.get("/count").text == "2")
        // A redacted value matches any value.
        #expect(try await agent.get("/count?token=other").text == "2")
        #expect(try await agent.get("/gone").redirects.count == 1)
        #expect(try await agent.get("/next").bytes == LoopbackServer.pattern(0..<9))
        #expect(try await agent.get("/gzip/500").bytes == LoopbackServer.pattern(0..<500))
        #expect(await code { () throws(RequestError) in try await agent.get("/status/404") } == .invalidStatusCode(404))
        #expect(try await agent.post("/echo/body", body: .string("b")).text == "b")
        #expect(try await agent.post("/echo/body", body: .string("a")).text == "a")
    }

    @Test func whatMatchesNothingIsToldWithTheClosest() async throws {
        let archive = try await recorded { _, agent in
            try await agent.send(Get("/bytes/10"))
            try await agent.post("/echo/body", body: .string("a"))
        }
        let base = try #require(archive.entries.first?.request.url.dropLast("/bytes/10".count))
        let agent = player(archive, base: String(base))
        func message(_ request: HTTPRequest<Response>) async -> String {
            let error = await fault { () throws(RequestError) in try await agent.send(request) }
            #expect(error.map { $0.is(.connect) } == true)
            return error?.message ?? ""
        }
        #expect(await message(HTTPRequest(.get, "/bytes/11")).contains("the closest is GET \(base)/bytes/10"))
        #expect(await message(HTTPRequest(.post, "/echo/body", body: .string("b"))).hasSuffix("with another body"))
        let empty = player(HTTPArchive())
        let error = await fault { () throws(RequestError) in try await empty.get("/x") }
        #expect(error?.message.contains("the recording is empty") == true)
    }

    @Test(arguments: [
        "", "{}", "[]", "nonsense", #"{"log": {}}"#, #"{"log": {"version": "1.2", "entries": [{}]}}"#,
        #"{"log": {"version": "1.2", "entries": [7]}}"#,
    ]) func whatIsNoArchiveIsAnError(text: String) {
        #expect(throws: (any Error).self) { try HTTPArchive(json: Array(text.utf8)) }
    }

    /// A recording is a file that anybody may have written.
    @Test(arguments: [
        (#""status": -1"#, #""headers": []"#), (#""status": 99999"#, #""headers": []"#),
        (#""status": 9223372036854775807"#, #""headers": []"#),
        (#""status": 200"#, #""headers": [{"name": "", "value": "\n"}, {"name": "a b\r\nX: 1", "value": "\r\nY: 1"}]"#),
    ]) func hostileHeadsAreAnswersOrErrors(status: String, headers: String) async throws {
        let text = #"""
            {"log": {"version": "1.2", "entries": [
              {"startedDateTime": "", "time": -1, "request": {"method": "GET", "url": "http://shop.test/a",
               "headers": [], "httpVersion": "", "bodySize": -9223372036854775808},
               "response": {\#(status), "statusText": "", "httpVersion": "", \#(headers), "bodySize": -7,
               "content": {"size": 1, "text": "x"}}, "cache": {}, "timings": {"send": -1, "wait": -1, "receive": -1}}]}}
            """#
        let agent = player(try HTTPArchive(json: Array(text.utf8)))
        let result = await agent.result(HTTPRequest<Response>(.get, "/a"))
        if case .success(let response) = result {
            #expect(response.status == 200)
            #expect(response.headers["X"] == nil && response.headers["Y"] == nil)
        }
    }

    @Test func anArchiveOfAnotherProgramIsReadAndABadBodyIsAMessage() async throws {
        let text = #"""
            {"log": {"version": "1.1", "pages": [], "browser": {"name": "B"}, "entries": [
              {"startedDateTime": "x", "time": 1, "pageref": "p", "request": {"method": "GET", "url": "http://shop.test/a",
               "httpVersion": "h2", "headers": []}, "response": {"status": 200, "statusText": "", "httpVersion": "h2",
               "headers": [], "content": {"size": 3, "text": "!!", "encoding": "base64"}}, "cache": {"x": 1},
               "timings": {"send": 0, "wait": 0, "receive": 0}}]}}
            """#
        let agent = player(try HTTPArchive(json: Array(text.utf8)))
        let error = await fault { () throws(RequestError) in try await agent.get("/a") }
        #expect(error?.message.contains("was not recorded") == true)
    }
}
