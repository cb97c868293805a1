import Ferry
import FerryTesting

/// Runs `body` with a server and an agent for it. Both are shut down in the end, even if `body` throws.
func withServer(
    _ options: LoopbackServer.Options = .init(), engine: TransferEngine = .standard,
    _ configure: (inout NetworkConfiguration) -> Void = { _ in },
    _ body: (LoopbackServer, NetworkAgent) async throws -> Void
) async throws {
    try await withLoopbackServer(options) { server in
        try await withAgent(engine) {
            $0.baseURL = server.baseURL
            $0.tls.authorityFile = options.certificate?.authorityFile
            configure(&$0)
        } _: { agent in
            try await body(server, agent)
        }
    }
}

/// Runs `body` with an agent, which is shut down in the end, even if `body` throws.
func withAgent(
    _ engine: TransferEngine, _ configure: (inout NetworkConfiguration) -> Void = { _ in },
    _ body: (NetworkAgent) async throws -> Void
) async throws {
    var configuration = NetworkConfiguration()
    configuration.engine = engine
    configure(&configuration)
    let agent = NetworkAgent(configuration: configuration)
    do {
        try await body(agent)
    } catch {
        await agent.shutdown(grace: .zero)
        throw error
    }
    await agent.shutdown()
}
