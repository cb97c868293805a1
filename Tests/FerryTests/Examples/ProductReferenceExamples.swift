import Ferry
import FerryTesting
import FerryXML
import Foundation
import Testing

@testable import FerryTestSupport

/// The code of the reference of FerryJSON, FerryXML and FerryTesting.
@Suite struct ProductReferenceExamples {
    struct User: JSONConvertible {
        let name: String, level: Int, tags: [String], bio: String?
        init(json: JSON) throws {
            name = try json.value("name")
            level = try json.value("level")
            tags = try json.value("tags")
            bio = try json.value("bio")  // absent or null: nil
        }
    }

    static let schema: JSONSchema = [
        "nick": .string, "level": .integer(in: 1...99), "tags": [.string], "bio": .string.nullable.optional,
    ]

    @Test func jsonIsReadAndMade() throws {
        let body = #"{"name": "kim", "level": 3, "tags": ["a"]}"#
        let user = try JSON(parsing: body)
        let name = user["name"]?.string  // String?
        let level = try user.value("level", as: Int.self)  // or "$.level: expected integer, found string"
        let sent: JSON = ["id": 7, "tags": ["a", "b"], "owner": .null, "profile": user["profile"] ?? .null]
        #expect(name == "kim" && level == 3 && sent["tags"]?.array?.count == 2)
        let made = try User(json: user)
        #expect(made.name == "kim" && made.level == 3 && made.tags == ["a"] && made.bio == nil)
        #expect(throws: (any Error).self) { try Self.schema.check(user) }
    }

    struct TitleCollector: XMLHandler {
        var titles: [String] = []
        mutating func characters(_ text: String) { titles.append(text) }
    }

    @Test func xmlIsRead() throws {
        let body = Data("<a><title>T</title></a>".utf8)
        var titles = TitleCollector()  // an XMLHandler
        try XMLReader().read(body, handler: &titles)
        #expect(titles.titles == ["T"])
    }

    struct UserInfo: Request {
        let id: Int
        var path: String { "/users/\(id)" }
    }

    @Test func aServerIsScripted() async throws {
        let server = try LoopbackServer()
        server.handle("GET", "/users/7") { _ in LoopbackResponse(json: #"{"nick":"kim"}"#) }
        server.script(
            path: "/broken", [.expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), .close])
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        try await agent.send(UserInfo(id: 7))
        #expect(server.requestCount == 1)
        server.script(
            path: "/slow",
            [
                .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"),
                .mark("half"),  // try await server.waitForMark("half")
                .wait("go"),  // server.signal("go")
                .send("cde"),
                .serve,
            ])
        await agent.shutdown()
        server.stop()
        try await withLoopbackServer { server in print(server.baseURL) }
    }

    private func answers() -> LoopbackResponse {
        LoopbackResponse(status: 201, headers: ["Location": "/orders/7"], text: "made")
    }

    @Test func answersHaveFields() {
        let headers: LoopbackHeaders = ["Content-Type": "text/plain"]
        let type = headers["content-type"]  // "text/plain"
        #expect(type == "text/plain" && answers().status == 201)
    }

    @Test func certificatesAreMade() throws {
        let certificate = try ServerCertificate(.expired)
        let server = try LoopbackServer(.init(certificate: certificate))
        // a client that trusts certificate.authorityFile finds the certificate expired
        #expect(server.baseURL.hasPrefix("https://"))
        server.stop()
    }

    @Test func aStubAnswers() async throws {
        let stub = StubTransport { request in
            request.url.hasSuffix("/users/7") ? .response(body: #"{"nick": "kim"}"#) : .response(status: 404)
        }
        let agent = NetworkAgent(stub: stub)
        struct Get: Request { let path: String }
        #expect(try await agent.send(Get(path: "http://h/users/7")).text == #"{"nick": "kim"}"#)
        await agent.shutdown()
    }

    private func inTurn() -> StubTransport {
        let stub = StubTransport(responses: [.response(status: 503), .redirect(to: "/there"), .response(body: "here")])
        return stub
    }
}
