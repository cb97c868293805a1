import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The effect of a request's schema on its runs.
@Suite(.timeLimit(.minutes(2))) struct SchemaTests {
    /// A value of one's own that checks the document again.
    private struct Count: Request {
        typealias Value = Int
        static let schema: JSONSchema = []
        var path: String { "/x" }
        var jsonSchema: JSONSchema? { Self.schema }
        func value(from response: Response) throws -> Int { try response.json?.array?.count ?? -1 }
    }

    /// A request for a value that is made of users.
    private func ask<Value: Decodable & Sendable>(as type: Value.Type = [User].self) -> HTTPRequest<Value> {
        var request = HTTPRequest(.get, "/x", as: type)
        request.jsonSchema = [["nick": .string, "level": .number, "tags": JSONSchema.array.optional]]
        return request
    }

    private var object: HTTPRequest<[UInt8]> {
        var request = HTTPRequest(.get, "/x", as: [UInt8].self)
        request.jsonSchema = .object
        return request
    }

    private func agent(_ body: String) -> NetworkAgent {
        NetworkAgent(configuration: .test, stub: StubTransport(always: .response(body: body)))
    }

    @Test func whatFitsIsPassedOn() async throws {
        let users = try await agent(#"[{"nick": "kim", "level": 3, "extra": null}]"#).send(ask()).value
        #expect(users == [User(nick: "kim", level: 3)])
        #expect(try await agent("[1, 2]").send(Count()).value == 2)
        #expect(try await agent("{}").send(object).value == Array("{}".utf8))
    }

    @Test func theErrorSaysThePathAndWhatStoodThere() async throws {
        let agent = agent(#"[{"nick": "a", "level": 1}, {"nick": "b", "level": "canary"}]"#)
        let error = try #require(await fault { () throws(RequestError) in try await agent.send(ask()) })
        #expect(error.code == .schemaMismatch)
        #expect(error.message == "$[1].level: expected number, found string")
        #expect(error.phase == .processing && error.mayHaveBeenProcessed)
        let cause = try #require(error.cause as? JSONMismatch)
        #expect(cause.path == "$[1].level" && cause.expected == "number" && cause.found == "string")
        #expect(error.response?.status == 200)
        expectNoSecret(in: error)
    }

    @Test func anEmptyBodyFitsNoSchema() async {
        for body in ["", " "] {
            let agent = agent(body)
            #expect(await code { () throws(RequestError) in try await agent.send(object) } == .invalidJSON)
            #expect(
                await code { () throws(RequestError) in try await agent.send(ask(as: [User]?.self)) }
                    == .invalidJSON)
        }
    }

    @Test func closuresGetTheSame() async {
        let outcome = Outcome<[User]>()
        agent(#"[{"nick": 1}]"#).start(ask(), completion: outcome.take)
        #expect(await outcome.code == .schemaMismatch)
    }

    @Test func realBodiesAreCheckedWhereTheyStand() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        // One after the head in the same block, one in a block of its own, and one that ends at the end of a block.
        for count in [0, 1, 60, 500, 5000, 16000] {
            let body = "[" + (0..<count).map { #"{"nick": "n\#($0)", "level": \#($0)}"# }.joined(separator: ",") + "]"
            server.handle("/x") { _ in LoopbackResponse(json: body) }
            let users = try await agent.send(ask()).value
            #expect(users.count == count && users.last?.level == (count > 0 ? count - 1 : nil))
        }
        server.handle("/x") { _ in LoopbackResponse(json: "[1") }
        #expect(await code { () throws(RequestError) in try await agent.send(Count()) } == .invalidJSON)
        await agent.shutdown()
    }
}
