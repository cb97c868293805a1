import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Responses that depend on credentials which the cache's key does not contain. A redirect drops the credentials, but
/// its target is still the response for one user.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct CacheOwnerFaultTests {
    private let bench = CacheBench()

    private struct Provider: CredentialProvider {
        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            Credential(user: "canary-user", password: "canary-password")
        }
    }

    /// An agent with a cache in the shared directory, before a server.
    private func agent(
        _ server: LoopbackServer, _ change: (inout NetworkConfiguration) -> Void = { _ in }
    ) -> NetworkAgent {
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.cache = CacheConfiguration(directory: bench.path)
        change(&configuration)
        return NetworkAgent(configuration: configuration)
    }

    /// The user's run, then those of others with the same request: none of them gets the user's response.
    private func expectNoHitForOthers(
        _ server: LoopbackServer, _ request: Kept = Kept(), sourceLocation: SourceLocation = #_sourceLocation,
        _ change: (inout NetworkConfiguration) -> Void
    ) async throws {
        for way in Way.allCases {
            let user = agent(server, change)
            let reply = try await user.result(request, way).get()
            #expect(reply.value == "of the user" && !reply.isFromCache, sourceLocation: sourceLocation)
            #expect(await user.cache.statistics.refusals[.unknownCredentials] == 1, sourceLocation: sourceLocation)
            await user.shutdown()
            for other in [agent(server, change), agent(server)] {
                let error = await fault { try await other.send(request, cache: .cacheOnly) }
                #expect(error == .notCached(.notFound), sourceLocation: sourceLocation)
                await other.shutdown()
            }
        }
        server.stop()
    }

    /// The target of the redirects in these tests.
    private func elsewhere() throws -> LoopbackServer {
        let server = try LoopbackServer()
        server.handle("/mine") { _ in LoopbackResponse(text: "of the user") }
        return server
    }

    private static func redirect(to server: LoopbackServer) -> LoopbackResponse {
        LoopbackResponse(status: 302, headers: ["Location": server.baseURL + "/mine"])
    }

    @Test("R112: after a server's challenge and a redirect to another origin")
    func challenge() async throws {
        let (server, second) = (try LoopbackServer(), try elsewhere())
        server.handle("/x") { request in
            if request.headers["Authorization"] != nil { return Self.redirect(to: second) }
            return LoopbackResponse(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
        }
        try await expectNoHitForOthers(server) { $0.credentialProvider = Provider() }
        #expect(second.requests.allSatisfy { $0.headers["Authorization"] == nil })
    }

    @Test("R112: after a challenge of the second origin, with a digest for the first")
    func challengeBehindRedirect() async throws {
        let (server, second) = (try LoopbackServer(), try LoopbackServer())
        server.handle("/x") { _ in Self.redirect(to: second) }
        second.handle("/mine") { request in
            if request.headers["Authorization"] != nil { return LoopbackResponse(text: "of the user") }
            return LoopbackResponse(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
        }
        let request = Kept(authorization: .digest("canary-all", "canary-all"))
        try await expectNoHitForOthers(server, request) { $0.credentialProvider = Provider() }
    }

    @Test("R112: after a proxy's challenge and a redirect that bypasses the proxy")
    func proxyChallenge() async throws {
        let (proxy, second) = (try LoopbackServer(), try elsewhere())
        proxy.handle("/x") { request in
            if request.headers["Proxy-Authorization"] != nil { return Self.redirect(to: second) }
            return LoopbackResponse(status: 407, headers: ["Proxy-Authenticate": "Basic realm=\"p\""])
        }
        let port = Int(proxy.port)
        try await expectNoHitForOthers(proxy, Kept(path: "http://origin.invalid/x")) {
            $0.proxy = .http("127.0.0.1", port: port).except("127.0.0.1")
            $0.credentialProvider = Provider()
        }
    }

    @Test("R112: with a token in a field that was not declared secret, and a redirect to another origin")
    func token() async throws {
        let (server, second) = (try LoopbackServer(), try elsewhere())
        server.handle("/x") { request in
            request.headers["X-Session"] == nil ? LoopbackResponse(status: 403) : Self.redirect(to: second)
        }
        try await expectNoHitForOthers(server) {
            $0.authenticator = Session(token: "canary-token", field: "X-Session")
        }
        #expect(second.requests.allSatisfy { $0.headers["X-Session"] == nil })
    }

    @Test("R112: with a secret from an adapter, and a redirect to another origin")
    func adapter() async throws {
        struct Signing: RequestAdapter {
            func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
                request.headers["Authorization"] = "canary"
            }
        }
        let (server, second) = (try LoopbackServer(), try elsewhere())
        server.handle("/x") { _ in Self.redirect(to: second) }
        try await expectNoHitForOthers(server) { $0.adapters = [Signing()] }
    }

    @Test("R112: with a cookie that one response of the run sets and the next one removes")
    func cookie() async throws {
        let (server, second) = (try LoopbackServer(), try elsewhere())
        server.handle("/x") { _ in
            LoopbackResponse(status: 302, headers: ["Location": "/login", "Set-Cookie": "s=canary; Path=/"])
        }
        server.handle("/login") { request in
            guard request.headers["Cookie"] == "s=canary" else { return LoopbackResponse(status: 403) }
            let headers: LoopbackHeaders = [
                "Location": second.baseURL + "/mine", "Set-Cookie": "s=; Path=/; Max-Age=0",
            ]
            return LoopbackResponse(status: 302, headers: headers)
        }
        try await expectNoHitForOthers(server) { $0.keepsCookies = true }
    }

    @Test("R112: without credentials a redirect to another origin is stored, by the same check")
    func nobodys() async throws {
        let (server, second) = (try LoopbackServer(), try elsewhere())
        server.handle("/x") { _ in Self.redirect(to: second) }
        let user = agent(server) { $0.credentialProvider = Provider() }
        #expect(try await user.send(Kept()).value == "of the user")
        let other = agent(server)
        #expect(try await other.send(Kept(), cache: .cacheOnly).value == "of the user")
        await user.shutdown()
        await other.shutdown()
    }
}
