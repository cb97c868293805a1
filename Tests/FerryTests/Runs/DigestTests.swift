import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Credentials of a request that respond to a challenge, in every kind of run.
@Suite struct DigestTests {
    private let kim = Credential(user: "kim", password: "pw")

    private func sent(
        _ answers: [StubTransport.Response], headers: Headers = [:],
        _ change: (inout NetworkConfiguration) -> Void = { _ in }
    ) async throws -> [Credential?] {
        var configuration = NetworkConfiguration.test
        change(&configuration)
        let stub = StubTransport(responses: answers)
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        try await agent.send(Full(headers: headers, authorization: .digest("kim", "pw")))
        #expect(stub.requests.allSatisfy { $0.headers["Authorization"] == headers["Authorization"] })
        return stub.requests.map(\.credential)
    }

    @Test(arguments: [("kim\0", "pw"), ("kim", "p\0w")], [true, false])
    func aNULInItIsRefusedBeforeAnythingIsSent(credential: (String, String), isAdapted: Bool) async {
        var configuration = NetworkConfiguration.test
        if isAdapted { configuration.adapters = [Adapt { _, _ in }] }
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let full = Full(authorization: .digest(credential.0, credential.1))
        #expect(await code { () throws(RequestError) in try await agent.send(full) } == .invalidRequest)
        #expect(stub.requests.isEmpty)
    }

    @Test func itIsReadyForTheFirstChallenge() async throws {
        #expect(try await sent([.response()]) == [kim])
    }

    @Test func itIsReadyWithAdaptersToo() async throws {
        #expect(try await sent([.response()]) { $0.adapters = [Adapt { _, _ in }] } == [kim])
    }

    @Test func itIsReadyForEveryAttempt() async throws {
        let credentials = try await sent([.response(status: 503), .response()]) {
            $0.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero)
        }
        #expect(credentials == [kim, kim])
    }

    @Test func itStaysWithinItsOrigin() async throws {
        #expect(try await sent([.redirect(to: "/y"), .response()]) == [kim, kim])
        #expect(
            try await sent([.redirect(to: "http://other/"), .redirect(to: "http://h/back"), .response()])
                == [kim, nil, nil])
    }

    @Test func aHeaderOfTheRequestsWins() async throws {
        #expect(try await sent([.response()], headers: ["Authorization": "own"]) == [nil])
        #expect(
            try await sent([.response()], headers: ["Authorization": "own"]) { $0.adapters = [Adapt { _, _ in }] } == [
                nil
            ])
    }
}
