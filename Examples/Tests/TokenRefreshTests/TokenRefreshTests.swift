// A token that is refreshed once for all who wait for it, tested without a network.
//
//     swift test

import Ferry
import FerryTesting
import Testing

// MARK: What is tested

struct Login: Request {
    typealias Value = String
    var path: String { "/login" }
    var method: HTTPMethod { .post }
}

struct Balance: Request {
    typealias Value = Int
    let account: Int
    var path: String { "/accounts/\(account)/balance" }
}

struct Session: Authenticator {
    let token: String?  // of an earlier run of the program

    func apply(_ token: String, to request: inout OutgoingRequest) {
        request.headers["Authorization"] = "Bearer \(token)"
    }

    func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
        try await agent.send(Login()).value
    }
}

// MARK: The test

@Test func aTokenIsRefreshedOnceForAllWhoWaitForIt() async throws {
    let stub = StubTransport { request in
        if request.url.hasSuffix("/login") { return .response(body: "fresh") }
        if request.headers["Authorization"] != "Bearer fresh" { return .response(status: 401) }
        return .response(headers: ["Content-Type": "application/json"], body: "100")
    }
    var configuration = NetworkConfiguration(baseURL: "https://bank.example.com")
    configuration.authenticator = Session(token: "expired")
    let agent = NetworkAgent(configuration: configuration, stub: stub)

    let balances = try await agent.send(batch: (1...10).map(Balance.init))
    let logins = stub.requests.filter { $0.url.hasSuffix("/login") }
    #expect(balances == Array(repeating: 100, count: 10))
    #expect(logins.count == 1, "once for all of them")
    #expect(logins.first?.headers["Authorization"] == nil, "a login carries no token")
    await agent.shutdown()
}
