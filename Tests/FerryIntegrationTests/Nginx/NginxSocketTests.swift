import Ferry
import Testing

/// nginx on a Unix socket, with URLs that name it and with agents that send everything there. On both engines.
@Suite(.timeLimit(.minutes(2))) struct NginxSocketTests {
    static let engines: [TransferEngine] = [.automatic, .libcurl]

    private func url(_ path: String, _ site: Nginx.Site = .http) throws -> String {
        let socket = try Nginx.shared.socket(site).utf8.map { $0 == 0x2F ? "%2F" : String(UnicodeScalar($0)) }.joined()
        return "\(site.scheme)+unix://\(socket)\(path)"
    }

    @Test("Bodies of all sizes arrive, over kept connections", arguments: engines)
    func bodies(engine: TransferEngine) async throws {
        let nginx = try Nginx.shared
        let mark = token()
        var configuration = NetworkConfiguration()
        configuration.engine = engine
        try await withAgent(configuration) { agent in
            for (path, body) in [
                ("/64k.bin", Nginx.pattern(64 * 1024)), ("/1m.bin", Nginx.pattern(1024 * 1024)),
                ("/hello.txt", Array("Hello, ferry".utf8)),
            ] {
                let reply = try await agent.send(HTTPRequest.to(try url("\(path)?\(mark)")))
                #expect(reply.bytes == body)
            }
            try await withThrowingTaskGroup(of: String.self) { group in
                let small = try url("/hello.txt?\(mark)")
                for _ in 0..<200 { group.addTask { try await agent.send(HTTPRequest.to(small)).text } }
                for try await text in group { #expect(text == "Hello, ferry") }
            }
            let lines = try await nginx.log(mark, count: 203)
            #expect(lines.allSatisfy { $0.status == 200 && $0.version == "HTTP/1.1" })
            if engine == .automatic { #expect(Set(lines.map(\.connection)).count <= 64) }
        }
    }

    @Test("TLS, uploads to the upstream, and a redirect within the socket work", arguments: engines)
    func rest(engine: TransferEngine) async throws {
        var configuration = try NetworkConfiguration.trusting
        configuration.engine = engine
        try await withAgent(configuration) { agent in
            let secure = try await agent.send(HTTPRequest.to(try url("/hello.txt", .tls)))
            #expect(secure.text == "Hello, ferry")
            let moved = try await agent.send(HTTPRequest.to(try url("/302")))
            #expect(moved.redirects.count == 1 && moved.status == 200)
        }
        // Everything through the configuration: the host is that of the URL then.
        configuration.unixSocket = try Nginx.shared.socket()
        try await withAgent(configuration) { agent in
            let reply = try await agent.send(HTTPRequest.to("http://shop.test/hello.txt"))
            #expect(reply.text == "Hello, ferry")
        }
    }
}
