import Ferry
import FerryTesting
import Testing

/// The jar of an agent, and what servers see of it.
@Suite(.timeLimit(.minutes(1))) struct CookieJarTests {
    private func server() throws -> LoopbackServer {
        let server = try LoopbackServer()
        server.handle("/login") { _ in
            LoopbackResponse(headers: ["Set-Cookie": "session=s3cret; Path=/"])
        }
        return server
    }

    @Test func aCookieIsKeptAndSent() async throws {
        let server = try server()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.keepsCookies = true
        let agent = NetworkAgent(configuration: configuration)
        try await agent.send(Get("/login"))
        #expect(agent.cookies.all.map(\.name) == ["session"])
        #expect(agent.cookies.all.first?.value == "s3cret")
        try await agent.send(Get("/hello"))
        #expect(server.requests.last?.headers["Cookie"] == "session=s3cret")
        agent.cookies.removeAll()
        #expect(agent.cookies.all.isEmpty)
        try await agent.send(Get("/hello"))
        #expect(server.requests.last?.headers["Cookie"] == nil)
        await agent.shutdown()
    }

    @Test func aCookieCanBeSet() async throws {
        let server = try server()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.keepsCookies = true
        let agent = NetworkAgent(configuration: configuration)
        agent.cookies.set(Cookie(name: "a", value: "1", domain: "127.0.0.1", path: "/hel"))
        try await agent.send(Get("/hello"))
        #expect(server.requests.last?.headers["Cookie"] == nil)
        agent.cookies.set(Cookie(name: "a", value: "2", domain: "127.0.0.1"))
        try await agent.send(Get("/hello"))
        #expect(server.requests.last?.headers["Cookie"] == "a=2")
        #expect(!"\(agent.cookies.all) \(String(reflecting: agent.cookies.all))".contains("2\""))
        await agent.shutdown()
    }

    @Test func withoutTheOptionNothingIsKept() async throws {
        let server = try server()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        #expect(try await agent.send(Get("/login")).headers["Set-Cookie"] != nil)
        try await agent.send(Get("/hello"))
        #expect(server.requests.last?.headers["Cookie"] == nil)
        #expect(agent.cookies.all.isEmpty)
        await agent.shutdown()
    }
}
