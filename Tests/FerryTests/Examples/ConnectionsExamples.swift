import Ferry
import Testing

@testable import FerryTestSupport

/// The code of the article "Connections".
@Suite struct ConnectionsExamples {
    struct Preview: Request {
        typealias Value = String
        let path: String  // typed by a user
        var addressPolicy: AddressPolicy? { .publicOnly }
        var redirectPolicy: RedirectPolicy? { .follow(upTo: 3) }
        var maxBodyBytes: Int? { 256 * 1024 }
        var deadline: Duration? { .seconds(10) }
    }

    private func empties(_ agent: NetworkAgent) -> [String] {
        agent.cookies.set(Cookie(name: "session", value: "7c1f", domain: "api.example.com", isSecure: true))
        let names = agent.cookies.all.map(\.name)
        agent.cookies.removeAll()
        return names
    }

    private func connects(_ agent: NetworkAgent) async throws {
        try await agent.connect(to: "https://api.example.com", count: 8)  // TLS is done, nothing is sent
    }

    private func asksDocker(_ agent: NetworkAgent) async throws -> String {
        let info = try await agent.get("http+unix://%2Frun%2Fdocker.sock/v1/info")
        return info.text
    }

    private func printsConnections(of agent: NetworkAgent) {
        for (origin, connections) in agent.statistics.origins {
            print(origin, connections.open, connections.idle, connections.pending, connections.reused)
            print(connections.opened, "opened, closed:", connections.closed)  // by ConnectionCloseReason
        }
    }

    @Test func theJarIsAddedToAndEmptied() async {
        var configuration = NetworkConfiguration()
        configuration.keepsCookies = true
        let agent = NetworkAgent(configuration: configuration)
        #expect(empties(agent) == ["session"] && agent.cookies.all.isEmpty)
        printsConnections(of: agent)
        // libcurl carries the requests of an agent that keeps cookies.
        await #expect(throws: RequestError.self) { try await connects(agent) }
        await agent.shutdown(grace: .zero)
    }

    @Test func allOfItIsInTheConfiguration() {
        var configuration = NetworkConfiguration(baseURL: "https://api.example.com")
        configuration.proxy = .http(
            "proxy.example.com", port: 3128, credential: Credential(user: "kim", password: "secret")
        )
        .except("localhost", ".internal", "10.0.0.0/8")
        #expect("\(configuration.proxy)" == "http: http://proxy.example.com:3128, https: http://proxy.example.com:3128")
        configuration.proxy = .environment  // http_proxy, https_proxy, all_proxy, no_proxy
        configuration.proxy = .schemes(http: .none, https: .url("socks5h://gate:1080"))
        #expect("\(configuration.proxy)" == "http: none, https: socks5h://gate:1080")
        configuration.proxy = .socks5("gate", resolvesNames: .local)
        #expect("\(configuration.proxy)" == "http: socks5://gate:1080, https: socks5://gate:1080")
        configuration.tls = TLSConfiguration(
            authorityFile: "/etc/shop/authorities.pem",
            pinnedKeys: ["sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="],
            clientCertificate: ClientCertificate(
                certificateFile: "/etc/shop/client.pem", keyFile: "/etc/shop/client.key"),
            minimumVersion: .v13)
        configuration.addressSelection = .roundRobin  // or .leastRequests
        configuration.limits.minimumIdlePerHost = 2
        configuration.hostOverrides = ["api.example.com:443": ["10.0.0.7", "10.0.0.8"]]
        configuration.unixSocket = "/run/docker.sock"
        configuration.http2 = .negotiated
        configuration.tcpKeepAlive = .seconds(15)
        configuration.engine = .libcurl
        configuration.keepsCookies = true
        configuration.limits.maxConcurrentTransfers = 256
        configuration.limits.transfersPerHost = 32
        configuration.idleConnectionTime = .seconds(20)
        configuration.connectionLifetime = .seconds(300)  // then another one is opened
        configuration.limits.queueLength = 10_000
        configuration.eventLoopCount = 2  // threads, each with its own connections
        #expect(configuration.tls.minimumVersion == .v13 && configuration.http2 == .negotiated)
        #expect(Preview(path: "http://127.0.0.1/").addressPolicy == .publicOnly)
    }
}
