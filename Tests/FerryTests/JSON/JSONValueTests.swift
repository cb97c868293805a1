import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Which values are made of JSON, and how.
@Suite struct JSONValueTests {
    /// Made by hand.
    private struct Point: JSONConvertible, Sendable, Equatable {
        var x: Int
        var y: Int?
        init(json: JSON) throws {
            x = try json.value("x")
            y = try json.value("y")
        }
    }

    /// Both ways work, and report which one was used.
    private struct Both: Decodable, JSONConvertible, Sendable {
        let way: String
        init(json: JSON) throws { way = "convertible" }
        init(from decoder: any Decoder) throws { way = "decodable" }
    }

    private struct AsJSON: Request {
        typealias Value = JSON
        var path: String { "/x" }
    }

    private struct Made<Value: JSONConvertible & Sendable>: Request { var path: String { "/x" } }

    private struct AsBoth: Request {
        typealias Value = Both
        var path: String { "/x" }
    }

    private struct AsWords: Request {
        typealias Value = [String]
        var path: String { "/x" }
    }

    private struct Snake: Request {
        struct Value: Decodable, Sendable, Equatable {
            let firstName: String
            let born: Date
        }
        var path: String { "/x" }
        var jsonDecoder: FerryJSONDecoder {
            var decoder = FerryJSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            decoder.dateDecodingStrategy = .secondsSince1970
            return decoder
        }
    }

    private func agent(_ body: String) -> NetworkAgent {
        NetworkAgent(configuration: .test, stub: StubTransport(always: .response(body: body)))
    }

    @Test func theDocumentItself() async throws {
        let value = try await agent(#"{"a": [1, {"b": "c"}]}"#).send(AsJSON()).value
        #expect(value["a"]?[1]?["b"]?.string == "c")
        #expect(try await agent("7").send(AsJSON()).value == 7, "a scalar is a document")
    }

    @Test func aConvertibleType() async throws {
        #expect(try await agent(#"{"x": 1}"#).send(Made<Point>()).value.x == 1)
        #expect(try await agent(#"[{"x": 1, "y": 2}]"#).send(Made<[Point]>()).value.first?.y == 2)
        #expect(try await agent(#"{"k": {"x": 1}}"#).send(Made<[String: Point]>()).value["k"]?.x == 1)
    }

    @Test func convertibleWinsOverDecodable() async throws {
        #expect(try await agent("{}").send(AsBoth()).value.way == "convertible")
        #expect(try await agent("{}").send(HTTPRequest(.get, "/x", as: Both.self)).value.way == "convertible")
        #expect(try await agent(#"["a"]"#).send(AsWords()).value == ["a"])
    }

    @Test func decodableTypesGoByTheRequestsDecoder() async throws {
        let value = try await agent(#"{"first_name": "kim", "born": 7}"#).send(Snake()).value
        #expect(value == .init(firstName: "kim", born: Date(timeIntervalSince1970: 7)))
    }

    @Test func decimalsKeepTheirDigits() async throws {
        let value = try await agent("[0.1234567890123456789]").get("/x", as: [Decimal].self)
        #expect(value == [Decimal(string: "0.1234567890123456789")])
    }

    @Test func anEmptyBodyIsNilWhereThatIsAllowed() async throws {
        #expect(try await agent("").send(Made<JSON?>()).value == nil)
        #expect(try await agent("").send(Made<Point?>()).value == nil)
        #expect(try await agent("").get("/x", as: User?.self) == nil)
        #expect(try await agent("null").get("/x", as: User?.self) == nil)
        let reply = try await agent("").send(Get())
        #expect(try reply.json == nil)
    }

    @Test func anEmptyBodyIsNoJSONWhereAValueIsNeeded() async {
        let agent = agent("")
        #expect(await code { () throws(RequestError) in try await agent.send(AsJSON()) } == .invalidJSON)
        #expect(await code { () throws(RequestError) in try await agent.send(Made<Point>()) } == .invalidJSON)
        #expect(await code { () throws(RequestError) in try await agent.send(UserInfo(id: 1)) } == .invalidJSON)
        #expect(await code { () throws(RequestError) in try await agent.get("/x", as: [User].self) } == .invalidJSON)
    }

    @Test func whatIsNotJSONSaysWhere() async throws {
        let agent = agent(#"{"canary": tru}"#)
        for error in [
            await fault { () throws(RequestError) in try await agent.send(AsJSON()) },
            await fault { () throws(RequestError) in try await agent.send(Made<Point>()) },
            await fault { () throws(RequestError) in try await agent.send(UserInfo(id: 1)) },
        ] {
            let error = try #require(error)
            #expect(error.code == .invalidJSON)
            #expect(error.message == "not JSON, at byte 11: neither true, false nor null")
            #expect((error.cause as? JSONSyntaxError)?.offset == 11)
            #expect(error.response?.status == 200)
            expectNoSecret(in: error)
        }
        // The response is accepted, and gives the same error when it is read.
        let reply = try await agent.send(Get())
        #expect(throws: RequestError.self) { try reply.json }
    }

    @Test func whatDoesNotFitSaysWhere() async throws {
        let convertible = agent(#"[{"x": 1}, {"x": "canary"}]"#)
        var error = try #require(await fault { () throws(RequestError) in try await convertible.send(Made<[Point]>()) })
        #expect(error.code == .decoding)
        #expect(error.message == "$[1].x: expected integer, found string")
        #expect(error.cause is JSONMismatch)
        expectNoSecret(in: error)
        let decodable = agent(#"[{"nick": "a", "level": 1}, {"nick": "b"}]"#)
        error = try #require(await fault { () throws(RequestError) in try await decodable.get("/x", as: [User].self) })
        #expect(error.code == .decoding)
        #expect(error.message == "$[1]: no key level")
        #expect(error.cause is DecodingError)
    }

    @Test func duplicatesAreTheLast() async throws {
        #expect(try await agent(#"{"nick": "a", "level": 1, "nick": "b"}"#).send(UserInfo(id: 1)).value.nick == "b")
    }

    @Test func invalidUTF8IsNoJSON() async {
        let stub = StubTransport(always: .response(body: [0x22, 0xff, 0x22]))
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let text = await code { () throws(RequestError) in try await agent.get("/x", as: String.self) }
        #expect(text == nil, "text is repaired")
        #expect(await code { () throws(RequestError) in try await agent.send(AsJSON()) } == .invalidJSON)
    }
}
