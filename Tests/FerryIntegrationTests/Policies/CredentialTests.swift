import Ferry
import FerrySynchronization
import Testing

@testable import FerryTestSupport

/// Challenges of real servers, handled by a provider of credentials.
@Suite(.timeLimit(.minutes(2))) struct CredentialTests {
    /// Returns its credentials one after another, then none.
    private final class Provider: CredentialProvider {
        private let credentials: [Credential]
        private let asked = Mutex<[CredentialChallenge]>([])

        init(_ passwords: String...) { credentials = passwords.map { Credential(user: "ferry", password: $0) } }

        var challenges: [CredentialChallenge] { asked.withLock { $0 } }

        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            asked.withLock { asked in
                asked.append(challenge)
                return asked.count <= credentials.count ? credentials[asked.count - 1] : nil
            }
        }
    }

    private func configuration(_ provider: Provider) -> NetworkConfiguration {
        var configuration = NetworkConfiguration()
        configuration.credentialProvider = provider
        return configuration
    }

    @Test("Basic credentials are accepted by nginx")
    func basic() async throws {
        let nginx = try Nginx.shared
        let provider = Provider("secret")
        try await withAgent(configuration(provider)) { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/private/secret.txt")))
            #expect(reply.text == "for ferry only")
            let challenge = try #require(provider.challenges.first)
            #expect(provider.challenges.count == 1)
            #expect(challenge.challenger == .server && challenge.realm == "ferry")
            #expect(challenge.host == "127.0.0.1" && challenge.port == nginx.port(.http))
        }
    }

    @Test("with a wrong credential the server's response is delivered", arguments: ["/private/secret.txt", "/basic"])
    func wrong(path: String) async throws {
        let nginx = try Nginx.shared
        let mark = token()
        let provider = Provider("wrong")
        try await withAgent(configuration(provider)) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("\(path)?\(mark)")))
            }
            #expect(error?.code == .invalidStatusCode(401))
            _ = try await eventually("a request with the wrong password") {
                try await nginx.log(mark, count: 2).first { $0.authorization == "Basic ZmVycnk6d3Jvbmc=" }
            }
        }
    }

    @Test("the reply to a challenge goes only to the server that sent it")
    func stays() async throws {
        let nginx = try Nginx.shared
        let upstream = try Upstream.shared
        let mark = token()
        try await withAgent(configuration(Provider("secret"))) { agent in
            try await agent.send(HTTPRequest.to(upstream.url + "/basic?\(mark)"))
            try await agent.send(HTTPRequest.to(upstream.url + "/echo?\(mark)"))
            try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)")))
            let sent = try upstream.requests(to: mark).map { $0["Authorization"] }
            #expect(sent == [nil, "Basic ZmVycnk6c2VjcmV0", nil] || sent == [nil, nil, "Basic ZmVycnk6c2VjcmV0", nil])
            let lines = try await nginx.log("hello.txt?\(mark)", count: 1)
            #expect(lines.allSatisfy { $0.authorization == "" })
        }
    }

    @Test("Digest works, also with a body", arguments: ["MD5", "SHA-256"])
    func digest(algorithm: String) async throws {
        let upstream = try Upstream.shared
        let mark = token()
        let provider = Provider("secret", "secret")
        try await withAgent(configuration(provider)) { agent in
            let url = upstream.url + "/digest?algorithm=\(algorithm)&\(mark)"
            let get = try await agent.send(HTTPRequest.echo(url)).value
            #expect(get["Authorization"]?.hasPrefix("Digest ") == true)
            let post = try await agent.send(HTTPRequest.echo(url, .post, body: .string("text"))).value
            #expect(post.length == 4 && post.method == "POST")
            #expect(!"\(try upstream.requests(to: mark))".contains("secret"))
        }
    }

    @Test(
        "a digest computed by the request itself works when the server asks for it, also with a body",
        arguments: ["MD5", "SHA-256"])
    func ownDigest(algorithm: String) async throws {
        let upstream = try Upstream.shared
        let mark = token()
        try await withAgent { agent in
            var request = HTTPRequest.echo(
                upstream.url + "/digest?algorithm=\(algorithm)&\(mark)", .put, body: .string("text"))
            request.authorization = .digest("ferry", "secret")
            for _ in 0..<5 {
                let echo = try await agent.send(request).value
                #expect(echo.length == 4 && echo["Authorization"]?.hasPrefix("Digest ") == true)
            }
            let requests = try upstream.requests(to: mark)
            #expect(requests.count <= 10)
        }
    }

    @Test("a wrong password for Digest does not loop")
    func wrongDigest() async throws {
        let upstream = try Upstream.shared
        let mark = token()
        try await withAgent(configuration(Provider("wrong"))) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(upstream.url + "/digest?\(mark)"))
            }
            #expect(error?.code == .invalidStatusCode(401))
            let requests = try upstream.requests(to: mark)
            #expect(requests.count <= 4)
        }
    }
}
