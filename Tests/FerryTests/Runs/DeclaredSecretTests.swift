import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Header fields that a redirect policy declares sensitive are so everywhere.
@Suite struct DeclaredSecretTests {
    private let declaring = RedirectPolicy.follow(upTo: 3, sensitiveHeaders: ["x-customer"])
    private let bench = CacheBench()

    @Test(arguments: ["http://other/x", "https://base/x"])
    func foreignServersDoNotGetThoseOfTheConfiguration(_ path: String) async throws {
        var configuration = NetworkConfiguration(baseURL: "http://base", headers: ["X-Customer": "canary", "A": "b"])
        configuration.redirectPolicy = declaring
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        try await agent.send(Get(path))
        // A request's own policy removes none of them.
        try await agent.send(Kept(path: path, cachePolicy: .none, redirectPolicy: RedirectPolicy.none))
        try await agent.send(Get("/x"))
        #expect(stub.requests.map(\.headers) == [["A": "b"], ["A": "b"], ["X-Customer": "canary", "A": "b"]])
    }

    @Test(arguments: [true, false]) func theLogHidesThem(_ isOwn: Bool) async throws {
        let sink = KeptLog()
        var configuration = NetworkConfiguration.test
        configuration.logSink = sink
        if !isOwn { configuration.redirectPolicy = declaring }
        let agent = NetworkAgent(configuration: configuration, stub: StubTransport(always: .response()))
        let request = Kept(
            headers: ["X-Customer": "canary"], cachePolicy: .none, redirectPolicy: isOwn ? declaring : nil)
        try await agent.send(request)
        #expect(sink.lines.contains { $0.contains("X-Customer: ***") })
        #expect(!sink.lines.contains { $0.contains("canary") })
        #expect(try agent.curlCommand(for: request).contains("X-Customer: ***"))
        #expect(try agent.curlCommand(for: request, redacted: false).contains("canary"))
    }

    @Test(arguments: [true, false]) func theyTellKeptAnswersApart(_ isOwn: Bool) async throws {
        let agent = bench.agent(counting()) { if !isOwn { $0.redirectPolicy = declaring } }
        func kept(_ customer: String) -> Kept {
            Kept(headers: ["X-Customer": customer], redirectPolicy: isOwn ? declaring : nil)
        }
        #expect(try await texts(agent, kept("1"), kept("2"), kept("1")) == ["answer 1", "answer 2", "cached answer 1"])
        await agent.shutdown()
    }
}
