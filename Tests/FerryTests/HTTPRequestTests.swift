import Ferry
import FerryJSON
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Requests without a type of their own, and the agent's methods for them.
@Suite(.timeLimit(.minutes(1))) struct HTTPRequestTests {
    /// Responds with the request it received.
    private static let echo = StubTransport { request in
        .response(headers: ["Content-Type": "application/json"], body: #"{"nick": "kim", "level": 3}"#)
    }

    private func agent(_ stub: StubTransport = echo) -> NetworkAgent {
        NetworkAgent(configuration: .test, stub: stub)
    }

    private struct Level: JSONConvertible, Sendable, Equatable {
        let level: Int
        init(json: JSON) throws { level = try json.value("level") }
    }

    @Test func theValueIsWhatIsNamed() async throws {
        let agent = agent()
        let text = #"{"nick": "kim", "level": 3}"#
        #expect(try await agent.send(HTTPRequest(.get, "/x")).value.text == text)
        #expect(try await agent.send(HTTPRequest(.get, "/x", as: User.self)).value == User(nick: "kim", level: 3))
        #expect(try await agent.send(HTTPRequest(.get, "/x", as: Level.self)).value.level == 3)
        #expect(try await agent.send(HTTPRequest(.get, "/x", as: String.self)).value == text)
        #expect(try await agent.send(HTTPRequest(.get, "/x", as: Data.self)).value == Data(text.utf8))
        #expect(try await agent.send(HTTPRequest(.get, "/x", as: [UInt8].self)).value == Array(text.utf8))
        #expect(try await agent.send(HTTPRequest(.get, "/x", as: JSON.self)).value["level"]?.int == 3)
        let nothing: Void = try await agent.send(HTTPRequest(.get, "/x", as: Void.self)).value
        _ = nothing
        let length = try await agent.send(HTTPRequest(.get, "/x") { $0.bodyLength }).value
        #expect(length == text.utf8.count)
    }

    @Test func codeThatIsGenericOverDecodableGetsTheBodyItselfToo() async throws {
        func fetch<Value: Decodable & Sendable>(_ type: Value.Type) async throws -> Value {
            try await agent().get("/x", as: type)
        }
        #expect(try await fetch(String.self) == #"{"nick": "kim", "level": 3}"#)
        #expect(try await fetch(Data.self).count == 27)
        #expect(try await fetch([UInt8].self).count == 27)
        #expect(try await fetch(User.self).nick == "kim")
        #expect(try await fetch([String: JSON].self)["level"]?.int == 3)
    }

    @Test func theMethodsOfTheAgentSendWhatTheyAreCalled() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        server.handle("/echo") { request in
            let body = #"{"nick": "\#(request.method)", "level": \#(request.body.count)}"#
            return LoopbackResponse(json: body)
        }
        let user = User(nick: "kim", level: 3)
        let length = Int(#"{"nick":"kim","level":3}"#.utf8.count)
        #expect(try await agent.get("/echo", as: User.self) == User(nick: "GET", level: 0))
        #expect(try await agent.post("/echo", json: user, as: User.self) == User(nick: "POST", level: length))
        #expect(try await agent.put("/echo", json: user, as: User.self) == User(nick: "PUT", level: length))
        #expect(try await agent.patch("/echo", json: user, as: User.self) == User(nick: "PATCH", level: length))
        #expect(try await agent.post("/echo", body: .string("ab"), as: User.self) == User(nick: "POST", level: 2))
        #expect(try await agent.put("/echo", arguments: ["a": 1], as: User.self) == User(nick: "PUT", level: 3))
        #expect(try await agent.patch("/echo", as: User.self) == User(nick: "PATCH", level: 0))
        #expect(try await agent.delete("/echo").text.contains("DELETE"))
        #expect(try await agent.head("/echo").status == 200)
        try await agent.post("/echo", json: user)
        try await agent.put("/echo", json: user)
        try await agent.patch("/echo", json: ["a": 1])
        #expect(
            try await agent.get(server.baseURL + "/echo", headers: ["X-A": "1"], arguments: ["q": "ä"]).status == 200)
        let last = try #require(server.requests.last)
        #expect(last.target == "/echo?q=%C3%A4")
        #expect(last.headers["X-A"] == "1")
        let posted = try #require(server.requests.first { $0.method == "POST" })
        #expect(posted.headers["Content-Type"] == "application/json")
        await agent.shutdown()
    }

    @Test func aStatusThatIsNotAcceptedIsThrown() async throws {
        let agent = agent(StubTransport { _ in .response(status: 404) })
        #expect(await code { () throws(RequestError) in try await agent.get("/x") } == .invalidStatusCode(404))
    }

    @Test func whatIsSetIsWhatTheRequestSays() throws {
        var request = HTTPRequest(.post, "/x", body: .string("a"))
        #expect(request.isIdempotent == false)
        #expect(request.timeouts == nil)
        #expect(request.retryPolicy == nil)
        #expect(request.idempotencyKey == nil)
        request.isIdempotent = true
        request.timeouts = Timeouts.none
        request.retryPolicy = .exponential(maxAttempts: 7)
        request.idempotencyKey = "k"
        let copy = request
        request.timeouts = Timeouts(idle: .seconds(1))
        request.retryPolicy = nil
        #expect(copy.timeouts == Timeouts.none)
        #expect(copy.retryPolicy?.maxAttempts == 7)
        #expect(copy.idempotencyKey == "k")
        #expect(copy.isIdempotent)
        #expect(request.timeouts?.idle == .seconds(1))
        request.arguments = ["a": 1]
        #expect(request.cacheArguments == ["a": 1])
        request.cacheArguments = [:]
        #expect(request.cacheArguments == [:])
        #expect(request.arguments == ["a": 1])
    }

    // MARK: Options

    @Test func theAcceptedTypesAreSentAsAccept() async throws {
        let stub = StubTransport { _ in .response(headers: ["Content-Type": "text/csv"], body: "a") }
        let agent = agent(stub)
        var request = HTTPRequest(.get, "/x")
        request.acceptedContentTypes = ["text/csv", "text/*"]
        try await agent.send(request)
        #expect(stub.requests.last?.headers["Accept"] == "text/csv, text/*")
        request.headers["Accept"] = "*/*"
        try await agent.send(request)
        #expect(stub.requests.last?.headers["Accept"] == "*/*")
        let plain = HTTPRequest(.get, "/x")
        try await agent.send(plain)
        #expect(stub.requests.last?.headers["Accept"] == nil)
    }

    @Test func anAutomaticKeyIsOneForAllAttemptsOfARunAndAnotherForTheNext() async throws {
        let server = try LoopbackServer()
        server.script(path: "/orders", uses: 2, [.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), .serve])
        server.handle("/orders") { _ in LoopbackResponse(status: 201) }
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1))
        let agent = NetworkAgent(configuration: configuration)
        var request = HTTPRequest(.post, "/orders", body: .json(["id": 7]))
        request.idempotencyKey = .automatic
        #expect(try await agent.send(request).status == 201)
        #expect(try await agent.send(request).status == 201)
        let keys = server.requests.map { $0.headers["Idempotency-Key"] ?? "" }
        try #require(keys.count == 4)
        #expect(UUID(uuidString: keys[0]) != nil)
        #expect(keys[0] == keys[1] && keys[1] == keys[2])
        #expect(keys[3] != keys[0])
        await agent.shutdown()
    }

    @Test func aKeyOfOnesOwnIsSentAndAFieldWinsOverIt() async throws {
        let stub = StubTransport(always: .response())
        let agent = agent(stub)
        var request = HTTPRequest(.post, "/x")
        request.idempotencyKey = .value("order-7")
        try await agent.send(request)
        #expect(stub.requests.last?.headers["Idempotency-Key"] == "order-7")
        request.headers["Idempotency-Key"] = "mine"
        try await agent.send(request)
        #expect(stub.requests.last?.headers["Idempotency-Key"] == "mine")
        request.headers = [:]
        request.idempotencyKey = "bad\nkey"
        #expect(
            await code { () throws(RequestError) in try await agent.send(request) } == .invalidRequest(.headerValue))
    }
}
