import FerryJSON
import FerryTesting
import FerryTransport
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A body is parsed once for all readers, and not at all if there are none.
@Suite struct SharedDocumentTests {
    /// Reports whether it was parsed before, and parses it again.
    private struct Looking: Request {
        struct Value: Sendable {
            let before: ObjectIdentifier?
            let after: ObjectIdentifier?
        }
        var path: String { "/x" }
        var jsonSchema: JSONSchema?
        func value(from response: Response) throws -> Value {
            Value(
                before: response.result.reading.map { ObjectIdentifier($0) },
                after: try response.json.map { ObjectIdentifier($0.document) })
        }
    }

    private let agent = NetworkAgent(
        configuration: .test, stub: StubTransport(always: .response(body: #"{"nick": "kim", "level": 3}"#)))

    @Test func nothingIsReadThatNobodyAsksFor() async throws {
        #expect(try await agent.send(Get()).response.result.reading == nil)
        #expect(try await agent.send(HTTPRequest(.get, "/x", as: Data.self)).response.result.reading == nil)
        #expect(try await agent.send(HTTPRequest(.get, "/x", as: String.self)).response.result.reading == nil)
        #expect(try await agent.send(Looking()).value.before == nil)
    }

    @Test func theSchemasDocumentIsTheValues() async throws {
        let value = try await agent.send(Looking(jsonSchema: .object)).value
        #expect(value.before != nil && value.before == value.after)
    }

    @Test func whatHasPassedIsNotReadAgainForTheSameSchema() async throws {
        let response = try await agent.send(Get()).response
        let schema: JSONSchema = ["nick": .string]
        let strict: JSONSchema = ["nick": .string, "age": .integer]
        try response.check(by: schema)
        response.forgetJSON()
        let same = schema
        try response.check(by: same)
        #expect(response.result.reading == nil)
        // Another schema is checked, whatever has passed; and a failed check is repeated each time.
        for _ in 0..<2 {
            #expect { try response.check(by: strict) } throws: { ($0 as? RequestError)?.code.name == "schemaMismatch" }
            #expect(response.result.reading != nil)
            response.forgetJSON()
        }
        try response.check(by: ["nick": .string])
        #expect(response.result.reading != nil)
    }

    @Test func theDocumentGoesWhenTheValueIsMade() async throws {
        #expect(try await agent.send(UserInfo(id: 1)).response.result.reading == nil)
        var checked = HTTPRequest(.get, "/x")
        checked.jsonSchema = .object
        #expect(try await agent.send(checked).response.result.reading == nil)
        #expect(try await agent.send(Looking(jsonSchema: .object)).response.result.reading == nil)
    }

    @Test func theDocumentStaysWithItsViews() async throws {
        for schema in [nil, JSONSchema.object] {
            var request = HTTPRequest(.get, "/x", as: JSON.self)
            request.jsonSchema = schema
            let reply = try await agent.send(request)
            #expect(try reply.json?.document === reply.value.document)
        }
    }

    @Test func copiesOfAResponseShareIt() async throws {
        let reply = try await agent.send(Get())
        let copy = reply.response
        let first = try #require(try reply.json)
        #expect(try copy.json?.document === first.document)
        #expect(try reply.response.json?.document === first.document)
    }

    @Test func threadsShareIt() async throws {
        let response = try await agent.send(Get()).response
        let documents = try await withThrowingTaskGroup(of: ObjectIdentifier?.self) { group in
            for _ in 0..<16 { group.addTask { try response.json.map { ObjectIdentifier($0.document) } } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        // Several may have parsed it, but one result is kept.
        #expect(try documents.contains(response.json.map { ObjectIdentifier($0.document) }))
    }
}
