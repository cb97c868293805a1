import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// The jar of an agent, and the cookies that servers receive from it.
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

    @Test(arguments: [0, -1, Int64.min, 1])
    func aCookieWhoseTimeIsOverReplacesOneAndIsNotSent(expires: Int64) async throws {
        let server = try server()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.keepsCookies = true
        let agent = NetworkAgent(configuration: configuration)
        agent.cookies.set(Cookie(name: "a", value: "1", domain: "127.0.0.1"))
        try await agent.send(Get("/hello"))
        #expect(server.requests.last?.headers["Cookie"] == "a=1")
        agent.cookies.set(Cookie(name: "a", value: "2", domain: "127.0.0.1", expires: expires))
        try await agent.send(Get("/hello"))
        #expect(server.requests.last?.headers["Cookie"] == nil)
        await agent.shutdown()
    }

    @Test(arguments: [0, 1, 2, 3]) func theOwnOnesStandBehindThoseOfTheJar(count: Int) async throws {
        let server = try server()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.keepsCookies = true
        let agent = NetworkAgent(configuration: configuration)
        var own = Headers()
        for index in 0..<count {
            own.append("X-\(index)", "x")
            own.append(index == 1 ? "COOKIE" : "Cookie", "n\(index)=\(index)")
        }
        // A text without a value is not a cookie.
        if count == 3 { own.append("Cookie", "") }
        let sent = (0..<count).map { "n\($0)=\($0)" }
        try await agent.send(Full(path: "/hello", headers: own))
        let first = try #require(server.requests.last)
        #expect(first.headers.values(of: "Cookie") == (sent.isEmpty ? [] : [sent.joined(separator: "; ")]))
        #expect((0..<count).allSatisfy { first.headers["X-\($0)"] == "x" })
        try await agent.send(Get("/login"))
        try await agent.send(Full(path: "/hello", headers: own))
        let all = (["session=s3cret"] + sent).joined(separator: "; ")
        #expect(server.requests.last?.headers.values(of: "Cookie") == [all])
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
