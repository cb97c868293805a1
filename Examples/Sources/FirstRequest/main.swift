// Sends a GET and decodes its JSON, within two seconds including retries.
//
//     swift run FirstRequest http://127.0.0.1:8080

import Ferry

struct Passenger: Decodable, Sendable {
    let name: String
    let score: Double
}

struct Passengers: Request {
    typealias Value = [Passenger]
    var path: String { "/json" }
    var deadline: Duration? { .seconds(2) }
}

let base = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1:8080"

do {
    try await withNetworkAgent(configuration: NetworkConfiguration(baseURL: base)) { agent throws(RequestError) in
        let reply = try await agent.send(Passengers())
        for passenger in reply.value { print("\(passenger.name): \(passenger.score)") }
        print("\(reply.value.count) passengers, status \(reply.status)")
    }
} catch {
    switch error.code {
    case .timeout(.deadline): print("not within two seconds")
    case .invalidStatusCode(404): print("no such place")
    default: print(error)  // one line, without secrets
    }
}
