import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry

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

    private static let form = "multipart/form-data; boundary=\"x y\""

    /// In each, the secret values contain `canary`, and what must stay contains `seen`.
    @Test(arguments: [
        ("application/x-ndjson", "{\"a\":\"seen\"}\n{\"token\":\"canary\"}\r\n\n3\n"),
        ("application/json-seq", "\u{1E}{\"a\":\"seen\"}\n\u{1E}{\"db_password\":\"canary\"}\n"),
        ("text/event-stream", "id: seen\ndata: {\"access_token\":\"canary\"}\n\ndata:[1]\n\ndata: [DONE]\n\n"),
        ("application/json", #"{"new_password": "canary", "currentPassword": "canary", "a": "seen"}"#),
        ("application/json", #"{"authorization": "canary", "passwordConfirmation": "canary", "author": "seen"}"#),
        ("application/x-www-form-urlencoded", "user[password]=canary&user%5Bnew_password%5D=canary&pass=canary&a=seen"),
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
        #expect(SecretBodies.matches(made, Array(body.utf8), type: type))
        let other = body.replacing("seen", with: "sent")
        #expect(!SecretBodies.matches(made, Array(other.utf8), type: type))
    }

    /// A secret cannot be found in them.
    @Test(arguments: [
        ("application/json", ")]}',\n{\"access_token\":\"canary\"}"),
        ("application/json", "{\"a\":1}{\"token\":\"canary\"}"),
        ("application/json", "{\"n\": NaN, \"token\": \"canary\"}"), ("application/vnd.x+json", "{'token': 'canary'}"),
        ("application/x-ndjson", "{\"a\":1}\n{\"token\": \"canary\""),
        ("text/event-stream", "data: {\ndata: \"token\": \"canary\"\ndata: }\n\n"),
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
        ("http://h/a;jsessionid=canary;v=1/b?c=3", "http://h/a;jsessionid=***;v=1/b?c=3"),
        ("http://h/x?", "http://h/x?"), ("http://h/x?a&&b=", "http://h/x?a&&b="),
    ])
    func secretsOfAURLAreMasked(url: String, shown: String) { #expect(Recorder().shown(url: url).url == shown) }

    @Test func urlsInOtherFieldsLoseTheirSecrets() {
        let fields: Headers = [
            "X-Original-URL": "http://u:canary@h/?token=canary", "X-Forwarded-Uri": "/x?token=canary",
            "X-Path": "/seen", "X-Text": "see http://h/?a=1",
        ]
        let shown = Redaction.headers(fields)
        #expect(!"\(shown.map(\.value))".contains("canary"))
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
