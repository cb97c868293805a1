import FaultTable
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Proxies that require credentials, and how proxies are chosen: rows R55 and R57.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct ProxyFaultTests {
    private static let refusal =
        "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"canary\"\r\nContent-Length: 3\r\n\r\nabc"
    private static let tunnel: [LoopbackScript.Step] = [.send("HTTP/1.1 200 OK\r\n\r\n"), .startTLS, .serve]
    private static let credential = Credential(user: "canary-user", password: "canary-password")
    /// In the form of Basic.
    private static let basic = "Basic Y2FuYXJ5LXVzZXI6Y2FuYXJ5LXBhc3N3b3Jk"

    /// Proxy and origin are one server: the tunnel leads to itself.
    private func withTunnel(
        _ script: [LoopbackScript.Step], credential: Credential? = nil,
        _ configure: (inout NetworkConfiguration) -> Void = { _ in },
        _ body: (LoopbackServer, NetworkAgent) async throws -> Void
    ) async throws {
        let certificate = try ServerCertificate()
        let server = try LoopbackServer(.init(certificate: certificate))
        server.script(LoopbackScript([.plain, .expectHead] + script))
        try await withFlow {
            $0.tls.authorityFile = certificate.authorityFile
            // The request after the fault bypasses the proxy.
            $0.proxy = .http("127.0.0.1", port: Int(server.port), credential: credential).except("127.0.0.1")
            configure(&$0)
        } _: { _, agent in
            try await body(server, agent)
        }
        server.stop()
    }

    private var probe: HTTPRequest<Response> { .probe("https://localhost:1/hello?" + Canary.query) }

    @Test(
        "R55: a tunnel that requires credentials is a proxy error, before anything is sent",
        arguments: Play.allCases
    )
    func authRequired(play: Play) async throws {
        for credential in [nil, Credential(user: "canary", password: "canary")] {
            try await withTunnel([.send(Self.refusal), .expectClose], credential: credential) { server, agent in
                let error = try #require(try await agent.outcome(of: probe, play).error)
                #expect(error.code == .proxy(.authRequired) && !error.mayHaveBeenProcessed)
                #expect(error.url == "https://localhost:1/hello?token=***")
                expectNoSecret(in: error)
                #expect(server.requests.allSatisfy { $0.method == "CONNECT" })
                expectNoSecretsOfRequest(server.requests)
            }
        }
    }

    /// Fields for the server are not in a request to the proxy.
    private func expectNoSecretsOfRequest(_ requests: [LoopbackRequest]) {
        for sent in requests {
            #expect(sent.headers["Authorization"] == nil && sent.headers["Cookie"] == nil)
            #expect(!sent.target.contains("token"))
        }
    }

    @Test("R55: each side gets its own credentials, and none of the other's", arguments: Play.allCases)
    func bothSides(play: Play) async throws {
        try await withTunnel(Self.tunnel, credential: Self.credential) { server, agent in
            var probe = probe
            probe.headers["Proxy-Authorization"] = nil
            for _ in 0..<2 {
                let reply = try await agent.outcome(of: probe, play).get()
                #expect(reply.text == "Hello, ferry")
            }
            #expect(server.requests.map(\.method) == ["CONNECT", "GET", "GET"])
            #expect(server.requests[0].headers["Proxy-Authorization"] == Self.basic)
            expectNoSecretsOfRequest([server.requests[0]])
            for sent in server.requests.dropFirst() {
                #expect(sent.headers["Proxy-Authorization"] == nil)
                #expect(sent.headers["Authorization"] == Canary.authorization)
            }
        }
    }

    private final class Provider: CredentialProvider {
        private let asked = Mutex<[CredentialChallenge]>([])
        private let credential: Credential?

        init(_ credential: Credential?) { self.credential = credential }

        var challenges: [CredentialChallenge] { asked.withLock { $0 } }

        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            asked.withLock { $0.append(challenge) }
            return credential
        }
    }

    @Test("R55: a provider is asked for the proxy, and its credential is sent only there", arguments: Play.allCases)
    func provider(play: Play) async throws {
        let provider = Provider(Self.credential)
        let steps: [LoopbackScript.Step] = [.send(Self.refusal), .expectHead] + Self.tunnel
        try await withTunnel(steps) {
            $0.credentialProvider = provider
        } _: { server, agent in
            var probe = probe
            probe.headers["Proxy-Authorization"] = nil
            // The first refusal ends its connection: only the second challenge is handled on the same one.
            let reply = try await agent.outcome(of: probe, play).get()
            #expect(reply.text == "Hello, ferry")
            #expect(provider.challenges.map(\.challenger) == [.proxy])
            #expect(provider.challenges.first?.port == Int(server.port))
            let connects = server.requests.filter { $0.method == "CONNECT" }
            #expect(connects.last?.headers["Proxy-Authorization"] == Self.basic)
            expectNoSecretsOfRequest(connects)
            #expect(server.requests.last?.headers["Proxy-Authorization"] == nil)
        }
    }

    @Test("R55: without a credential the error is reported")
    func providerWithoutCredential() async throws {
        let provider = Provider(nil)
        try await withTunnel([.send(Self.refusal), .expectClose]) {
            $0.credentialProvider = provider
        } _: { _, agent in
            #expect(await agent.result(probe).error?.code == .proxy(.authRequired))
            #expect(provider.challenges.count == 1)
        }
    }

    @Test("R55: a 407 from a proxy that forwards plain requests is the response")
    func plainProxy() async throws {
        let proxy = try LoopbackServer()
        proxy.script(path: "/", [.send(Self.refusal), .serve])
        try await withFlow {
            $0.proxy = .http("127.0.0.1", port: Int(proxy.port)).except("127.0.0.1")
        } _: { server, agent in
            for result in try await agent.outcomes(of: .probe("http://x.invalid/hello")) {
                #expect(result.error?.code == .invalidStatusCode(407) || result.error?.code == .proxy(.authRequired))
            }
            #expect(server.connectionCount == 0)
        }
    }

    @Test("R55: a proxy that is missing, refuses, or closes is reported distinctly")
    func otherFaults() async throws {
        let closed = try LoopbackServer(.refusing)
        try await withFlow {
            $0.proxy = .http("127.0.0.1", port: Int(closed.port), credential: Self.credential).except("127.0.0.1")
        } _: { _, agent in
            for outcome in try await agent.outcomes(of: .probe("http://x.invalid/?" + Canary.query)) {
                expectProxyFault(.unreachable, outcome)
            }
        }
        try await withTunnel([.send("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), .close]) { _, agent in
            for outcome in try await agent.outcomes(of: probe) { expectProxyFault(.refused, outcome) }
        }
        try await withTunnel([.close]) { _, agent in
            for outcome in try await agent.outcomes(of: probe) { expectProxyFault(.handshake, outcome) }
        }
    }

    /// I7: nothing of it has reached the server.
    private func expectProxyFault(_ fault: RequestError.Code.ProxyFault, _ outcome: FaultOutcome) {
        let error = outcome.error
        #expect(error?.code == .proxy(fault) && error?.mayHaveBeenProcessed == false, "\(outcome)")
        #expect(error?.phase == .connect && error?.attempts == 1, "\(outcome)")
    }

    @Test("R55: a redirect uses the proxy of its own target, which gets no secrets of a server")
    func redirectThroughProxy() async throws {
        let proxy = try LoopbackServer()
        proxy.handle("*") { _ in LoopbackResponse(text: "by proxy") }
        try await withFlow {
            $0.proxy = .http("127.0.0.1", port: Int(proxy.port), credential: Self.credential).except("127.0.0.1")
        } _: { server, agent in
            let location = "Location: http://x.invalid/there\r\nContent-Length: 0\r\n"
            server.script(path: "/start", [.send(head("302 X", location)), .serve])
            var probe = HTTPRequest.probe("/start")
            probe.statusValidation = .any
            for result in try await agent.outcomes(of: probe) {
                let reply = try result.get()
                #expect(reply.redirects.count == 1)
            }
            #expect(proxy.requests.allSatisfy { $0.target.hasPrefix("http://x.invalid/there") })
            for sent in proxy.requests {
                #expect(sent.headers["Proxy-Authorization"] == Self.basic)
                #expect(sent.headers["Authorization"] == nil && sent.headers["Cookie"] == nil)
            }
            #expect(server.requests.allSatisfy { $0.headers["Proxy-Authorization"] != Self.basic })
        }
    }

    // MARK: R57

    @Test("R57: the environment is read only if enabled, and its exceptions apply")
    func environment() async throws {
        let proxy = try LoopbackServer()
        let variables = ["HTTP_PROXY": "http://canary:canary@127.0.0.1:\(proxy.port)", "NO_PROXY": "::1,127.0.0.0/8"]
        try await withFlow {
            $0.proxy = .environment(variables)
        } _: { server, agent in
            let reply = try await agent.send(Get("/hello"))
            #expect(reply.text == "Hello, ferry")
            #expect(proxy.connectionCount == 0 && server.requestCount == 1)
            for result in try await agent.outcomes(of: .probe("http://x.invalid/hello")) {
                #expect(result.error == nil || result.error?.code == .invalidStatusCode(404))
            }
            #expect(proxy.requests.map(\.target) == Play.allCases.map { _ in "http://x.invalid/hello" })
            #expect(proxy.requests[0].headers["Proxy-Authorization"]?.hasPrefix("Basic ") ?? false)
        }
        // In a CGI program the client controls that variable.
        let forged = variables.merging(["REQUEST_METHOD": "GET"]) { $1 }
        try await withFlow {
            $0.proxy = .environment(forged)
        } _: { _, agent in
            #expect(await agent.result(Get("http://x.invalid/hello")).error?.code == .dns(.notFound))
        }
        #expect(proxy.requestCount == Play.allCases.count)
    }

    /// The route of a request to a local server, by `NO_PROXY`.
    @Test(
        "R57: exceptions match hosts and their subdomains, addresses in any notation, and networks",
        arguments: [
            ("127.0.0.1", "127.0.0.0/8", true), ("127.0.0.1", "127.0.0.1", true), ("127.1", "127.0.0.1/32", true),
            ("[::ffff:127.0.0.1]", "127.0.0.0/8", true), ("[::ffff:7f00:1]", "127.0.0.1", true),
            ("127.0.0.1", "::ffff:127.0.0.1", true), ("[::1]", "::1", true), ("[::1]", "fe80::/10,::/127", true),
            ("[::1]", "127.0.0.0/8", false), ("127.0.0.1", "128.0.0.0/1", false), ("127.0.0.1", "::1/128", false),
            ("a.shop.localhost", "shop.localhost", true), ("a.shop.localhost", ".shop.localhost", true),
            ("ashop.localhost", "shop.localhost", false), ("shop.localhost", "127.0.0.0/8", false),
            ("shop.localhost", "*", true), ("localhost", "LOCALHOST", true), ("localhost", "localhost:1", false),
        ])
    func exceptions(host: String, exceptions: String, isDirect: Bool) async throws {
        var options = LoopbackServer.Options()
        if host == "[::1]" { options.address = "::1" }
        for name in ["no_proxy", "NO_PROXY"] {
            let proxy = try LoopbackServer()
            try await withFlow(server: options, next: .nowhere) {
                $0.proxy = .environment(["http_proxy": "http://127.0.0.1:\(proxy.port)", name: exceptions])
            } _: { server, agent in
                for result in try await agent.outcomes(of: Get("http://\(host):\(server.port)/hello"), [.buffered]) {
                    #expect(result.error == nil || !isDirect && result.error?.code == .invalidStatusCode(404))
                }
                #expect((server.requestCount, proxy.requestCount) == (isDirect ? (2, 0) : (0, 2)))
                #expect(proxy.requests.allSatisfy { $0.target.hasPrefix("http://") })
            }
            proxy.stop()
        }
    }

    @Test("R57: an invalid proxy fails its requests before anything is sent")
    func nonsense() async throws {
        for text in ["http://canary:canary@", "ftp://canary:canary@h", "http://h:99999", "http://a b/"] {
            try await withFlow {
                $0.proxy = .url(text).except("127.0.0.1")
            } _: { server, agent in
                #expect(try await agent.send(Get("/hello")).status == 200)
                for outcome in try await agent.outcomes(of: .probe("http://x.invalid/?" + Canary.query)) {
                    #expect(outcome.error?.code == .proxy(.configuration) && outcome.error?.phase == .preparing)
                }
            }
        }
    }
}
