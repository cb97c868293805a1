import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Credentials from a provider for proxies.
@Suite(.timeLimit(.minutes(2))) struct ProxyCredentialFlowTests {
    /// Knows a user for each port.
    private final class Provider: CredentialProvider {
        private let asked = Mutex<[CredentialChallenge]>([])

        var challenges: [CredentialChallenge] { asked.withLock { $0 } }

        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            asked.withLock { $0.append(challenge) }
            return Credential(user: "canary\(challenge.port)", password: "canary")
        }
    }

    private func basic(_ proxy: LoopbackServer) throws -> String {
        let value = Authorization.basic("canary\(proxy.port)", "canary").value
        return try #require(value)
    }

    private static let digest = #"Digest realm="p", nonce="abc""#

    /// A proxy that serves every client with credentials of this scheme.
    private func proxy(
        _ scheme: String, _ serve: @escaping @Sendable (LoopbackRequest) -> LoopbackResponse
    ) throws -> LoopbackServer {
        let proxy = try LoopbackServer()
        let challenge = scheme == "Digest" ? Self.digest : #"Basic realm="p""#
        proxy.handle("/x") { request in
            if request.headers["Proxy-Authorization"]?.hasPrefix(scheme + " ") ?? false { return serve(request) }
            return LoopbackResponse(status: 407, headers: ["Proxy-Authenticate": challenge])
        }
        return proxy
    }

    private func withProxy(
        _ configuration: ProxyConfiguration, _ provider: Provider, _ body: (NetworkAgent) async throws -> Void
    ) async throws {
        try await withFlow {
            $0.proxy = configuration.except("127.0.0.1")
            $0.credentialProvider = provider
        } _: { _, agent in
            try await body(agent)
        }
    }

    @Test("If the server sends a challenge too, a proxy with Digest does not get the password", arguments: Way.allCases)
    func bothAsk(way: Way) async throws {
        let proxy = try proxy("Digest") { request in
            if request.headers["Authorization"]?.hasPrefix("Digest ") ?? false { return LoopbackResponse(text: "in") }
            return LoopbackResponse(status: 401, headers: ["WWW-Authenticate": #"Digest realm="s", nonce="def""#])
        }
        let provider = Provider()
        try await withProxy(.http("127.0.0.1", port: Int(proxy.port)), provider) { agent in
            var call = HTTPRequest(.get, "http://origin.invalid/x")
            let reply = try await agent.result(call, way).get()
            #expect(reply.text == "in")
            #expect(provider.challenges.map(\.challenger) == [.proxy, .server])
            call.authorization = .digest("canary-user", "canary-password")
            let second = try await agent.result(call, way).get()
            #expect(second.text == "in")
            #expect(provider.challenges.map(\.challenger) == [.proxy, .server, .proxy])
        }
        for sent in proxy.requests {
            for field in ["Proxy-Authorization", "Authorization"] {
                #expect(!(sent.headers[field] ?? "").hasPrefix("Basic"))
            }
        }
    }

    @Test("A credential for one proxy is not sent to another one after a redirect", arguments: Way.allCases)
    func otherProxy(way: Way) async throws {
        let first = try proxy("Basic") { _ in
            LoopbackResponse(status: 302, headers: ["Location": "https://origin.invalid/y"])
        }
        let refusal = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"q\"\r\nContent-Length: 0\r\n\r\n"
        let second = try LoopbackServer()
        second.script([.expectHead, .send(refusal), .expectHead, .send(refusal), .expectClose])
        let provider = Provider()
        let proxies = ProxyConfiguration.schemes(
            http: .http("127.0.0.1", port: Int(first.port)), https: .http("127.0.0.1", port: Int(second.port)))
        try await withProxy(proxies, provider) { agent in
            let error = await agent.result(Get("http://origin.invalid/x"), way).error
            #expect(error?.code == .proxy(.authRequired) && error?.redirects.count == 1)
            #expect(provider.challenges.map(\.port) == [Int(first.port), Int(second.port)])
        }
        let given = try basic(second)
        #expect(second.requests.allSatisfy { $0.method == "CONNECT" })
        #expect(second.requests.compactMap { $0.headers["Proxy-Authorization"] } == [given])
    }

    @Test("A streamed body goes through a proxy that sends a challenge", arguments: ["Basic", "Digest"], Way.allCases)
    func pulledBodies(scheme: String, way: Way) async throws {
        let proxy = try proxy(scheme) { LoopbackResponse(text: $0.text) }
        let provider = Provider()
        let file = try TemporaryFile(Array("abc".utf8))
        var form = Multipart()
        form.append("f", "abc")
        try await withProxy(.http("127.0.0.1", port: Int(proxy.port)), provider) { [form] agent in
            for body in [.file(file.path), .stream { Pieces(pieces: [Array("abc".utf8)]) }, .multipart(form)]
                as [RequestBody]
            {
                let call = HTTPRequest(.put, "http://origin.invalid/x", body: body)
                let reply = try await agent.result(call, way).get()
                #expect(reply.text.contains("abc"))
            }
            #expect(provider.challenges.count == 3)
        }
    }
}
