import Ferry
import FerryTesting
import FerryXML
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The code of the article "JSON and validation".
@Suite struct JSONAndValidationExamples {
    struct Question: Decodable, Sendable {
        let id: Int
        let title: String
        let tags: [String]
        let answer: String?
    }

    struct Questions: Request {
        typealias Value = [Question]
        static let schema: JSONSchema = [
            ["id": .integer, "title": .string, "tags": [.string], "answer": .string.nullable.optional]
        ]
        var path: String { "/questions" }
        var jsonSchema: JSONSchema? { Self.schema }
    }

    private func count(_ agent: NetworkAgent) async -> Int {
        do throws(RequestError) {
            return try await agent.send(Questions()).value.count
        } catch {
            if error.is(.schemaMismatch), let mismatch = error.cause as? JSONMismatch {
                print(error.message)  // $[3].id: expected integer, found string
                print(mismatch.path, mismatch.expected, mismatch.found)
            }
            return 0
        }
    }

    struct Place: JSONConvertible, Sendable {
        let name: String
        let position: [Double]
        let country: String?

        init(json: JSON) throws {
            name = try json.value("name")
            position = try json.value("position")
            country = try json.value("country")  // absent or null: nil
        }
    }

    struct Places: Request {
        typealias Value = [Place]
        var path: String { "/places" }
    }

    struct Settings: Request {
        typealias Value = JSON
        var path: String { "/settings" }
    }

    private func show(_ agent: NetworkAgent) async throws {
        let settings = try await agent.send(Settings()).value
        print(settings["colors"]?[0]?.string ?? "none")
        print(try settings.value("volume", as: Int.self))  // or a JSONMismatch: $.volume: expected integer, found null
        for (key, value) in try settings.asObject() { print(key, value.kind) }
        print(settings.value(atPointer: "/colors/0") ?? .null)
    }

    struct Count: Request {
        typealias Value = Int
        var path: String { "/count" }

        func value(from response: Response) throws -> Int {
            try response.json?.value(atPointer: "/data/count")?.asInt() ?? 0
        }
    }

    struct SaveSettings: Request {
        typealias Value = Void
        let colors: JSON
        var path: String { "/settings" }
        var method: HTTPMethod { .put }
        var body: RequestBody? { .json(["colors": colors, "volume": 7, "theme": .null]) }
    }

    private func agent(_ body: String) -> NetworkAgent {
        NetworkAgent(configuration: .test, stub: StubTransport(always: .response(body: body)))
    }

    @Test func schemasAreChecked() async {
        #expect(await count(agent(#"[{"id": 1, "title": "t", "tags": ["a"]}]"#)) == 1)
        #expect(await count(agent(#"[{"id": "1", "title": "t", "tags": ["a"]}]"#)) == 0)
    }

    @Test func valuesAreMade() async throws {
        let places = try await agent(#"[{"name": "Åre", "position": [63.4, 13.1]}]"#).send(Places()).value
        #expect(places[0].name == "Åre" && places[0].position == [63.4, 13.1] && places[0].country == nil)
        try await show(agent(#"{"colors": ["red"], "volume": 3}"#))
        await #expect(throws: JSONMismatch.self) { try await show(agent(#"{"volume": null}"#)) }
        #expect(try await agent(#"{"data": {"count": 3}}"#).send(Count()).value == 3)
        #expect(try await agent(#"{"at": "2026-11-21T00:00:00Z"}"#).send(Moment()).value.at.timeIntervalSince1970 > 0)
        #expect(try await agent("<feed><title>a</title></feed>").send(Feed()).value == ["a"])
    }

    private struct Moment: SnakeRequest {
        struct Value: Decodable, Sendable { let at: Date }
        var path: String { "/moment" }
    }

    @Test func valuesAreSent() async throws {
        let stub = StubTransport(always: .response())
        try await NetworkAgent(configuration: .test, stub: stub).send(SaveSettings(colors: ["red"]))
        #expect(stub.requests.first?.text == #"{"colors":["red"],"volume":7,"theme":null}"#)
    }
}

protocol SnakeRequest: Request {}

extension SnakeRequest {
    var jsonDecoder: FerryJSONDecoder {
        var decoder = FerryJSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .iso8601
        return decoder
    }
}

struct Titles: XMLHandler {
    var titles: [String] = []
    private var text = ""

    mutating func startElement(_ element: XMLElementStart) { text = "" }
    mutating func characters(_ text: String) { self.text += text }
    mutating func endElement(_ name: String) {
        if name == "title" { titles.append(text) }
    }
}

struct Feed: Request {
    typealias Value = [String]
    var path: String { "/feed" }
    var responseFormat: ResponseFormat { .xml }

    func value(from response: Response) throws -> [String] { try response.readXML(by: Titles()).titles }
}
