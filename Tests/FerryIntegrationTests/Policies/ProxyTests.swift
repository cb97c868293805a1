import Ferry
import FoundationEssentials
import Testing

/// Requests to nginx through squid and microsocks.
@Suite(.timeLimit(.minutes(2))) struct ProxyTests {
    private func configuration(_ proxy: ProxyConfiguration) throws -> NetworkConfiguration {
        var configuration = try NetworkConfiguration.trusting
        configuration.proxy = proxy
        return configuration
    }

    private func through(_ squid: Squid, _ door: Squid.Door = .open, _ password: String? = nil) -> ProxyConfiguration {
        .http(
            "127.0.0.1", port: squid.port(door),
            credential: password.map { Credential(user: "ferry", password: $0) })
    }

    @Test("http goes through squid, and the server gets the fields meant for it")
    func http() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        let mark = token()
        try await withAgent(configuration(through(squid))) { agent in
            var request = HTTPRequest.echo(nginx.url("/echo?\(mark)"), .post, body: .string("text"))
            request.headers = ["X-One": "1"]
            let echo = try await agent.send(request).value
            #expect(echo.method == "POST" && echo.target == "/echo?\(mark)" && echo.length == 4)
            #expect(echo["X-One"] == "1" && echo["Host"] == "127.0.0.1:\(nginx.port(.http))")
            #expect(echo["Via"]?.contains("squid.ferry") == true)
            #expect(echo["Proxy-Connection"] == nil)
            let lines = try await squid.log(mark, count: 1)
            #expect(lines.map(\.method) == ["POST"] && lines.map(\.target) == [nginx.url("/echo?\(mark)")])
        }
    }

    @Test("a hundred requests share the connections to squid")
    func kept() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        var configuration = try configuration(through(squid))
        configuration.limits.transfersPerHost = 4
        try await withAgent(configuration) { agent in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<100 {
                    group.addTask { _ = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt"))) }
                }
                try await group.waitForAll()
            }
            #expect(agent.statistics.connectionsOpened <= 4)
        }
    }

    @Test("https goes through a tunnel: squid only learns host and port")
    func tunnel() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        let mark = token()
        let before = try await squid.log(":\(nginx.port(.tls))", count: 0).count
        try await withAgent(configuration(through(squid))) { agent in
            var request = HTTPRequest.echo(nginx.url("/echo?\(mark)", .tls))
            request.headers = ["Authorization": "Bearer canary", "Cookie": "canary=1", "User-Agent": "canary"]
            for _ in 0..<3 {
                let echo = try await agent.send(request).value
                #expect(echo["Authorization"] == "Bearer canary" && echo["Cookie"] == "canary=1")
                #expect(echo["Via"] == nil)
            }
        }
        let lines = try await squid.log(":\(nginx.port(.tls))", count: before + 1).dropFirst(before)
        #expect(lines.count == 1)
        let line = try #require(lines.first)
        #expect(line.method == "CONNECT" && line.target == "127.0.0.1:\(nginx.port(.tls))")
        #expect(!"\(line)".contains("canary"))
        let nginxLines = try await nginx.log(mark, count: 3)
        #expect(Set(nginxLines.map(\.connection)).count == 1)
    }

    @Test("the server's certificate is verified behind a tunnel, too")
    func trust() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        try await withAgent(configuration(through(squid))) { agent in
            for (site, code) in [(Nginx.Site.expired, RequestError.Code.tls(.expired)), (.wrongName, .tls(.hostname))] {
                let error = await failure { () throws(RequestError) in
                    try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", site)))
                }
                #expect(error?.code == code)
            }
        }
    }

    @Test("R55: a proxy that asks for credentials gets only those meant for it", arguments: [Nginx.Site.http, .tls])
    func required(site: Nginx.Site) async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        let mark = token()
        for password in [nil, "wrong"] {
            try await withAgent(configuration(through(squid, .locked, password))) { agent in
                var request = HTTPRequest.to(nginx.url("/echo?\(mark)", site))
                request.headers = ["Authorization": "Bearer canary"]
                let error = await failure { () throws(RequestError) in try await agent.send(request) }
                #expect(error?.code == .proxy(.authRequired), "\(error.map(String.init(describing:)) ?? "none")")
                #expect(error?.mayHaveBeenProcessed == false)
            }
        }
        let requests = try Upstream.shared.requests(to: mark)
        #expect(requests.isEmpty)
    }

    @Test("R55: credentials for the proxy are accepted there and sent no further", arguments: [Nginx.Site.http, .tls])
    func credentials(site: Nginx.Site) async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        let mark = token()
        let target = site == .tls ? ":\(nginx.port(.tls))" : mark
        let before = try await squid.log(target, count: 0).count
        try await withAgent(configuration(through(squid, .locked, "secret"))) { agent in
            let echo = try await agent.send(HTTPRequest.echo(nginx.url("/echo?\(mark)", site))).value
            #expect(echo["Proxy-Authorization"] == nil && echo["Authorization"] == nil)
        }
        let line = try #require(try await squid.log(target, count: before + 1).last)
        #expect(line.proxyAuthorization == "Basic%20ZmVycnk6c2VjcmV0" && line.authorization == "-")
    }

    @Test("an unreachable server is the proxy's refusal over a tunnel, and its response over http")
    func refused() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        try await withAgent(configuration(through(squid))) { agent in
            let plain = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .other)))
            }
            #expect(plain?.code == .invalidStatusCode(403))
            let tunnel = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to("https://127.0.0.1:\(nginx.port(.other))/hello.txt"))
            }
            #expect(tunnel?.code == .proxy(.refused) && tunnel?.mayHaveBeenProcessed == false)
        }
    }

    @Test("an unreachable proxy is not reported as the server's error", arguments: [Nginx.Site.http, .tls])
    func unreachable(site: Nginx.Site) async throws {
        let nginx = try Nginx.shared
        let port = try freePorts(1)[0]
        for proxy in [ProxyConfiguration.http("127.0.0.1", port: port), .socks5("127.0.0.1", port: port)] {
            try await withAgent(configuration(proxy)) { agent in
                let error = await failure { () throws(RequestError) in
                    try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", site)))
                }
                #expect(error?.code == .proxy(.unreachable))
            }
        }
    }

    @Test("excepted hosts bypass the proxy")
    func exceptions() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        let mark = token()
        let proxy = through(squid).except("127.0.0.0/8", ".except.localhost")
        try await withAgent(configuration(proxy)) { agent in
            for host in ["127.0.0.1", "a.except.localhost"] {
                try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?past-\(mark)", host: host)))
            }
            try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?through-\(mark)", host: "localhost")))
        }
        let lines = try await squid.log(mark, count: 1)
        #expect(lines.map(\.target) == [nginx.url("/hello.txt?through-\(mark)", host: "localhost")])
    }

    @Test("a redirect chooses the proxy again")
    func redirected() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        try await withAgent(configuration(.schemes(http: through(squid)))) { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/to-https")))
            #expect(reply.text == "Hello, ferry" && reply.headers["Via"] == nil)
        }
    }

    @Test("the environment's variables choose the proxy if enabled")
    func environment() async throws {
        let (nginx, squid) = try (Nginx.shared, Squid.shared)
        let mark = token()
        let variables = [
            "http_proxy": squid.url(.locked, "ferry:secret"), "HTTPS_PROXY": squid.url(), "no_proxy": "localhost",
        ]
        try await withAgent(configuration(.environment(variables))) { agent in
            try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)")))
            try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)", host: "localhost")))
            try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)", .tls)))
        }
        let lines = try await squid.log(mark, count: 1)
        #expect(lines.count == 1 && lines.first?.proxyAuthorization != "-")
        let served = try await nginx.log(mark, count: 3)
        #expect(served.count == 3)
    }

    @Test(
        "a provider's credential works at a proxy for bodies of all kinds", arguments: [Squid.Scheme.basic, .digest],
        [Nginx.Site.http, .tls])
    func provider(scheme: Squid.Scheme, site: Nginx.Site) async throws {
        let nginx = try Nginx.shared
        let squid = try Squid(scheme, forbidding: 1)
        var configuration = try configuration(through(squid, .locked))
        configuration.credentialProvider = Provider()
        let folder = try ServerFolder()
        try folder.write("text", to: "body")
        var form = Multipart(boundary: "b")
        form.append("f", "text")
        try await withAgent(configuration) { [form] agent in
            for body in [.string("text"), .file(folder.file("body")), .stream { Once() }, .multipart(form)]
                as [RequestBody]
            {
                let echo = try await agent.send(HTTPRequest.echo(nginx.url("/echo", site), .put, body: body)).value
                // The form has its lines around it.
                #expect(echo.length == 4 || echo.length > 50)
                #expect(echo["Proxy-Authorization"] == nil)
            }
        }
        let lines = try await squid.log("", count: 1)
        if scheme == .digest { #expect(lines.allSatisfy { !$0.proxyAuthorization.hasPrefix("Basic") }) }
    }

    /// A stream of one piece.
    private struct Once: AsyncSequence, AsyncIteratorProtocol {
        var isOver = false
        func makeAsyncIterator() -> Once { self }
        mutating func next() async -> [UInt8]? {
            defer { isOver = true }
            return isOver ? nil : Array("text".utf8)
        }
    }

    private struct Provider: CredentialProvider {
        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            challenge.challenger == .proxy ? Credential(user: "ferry", password: "secret") : nil
        }
    }
}
