import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// What a recording must not have in clear.
@Suite(.timeLimit(.minutes(1))) struct RecordedSecretTests {
    private struct Policed: Request {
        var path: String { "/header" }
        var headers: Headers { ["X-Tenant": "canary1", "X-Member": "canary2", "X-Other": "seen"] }
        var redirectPolicy: RedirectPolicy? { .follow(sensitiveHeaders: ["X-Member"]) }
    }

    @Test func headerFieldsThatTheConfigurationOrTheRequestDeclaresAreMasked() async throws {
        let (server, recorder) = (try LoopbackServer(), Recorder())
        server.handle("/header") { _ in LoopbackResponse(headers: ["X-Tenant": "canary3", "X-Seen": "seen"]) }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.sensitiveHeaders = ["X-Tenant"]
        configuration.recorder = recorder
        let agent = NetworkAgent(configuration: configuration)
        try await agent.send(Policed())
        await agent.shutdown()
        let text = String(decoding: try recorder.archive.json(), as: UTF8.self)
        #expect(!text.contains("canary") && text.contains("seen"), "\(text)")
    }

    /// To characters, the mark and the slash before it are one.
    @Test func aURLWithoutASchemeIsRecognisedByItsBytes() {
        #expect(Recorder().shown(url: "//\u{301}kim:canary@h/x").url == "h/x")
        #expect(Recorder().shown(url: "//\u{301}kim:canary@h/x?a=1").url == "h/x?a=1")
    }

    private static let form = "multipart/form-data; boundary=\"x y\""

    /// In each, the secret values contain `canary`, and what must stay contains `seen`.
    @Test(arguments: [
        ("application/x-ndjson", "{\"a\":\"seen\"}\n{\"token\":\"canary\"}\r\n\n3\n"),
        ("application/json-seq", "\u{1E}{\"a\":\"seen\"}\n\u{1E}{\"db_password\":\"canary\"}\n"),
        ("text/event-stream", "id: seen\ndata: {\"access_token\":\"canary\"}\n\ndata:[1]\n\ndata: [DONE]\n\n"),
        ("application/json", #"{"new_password": "canary", "currentPassword": "canary", "a": "seen"}"#),
        ("application/json", #"{"authorization": "canary", "passwordConfirmation": "canary", "author": "seen"}"#),
        ("application/x-www-form-urlencoded", "user[password]=canary&user%5Bnew_password%5D=canary&pass=canary&a=seen"),
        (
            "application/x-www-form-urlencoded",
            "u[plainPassword][first]=canary&u%5Bpassword%5D%5B0%5D=canary&otp[0]=canary&a[pages][0]=seen"
        ),
        // What a command sends as a form if nobody says what it is.
        ("application/x-www-form-urlencoded", #" {"access_token": "canary", "password": "canary==", "a": "seen"}"#),
        ("application/x-www-form-urlencoded", "\u{FEFF}{\"password\":\"canary\",\"a\":\"seen\"}"),
        ("application/x-www-form-urlencoded", "{\"a\":\"seen\"}\n{\"token\":\"canary\"}\n"),
        ("application/x-www-form-urlencoded", "\"user=seen&password=canary\""),
        ("application/x-www-form-urlencoded", #"{"next": "/l?a=seen&access_token=canary"}"#),
        ("application/x-www-form-urlencoded", #"{"a": "seen", "token": "canary", "b": "/l?c=1&access_token=canary"}"#),
        ("application/x-www-form-urlencoded", #"{"token": ["canary"], "otp": 1, "a": "seen"}"#),
        ("application/x-www-form-urlencoded", "{\"token\": {\"b\": \"canary\"}}\n{\"a\": \"seen\"}\n"),
        ("application/x-www-form-urlencoded", #"{"password": "canary", "q": "b=1", "a": "seen"}"#),
        ("application/x-www-form-urlencoded", #"{"a": "seen", "body": "user[password][first]=canary"}"#),
        ("application/x-www-form-urlencoded", #"{"a": "seen", "b": "/c?id=1", "next": "/l?access_token=canary"}"#),
        ("application/x-www-form-urlencoded", #"{"q": "b=1\\", "body": "password=can\"canary", "a": "seen"}"#),
        ("application/x-www-form-urlencoded", "{\"a\":\"token=canary\"}\n{\"a\": \"seen\"}\n"),
        ("application/x-www-form-urlencoded", #"{"a": "seen", "q": "say \"pwd=canary\""}"#),
        ("application/x-www-form-urlencoded", #"{"a": "seen", "n": "/l?i=1\u0026access_token\u003dcanary\n"}"#),
        ("application/x-www-form-urlencoded", "SAMLResponse=canary&RelayState=seen&SAMLRequest=canary&SAMLart=canary"),
        ("application/x-www-form-urlencoded", "j_password=canary&password_confirmation=canary&page=seen"),
        (
            form,
            "--x y\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\ncanary\r\n--x y\r\n"
                + "content-disposition: form-data; name=a\r\n\r\nseen\r\n--x y\r\n"
                + "Content-Disposition: form-data; name=\"b\"\r\nContent-Type: application/json\r\n\r\n"
                + "{\"token\":\"canary\"}\r\n--x y--\r\n"
        ),
    ])
    func secretsOfABodyAreMasked(type: String, body: String) throws {
        let made = try #require(SecretBodies.masked(Array(body.utf8), type: type, declared: []))
        // An event that is no JSON, like the last one of some streams, stays.
        let text = String(decoding: made, as: UTF8.self)
        #expect(!text.contains("canary") && text.contains("seen") && text.contains("***"), "\(text)")
        #expect(body.contains("[DONE]") == text.contains("[DONE]"))
        #expect(RecordedBody.matches(made, type, Array(body.utf8), type))
        let other = body.replacing("seen", with: "sent")
        #expect(!RecordedBody.matches(made, type, Array(other.utf8), type))
    }

    @Test func aFormOfTooManyLinesIsNotRecorded() {
        let (type, line) = ("application/x-www-form-urlencoded", Array("{}\n".utf8))
        for (count, isRecorded) in [(50_000, true), (50_001, false)] {
            let body = Array(repeatElement(line, count: count).joined())
            #expect((SecretBodies.masked(body, type: type, declared: []) != nil) == isRecorded)
        }
        // A mask in a text ends with the text.
        let (read, delete) = (#"{"next": "/l?token=c", "op": "read"}"#, #"{"next": "/l?token=d", "op": "delete"}"#)
        let masked = SecretBodies.masked(Array(read.utf8), type: type, declared: [])
        #expect(masked == Array(#"{"next": "/l?token=***", "op": "read"}"#.utf8))
        #expect(!RecordedBody.matches(masked ?? [], type, Array(delete.utf8), type))
        #expect(RecordedBody.matches(masked ?? [], type, Array(delete.replacing("delete", with: "read").utf8), type))
        // An added member is another request.
        let recorded = Array(#"{"user": "a", "password": "***"}"#.utf8)
        let other = Array(#"{"user": "a", "password": "x", "op": "delete"}"#.utf8)
        #expect(!RecordedBody.matches(recorded, type, other, type))
        // Line ends matter in forms.
        #expect(!RecordedBody.matches(Array("n=a\r\nb".utf8), type, Array("n=a\nb".utf8), type))
    }

    /// They are not searched.
    @Test func valuesThatAreNestedTooDeeplyAreMasked() throws {
        func nested(_ value: String, _ levels: Int) -> String {
            String(repeating: "[", count: levels) + value + String(repeating: "]", count: levels)
        }
        func recorded(_ text: String) throws -> String {
            let made = SecretBodies.masked(Array(text.utf8), type: "application/json", declared: [])
            return String(decoding: try #require(made), as: UTF8.self)
        }
        #expect(try recorded(nested("1.0", 63)) == nested("1.0", 63))
        #expect(try recorded(nested("1.0, {}", 64)) == nested("\"***\", \"***\"", 64))
        #expect(try recorded(nested("{\"a\": []}", 64)) == nested("\"***\"", 64))
    }

    @Test func aDeclaredNameAroundAnotherIsSecret() throws {
        let form = Array("card[pin][0]=canary&card[number]=seen".utf8)
        let made = SecretBodies.masked(form, type: "application/x-www-form-urlencoded", declared: ["pin"])
        #expect(made == Array("card[pin][0]=***&card[number]=seen".utf8))
    }

    /// What is written of them exactly: everything but the secrets stays.
    @Test(arguments: [
        // Line ends and the byte order mark of events, and data in several lines.
        (
            "text/event-stream", "\u{FEFF}data: {\"access_token\":\"canary\"}\n\n",
            "\u{FEFF}data: {\"access_token\":\"***\"}\n\n"
        ),
        (
            "text/event-stream", "event: x\rdata: {\"access_token\":\"canary\"}\r\rid: 1\r\n\r\ndata:1",
            "event: x\rdata: {\"access_token\":\"***\"}\r\rid: 1\r\n\r\ndata:1"
        ),
        (
            "text/event-stream", "data: [{\"a\":1,\nid: 7\ndata: \"access_token\":\"canary\"}]\n\ndata: x\n\n",
            "data: [{\"a\":1,\"access_token\":\"***\"}]\nid: 7\n\ndata: x\n\n"
        ),
        (
            "text/event-stream", "data: {\r\ndata: \"token\": \"canary\"\r\ndata: }\r\n\r\n",
            "data: {\"token\":\"***\"}\r\n\r\n"
        ),
        ("text/event-stream", "data: [1,\ndata: 2]\n\n", "data: [1,\ndata: 2]\n\n"),
        (
            "text/event-stream", "data: {\"token\":\"canary\"}\ndata: {\"a\":1}\n\ndata: [DONE]",
            "data: {\"token\":\"***\"}\ndata: {\"a\":1}\n\ndata: [DONE]"
        ),
        ("text/event-stream", "data : {\"token\":\"canary\"}\n\n", "data : {\"token\":\"***\"}\n\n"),
        ("text/event-stream", "id: [{\"token\":\"canary\"}]\n: note\n\n", "id: [{\"token\":\"***\"}]\n: note\n\n"),
        ("text/event-stream", "{\"token\":\"canary\"}\n", "{\"token\":\"***\"}\n"),
        // Other names of lines of JSON and of JSON.
        ("application/geo+json-seq", "\u{1E}{\"token\":\"canary\"}\n", "\u{1E}{\"token\":\"***\"}\n"),
        ("application/jsonlines", "{\"token\":\"canary\"}\r\n3\r\n", "{\"token\":\"***\"}\r\n3\r\n"),
        ("application/x-jsonlines; charset=utf-8", "{\"token\":\"canary\"}\n{}", "{\"token\":\"***\"}\n{}"),
        ("text/jsonl", "{\"token\":\"canary\"}", "{\"token\":\"***\"}"),
        ("application/vnd.x+ndjson", "\u{FEFF}{\"token\":\"canary\"}\n", "\u{FEFF}{\"token\":\"***\"}\n"),
        ("application/x-json", "{\"token\":\"canary\"}", "{\"token\":\"***\"}"),
        ("application/json, text/plain", "{\"token\":\"canary\"}", "{\"token\":\"***\"}"),
        // Numbers and white space, and values of any type under any spelling of a name.
        (
            "application/json",
            "{ \"access_token\": \"canary\", \"id\":123456789012345678901,\n\t\"price\" : 1.10, \"e\":1E2 }\n",
            "{ \"access_token\": \"***\", \"id\":123456789012345678901,\n\t\"price\" : 1.10, \"e\":1E2 }\n"
        ),
        (
            "application/json",
            #"[{"p\u0061ss":{"a":["]}\"canary",{}]},"seen":[{},[],"a\\"]},{"pwd":-1.50,"token":null,"a":"{\"token"}]"#,
            #"[{"p\u0061ss":"***","seen":[{},[],"a\\"]},{"pwd":"***","token":"***","a":"{\"token"}]"#
        ),
        ("application/json", "\u{FEFF}{\"token\":[\"canary\"] ,\"n\":0.0}", "\u{FEFF}{\"token\":\"***\" ,\"n\":0.0}"),
        // Names of access keys and tokens of well-known services.
        (
            "application/json", #"{"AccessKeyId":"seen","SecretAccessKey":"canary","secret_access_key":"canary"}"#,
            #"{"AccessKeyId":"seen","SecretAccessKey":"***","secret_access_key":"***"}"#
        ),
        (
            "application/json", #"{"accessJwt":"canary","refreshJwt":"canary","jwt":"canary"}"#,
            #"{"accessJwt":"***","refreshJwt":"***","jwt":"***"}"#
        ),
        // Semicolons in forms. A secret value may contain them.
        ("application/x-www-form-urlencoded", "a=1;password=canary&b=2", "a=1;password=***&b=2"),
        ("application/x-www-form-urlencoded", "password=canary;canary=;x=canary&b;c", "password=***&b;c"),
        // Other multipart types, whose parts need no name.
        (
            "multipart/mixed; boundary=x",
            "\r\n--x\r\n\r\n{seen}\r\n--x\r\nContent-Type: application/json\r\n\r\n{\"token\":\"canary\"}\r\n--x--",
            "--x\r\n\r\n{seen}\r\n--x\r\nContent-Type: application/json\r\n\r\n{\"token\":\"***\"}\r\n--x--\r\n"
        ),
        (
            "Multipart/Related; type=\"a;b\"; Boundary=\"x\"",
            "--x\r\nContent-Disposition: inline; name=password\r\n\r\ncanary\r\n--x--\r\n",
            "--x\r\nContent-Disposition: inline; name=password\r\n\r\n***\r\n--x--\r\n"
        ),
        ("multipart/mixed; boundary=x", "--x\r\n\r\nseen\r\n--x-- \r\n", "--x\r\n\r\nseen\r\n--x-- \r\n"),
    ])
    func onlySecretsOfABodyAreReplaced(type: String, body: String, recorded: String) throws {
        let made = try #require(SecretBodies.masked(Array(body.utf8), type: type, declared: []))
        #expect(String(decoding: made, as: UTF8.self) == recorded)
    }

    /// A quoted parameter may contain semicolons, and a head may be folded.
    @Test(arguments: [
        #"Content-Disposition: form-data; filename="a; name=b"; name="password""#,
        #"Content-Disposition: form-data; name="a;password""#,
        #"Content-Disposition: form-data; filename="a\"; name=\"b"; name="new password""#,
        #"Content-Disposition: form-data; name="pass\word""#, "Content-Disposition: form-data;\r\n name=password",
        "content-disposition : form-data; NAME = password ; filename=x",
    ])
    func theNameOfAPartIsFound(head: String) throws {
        let body = "--x y\r\n\(head)\r\n\r\ncanary\r\n--x y--\r\n"
        let made = try #require(SecretBodies.masked(Array(body.utf8), type: Self.form, declared: []))
        #expect(String(decoding: made, as: UTF8.self) == body.replacing("canary", with: "***"))
    }

    @Test(arguments: [
        #"Content-Disposition: form-data; name="a"#, #"Content-Disposition: form-data; name="a"b; name=password"#,
        #"Content-Disposition: form-data; filename="a\"; name="password""#, "Content-Disposition: form-data",
        "Content-Disposition: form-data; name", "Content-Disposition: form-data; name=a; name=password",
        "Content-Disposition: form-data; name*=UTF-8''password", "Content-Disposition: form-data; x\"=\"; name=a",
        "Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=password",
        "Content-Disposition: form-data; name=a\nContent-Disposition: form-data; name=password", "name=a",
        "Content-Disposition: form-data; name=a\r\nContent-Type: application/http",
        "Content-Disposition: form-data; name=a\r\nAuthorization: Bearer canary",
        "Content-Disposition: form-data; name=a\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            + "Content-Transfer-Encoding: base64",
    ])
    func aPartWhoseHeadIsMalformedOrSecretIsNotRecorded(head: String) {
        let body = "--x y\r\n\(head)\r\n\r\ncanary\r\n--x y--\r\n"
        #expect(SecretBodies.masked(Array(body.utf8), type: Self.form, declared: []) == nil)
    }

    /// A secret cannot be found in them.
    @Test(arguments: [
        ("application/json", ")]}',\n{\"access_token\":\"canary\"}"),
        ("application/json", "{\"a\":1}{\"token\":\"canary\"}"),
        ("application/json", "{\"n\": NaN, \"token\": \"canary\"}"), ("application/vnd.x+json", "{'token': 'canary'}"),
        ("application/x-ndjson", "{\"a\":1}\n{\"token\": \"canary\""),
        ("text/event-stream", "data: {\ndata: \"token\": \"canary\"\n\n"),
        ("text/event-stream", "data: [\"canary\", x]\n\n"), ("text/event-stream", "data: \"token\": \"canary\"\n\n"),
        ("text/event-stream", "data:\u{FEFF} {\"token\": \"canary\"\n\n"),
        ("application/jsonl", "{\"token\": \"canary\"} [\n"), ("application/vnd.x.hjson", "token: canary"),
        ("application/x-ndjson", "{\"a\":1}\ntoken=canary\n"), ("application/http", "GET / HTTP/1.1\r\n\r\n"),
        ("multipart/mixed", "--x\r\n\r\ncanary\r\n--x--\r\n"),
        ("multipart/mixed; boundary=x", "canary\r\n--x\r\n\r\na\r\n--x--\r\n"),
        ("multipart/mixed; boundary=x", "--x\r\n\r\na\r\n--x--\r\ncanary"),
        ("multipart/mixed; boundary=x", "--x\r\n\r\na\r\n--xy\r\n\r\ncanary\r\n--x--\r\n"),
        ("multipart/mixed; boundary=\"x", "--x\r\n\r\ncanary\r\n--x--\r\n"),
        ("multipart/form-data", "--x\r\n\r\ncanary\r\n--x--\r\n"),
        (form, "--x y\r\nname=\"password\"\r\ncanary\r\n--x y--"),
        (form, "--x y\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\ncanary\r\n"), (form, "canary"),
        (
            form,
            "--x y\r\nContent-Type: multipart/form-data; boundary=z\r\n\r\n"
                + "--z\r\n\r\ncanary\r\n--z--\r\n\r\n--x y--\r\n"
        ),
    ])
    func aBodyThatCannotBeReadIsNotRecorded(type: String, body: String) {
        #expect(SecretBodies.masked(Array(body.utf8), type: type, declared: []) == nil)
    }

    @Test func aBodyThatIsNotRecordedSaysWhy() async throws {
        let (server, recorder) = (try LoopbackServer(), Recorder())
        server.handle("/x") { _ in LoopbackResponse(json: ")]}'\n{\"token\":\"canary\"}") }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.recorder = recorder
        let agent = NetworkAgent(configuration: configuration)
        _ = try await agent.get("/x")
        await agent.shutdown()
        let content = try #require(recorder.archive.entries.first).response.content
        #expect(content.text == nil && content.comment == "not recorded: not valid, so secrets could not be found")
    }

    @Test(arguments: [
        ("http://h/x?a=1;access_token=canary&b=2", "http://h/x?a=1;access_token=***&b=2"),
        ("http://h/x?access_token=canary;canary&a=1;b=2;c", "http://h/x?access_token=***&a=1;b=2;c"),
        ("http://h/x?access_token=canary;canary=", "http://h/x?access_token=***"),
        ("/x?code=canary;canary#canary", "/x?code=***"),
        ("http://h/a;jsessionid=canary;v=1/b?c=3", "http://h/a;jsessionid=***;v=1/b?c=3"),
        ("http://h/x?", "http://h/x?"), ("http://h/x?a&&b=", "http://h/x?a&&b="),
    ])
    func secretsOfAURLAreMasked(url: String, shown: String) {
        let (made, arguments) = Recorder().shown(url: url)
        #expect(made == shown && !"\(arguments)".contains("canary"), "\(arguments)")
    }

    @Test func urlsInOtherFieldsLoseTheirSecrets() {
        let fields: Headers = [
            "X-Original-URL": "http://u:canary@h/?token=canary", "X-Forwarded-Uri": "/x?token=canary",
            "X-Path": "/seen", "X-Text": "see http://h/?a=1", "X-Socket": "wss://u:canary@h/p",
            "X-Database": "jdbc:postgresql://u:canary@h/p", "X-Relative": "//u:canary@h/p", "X-Comment": "//seen#1",
        ]
        let shown = Redaction.headers(fields)
        #expect(!"\(shown.map(\.value))".contains("canary"))
        #expect(shown["X-Socket"] == "wss://h/p" && shown["X-Comment"] == "//seen#1")
        #expect(shown["X-Path"] == "/seen" && shown["X-Text"] == "see http://h/?a=1")
    }

    @Test func headsCountForTheLimitOfAll() async throws {
        let (server, recorder) = (try LoopbackServer(), Recorder(maxTotalBytes: 22_000))
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.recorder = recorder
        let agent = NetworkAgent(configuration: configuration)
        for _ in 0..<5 {
            _ = try await agent.get("/hello", headers: ["X-Large": String(repeating: "x", count: 6_000)])
        }
        await agent.shutdown()
        #expect(recorder.archive.entries.count == 3)
    }

    @Test func aSignInAPathIsNoUserOfARecordedURL() async throws {
        let (server, recorder) = (try LoopbackServer(), Recorder())
        server.handle("/v1/followers/@kim") { _ in LoopbackResponse(text: "followers") }
        server.handle("/v2/blocked/@kim") { _ in LoopbackResponse(text: "blocked") }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.recorder = recorder
        let agent = NetworkAgent(configuration: configuration)
        for path in ["/v1/followers/@kim", "/v2/blocked/@kim"] { _ = try await agent.get(path) }
        await agent.shutdown()
        configuration.recorder = nil
        let player = NetworkAgent(configuration: configuration, stub: StubTransport(har: recorder.archive))
        #expect(try await player.get("/v2/blocked/@kim").text == "blocked")
        #expect(try await player.get("/v1/followers/@kim").text == "followers")
        let other = await player.result(HTTPRequest<Response>(.get, "http://evil.test/anything/@kim"))
        #expect(throws: RequestError.self) { try other.get() }
    }
}
