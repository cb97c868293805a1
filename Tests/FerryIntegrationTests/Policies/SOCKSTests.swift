import Ferry
import Testing

/// Requests to nginx through microsocks.
@Suite(.timeLimit(.minutes(2))) struct SOCKSTests {
    private func configuration(_ proxy: ProxyConfiguration) throws -> NetworkConfiguration {
        var configuration = try NetworkConfiguration.trusting
        configuration.proxy = proxy
        return configuration
    }

    @Test("names are looked up by the proxy", arguments: [Nginx.Site.http, .tls])
    func remoteNames(site: Nginx.Site) async throws {
        let (nginx, socks) = try (Nginx.shared, SOCKSProxy())
        try await withAgent(configuration(.socks5("127.0.0.1", port: socks.port))) { agent in
            for _ in 0..<3 {
                let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", site, host: "localhost")))
                #expect(reply.text == "Hello, ferry")
            }
        }
        #expect(try await socks.targets(count: 1) == ["localhost:\(nginx.port(site))"])
    }

    @Test("names are looked up here, if configured")
    func localNames() async throws {
        let (nginx, socks) = try (Nginx.shared, SOCKSProxy())
        let proxy = ProxyConfiguration.socks5("127.0.0.1", port: socks.port, resolvesNames: .local)
        try await withAgent(configuration(proxy)) { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", host: "h1.localhost")))
            #expect(reply.text == "Hello, ferry")
        }
        #expect(try await socks.targets(count: 1) == ["127.0.0.1:\(nginx.port(.http))"])
    }

    @Test("a user and a password are accepted by a proxy that requires them")
    func credentials() async throws {
        let (nginx, socks) = try (Nginx.shared, SOCKSProxy(isLocked: true))
        let credential = Credential(user: "ferry", password: "secret")
        try await withAgent(configuration(.socks5("127.0.0.1", port: socks.port, credential: credential))) { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt")))
            #expect(reply.text == "Hello, ferry")
        }
        let wrong = Credential(user: "ferry", password: "wrong")
        for credential in [nil, wrong] {
            let proxy = ProxyConfiguration.socks5("127.0.0.1", port: socks.port, credential: credential)
            try await withAgent(configuration(proxy)) { agent in
                let error = await failure { () throws(RequestError) in
                    try await agent.send(HTTPRequest.to(nginx.url("/hello.txt")))
                }
                #expect(error?.code.name == "proxy" && error?.mayHaveBeenProcessed == false)
            }
        }
    }

    @Test("an unreachable server is reported by the proxy")
    func nobody() async throws {
        let socks = try SOCKSProxy()
        let port = try freePorts(1)[0]
        try await withAgent(configuration(.socks5("127.0.0.1", port: socks.port))) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to("http://127.0.0.1:\(port)/"))
            }
            #expect(error?.code.name == "proxy" && error?.mayHaveBeenProcessed == false)
        }
    }
}
