import CResolver
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Known names that are looked up again.
@Suite(.serialized, .timeLimit(.minutes(1))) struct NameRefreshTests {
    @Test(
        "A refresh that fails keeps the old addresses, and is counted", arguments: [TransferEngine.automatic, .libcurl])
    func failure(engine: TransferEngine) async throws {
        let server = try LoopbackServer()
        resolver_answer("127.0.0.1")
        var configuration = NetworkConfiguration(baseURL: "http://refresh.several.test:\(server.port)")
        configuration.engine = engine
        // Names are looked up again equally often.
        configuration.connectionLifetime = .seconds(1)
        let agent = NetworkAgent(configuration: configuration)
        try await agent.send(Get("/hello"))
        resolver_answer("")
        while agent.statistics.refreshFaults == 0 { try await agent.send(Get("/hello")) }
        #expect(agent.statistics.lookups > 1)
        // And new connections go there.
        let reply = try await agent.send(Full(path: "/hello", headers: ["Connection": "close"]))
        #expect(reply.status == 200)
        let lines = agent.statistics.prometheusText().split(separator: "\n")
        #expect(lines.contains("ferry_lookup_refresh_faults_total 1"))
        #expect(lines.contains("ferry_lookups_total \(agent.statistics.lookups)"))
        await agent.shutdown()
    }
}
