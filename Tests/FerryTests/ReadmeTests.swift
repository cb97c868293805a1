import Ferry
import FerryTesting
import Foundation
import Testing

// README: begin
struct Weather: Decodable, Sendable {
    let city: String
    let celsius: Double
}

struct Forecast: Request {  // say only what differs
    typealias Value = Weather  // made from the JSON of the answer
    let city: String
    var path: String { "/weather" }
    var arguments: Arguments { ["city": .string(city)] }
}

func forecast(for city: String, by agent: NetworkAgent) async throws(RequestError) -> String {
    do throws(RequestError) {
        let weather = try await agent.send(Forecast(city: city)).value
        return "\(weather.celsius) °C in \(weather.city)"
    } catch .invalidStatusCode(404) {
        return "no such place"  // all other errors go on to the caller
    }
}
// README: end

@Suite struct ReadmeTests {
    @Test func exampleDoesWhatItSays() async throws {
        let server = try LoopbackServer()
        server.handle("GET", "/weather") { request in
            request.query == "city=Oslo"
                ? LoopbackResponse(json: #"{"city":"Oslo","celsius":4.5}"#) : LoopbackResponse(status: 404)
        }
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        #expect(try await forecast(for: "Oslo", by: agent) == "4.5 °C in Oslo")
        #expect(try await forecast(for: "Nowhere", by: agent) == "no such place")
        await agent.shutdown()
        server.stop()
    }

    @Test func readmeShowsExactlyThisExample() throws {
        let source = try String(contentsOfFile: #filePath, encoding: .utf8)
        let begin = try #require(source.firstRange(of: "// README: begin\n"))
        let end = try #require(source.firstRange(of: "// README: end\n"))
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let readme = try String(contentsOfFile: "/\(root)/README.md", encoding: .utf8)
        #expect(readme.contains("```swift\nimport Ferry\n\n" + source[begin.upperBound..<end.lowerBound] + "```\n"))
    }
}
