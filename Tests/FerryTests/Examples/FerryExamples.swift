import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The code of the front page.
@Suite struct FerryExamples {
    struct Weather: Decodable, Sendable {
        let city: String
        let celsius: Double
    }

    struct Forecast: Request {  // say only what differs
        typealias Value = Weather  // decoded from the JSON response
        let city: String
        var path: String { "/weather" }
        var arguments: Arguments { ["city": .string(city)] }
    }

    @Test func theForecastIsAskedForByItsCity() async throws {
        let stub = StubTransport(always: .response(body: #"{"city": "Oslo", "celsius": 4.5}"#))
        let agent = NetworkAgent(configuration: .init(baseURL: "http://127.0.0.1"), stub: stub)
        #expect(try await agent.send(Forecast(city: "Oslo")).value.celsius == 4.5)
        #expect(stub.requests.first?.url == "http://127.0.0.1/weather?city=Oslo")
        await agent.shutdown()
    }
}
