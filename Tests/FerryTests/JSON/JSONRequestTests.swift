import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// JSON in requests.
@Suite struct JSONRequestTests {
    private func sent(_ request: some Request) async throws -> StubTransport.Request {
        let stub = StubTransport(always: .response())
        try await NetworkAgent(configuration: .test, stub: stub).send(request)
        return try #require(stub.requests.first)
    }

    @Test func aValueIsABody() async throws {
        let value: JSON = ["id": 7, "tags": ["a"], "owner": .null]
        for body in [RequestBody.json(value), .json(["id": 7, "tags": ["a"], "owner": .null])] {
            let request = try await sent(HTTPRequest(.post, "/x", body: body))
            #expect(request.text == #"{"id":7,"tags":["a"],"owner":null}"#)
            #expect(request.headers["Content-Type"] == "application/json")
        }
    }

    @Test func aPartOfAnotherDocumentIsABody() async throws {
        let document = try JSON(parsing: #"{"a": {"b": 18446744073709551615}}"#)
        let request = try await sent(HTTPRequest(.post, "/x", body: .json(try #require(document["a"]))))
        #expect(request.text == #"{"b":18446744073709551615}"#)
    }

    @Test func encodableValuesAreBodiesAsBefore() async throws {
        let request = try await sent(HTTPRequest(.post, "/x", body: .json(User(nick: "kim", level: 3))))
        #expect(try JSON(parsing: request.text) == ["nick": "kim", "level": 3])
        #expect(try await sent(HTTPRequest(.post, "/x", body: .json(["a": 1]))).text == #"{"a":1}"#)
    }

    @Test func argumentsAreMadeOfJSON() throws {
        let document = try JSON(parsing: #"{"a": 1, "b": [1.5, "x", null, true], "c": {"d": -2}}"#)
        let arguments = try Arguments(json: document)
        #expect(arguments == ["a": 1, "b": [1.5, "x", nil, true], "c": ["d": -2]])
        #expect(JSON(arguments: arguments) == document)
        #expect(try document.value("b", as: [Arguments.Value].self).count == 4)
    }

    @Test func integersAreNotRoundedIntoArguments() throws {
        let document = try JSON(parsing: #"{"a": [18446744073709551615]}"#)
        let error = #expect(throws: JSONMismatch.self) { try Arguments(json: document) }
        #expect(error?.path == "$.a[0]")
        for text in ["9223372036854775808", "18446744073709551616", "-9223372036854775809", "1e300"] {
            let document = try JSON(parsing: #"{"a": \#(text)}"#)
            #expect(throws: JSONMismatch.self) { try Arguments(json: document) }
        }
        let exact = try JSON(parsing: #"{"a": -9223372036854775808, "b": 9223372036854775807, "c": 1e18, "d": 0.5}"#)
        let arguments = try Arguments(json: exact)
        #expect(arguments == ["a": .integer(.min), "b": .integer(.max), "c": 1e18, "d": 0.5])
        #expect(throws: JSONMismatch.self) { try Arguments(json: [1]) }
    }
}
