import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Challenges of servers, handled over a network.
@Suite(.timeLimit(.minutes(2))) struct CredentialFlowTests {
    /// Returns the given credentials, and records the challenges.
    private final class Provider: CredentialProvider {
        private let asked = Mutex<[CredentialChallenge]>([])
        private let answer: @Sendable (CredentialChallenge) async throws -> Credential?

        init(_ answer: @escaping @Sendable (CredentialChallenge) async throws -> Credential?) { self.answer = answer }

        var challenges: [CredentialChallenge] { asked.withLock { $0 } }

        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            asked.withLock { $0.append(challenge) }
            return try await answer(challenge)
        }
    }

    private static let right = Credential(user: "canary-user", password: "canary-password")
    private static let wrong = Credential(user: "canary-user", password: "canary-wrong")
    private static let basicPath = "/basic"
    /// With the right password.
    private static let basicField = "Basic Y2FuYXJ5LXVzZXI6Y2FuYXJ5LXBhc3N3b3Jk"

    private func withProvider(
        _ provider: Provider, _ configure: (inout NetworkConfiguration) -> Void = { _ in },
        _ body: (LoopbackServer, NetworkAgent) async throws -> Void
    ) async throws {
        try await withFlow {
            $0.credentialProvider = provider
            configure(&$0)
        } _: { server, agent in
            server.handle(Self.basicPath) { request in
                if request.headers["Authorization"] == Self.basicField { return LoopbackResponse(status: 200) }
                return LoopbackResponse(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
            }
            try await body(server, agent)
        }
    }

    @Test("Basic: the second request has the credential", arguments: Way.allCases)
    func basic(way: Way) async throws {
        let provider = Provider { _ in Self.right }
        try await withProvider(provider) { server, agent in
            let reply = try await agent.result(Get(Self.basicPath), way).get()
            #expect(reply.status == 200 && reply.redirects.isEmpty)
            #expect(server.requests.first?.headers["Authorization"] == nil)
            let challenge = try #require(provider.challenges.first)
            #expect(provider.challenges.count == 1 && challenge.challenger == .server)
            #expect(challenge.host == "127.0.0.1" && challenge.port == Int(server.port))
            #expect(challenge.schemes == .basic)
            // Without a challenge the provider is not asked.
            #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
            #expect(provider.challenges.count == 1)
        }
    }

    @Test("Without a credential the 401 is the response")
    func none() async throws {
        let provider = Provider { _ in nil }
        try await withProvider(provider) { server, agent in
            for result in await agent.resultsOfBothWays(Get(Self.basicPath)) {
                #expect(result.error?.code == .invalidStatusCode(401) && result.error?.attempts == 1)
            }
            #expect(provider.challenges.count == 2 && server.requestCount == 2)
        }
    }

    @Test("A wrong password ends with the 401, and the provider is not asked again", arguments: Way.allCases)
    func wrongPassword(way: Way) async throws {
        let provider = Provider { _ in Self.wrong }
        try await withProvider(provider) { server, agent in
            let error = try #require(await agent.result(Get(Self.basicPath), way).error)
            #expect(error.code == .invalidStatusCode(401))
            #expect(provider.challenges.count == 1 && server.requestCount <= 3)
            expectNoSecret(in: error)
        }
    }

    @Test("A provider that throws fails the run, which reports that it was sent")
    func throwing() async throws {
        let provider = Provider { _ in throw Oops() }
        try await withProvider(provider) { server, agent in
            for result in await agent.resultsOfBothWays(Get(Self.basicPath)) {
                let error = try #require(result.error)
                #expect(error.code == .applicationError && error.cause is Oops && error.attempts == 1)
            }
            #expect(server.requestCount == 2)
        }
    }

    @Test("A challenge without a supported scheme is the response", arguments: ["Bearer realm=\"r\"", "Frob", ""])
    func otherScheme(value: String) async throws {
        let provider = Provider { _ in Self.right }
        try await withProvider(provider) { server, agent in
            server.handle("/x") { _ in LoopbackResponse(status: 401, headers: ["WWW-Authenticate": value]) }
            #expect(await agent.result(Get()).error?.code == .invalidStatusCode(401))
            #expect(provider.challenges.isEmpty && server.requestCount == 1)
        }
    }

    @Test(
        "A user with a control character is refused before anything is sent",
        arguments: ["canary\0", "canary\r\nX-Evil: 1"], [#"Digest realm="r", nonce="abc""#, #"Basic realm="r""#])
    func unusable(user: String, challenge: String) async throws {
        let provider = Provider { _ in Credential(user: user, password: "canary") }
        try await withProvider(provider) { server, agent in
            server.handle("/x") { _ in LoopbackResponse(status: 401, headers: ["WWW-Authenticate": challenge]) }
            let error = try #require(await agent.result(Get()).error)
            #expect(error.code == .invalidRequest)
            expectNoSecret(in: error)
            #expect(server.requestCount == 1)
        }
    }

    // MARK: Digest

    /// For this user, `/digest`, realm `r`, nonce `abc`, without `qop`.
    private static let digests = [
        "MD5": ["GET": "b780ebf715c35c54f971f1bd704c9453", "POST": "f51ea0cff864d5a1fb384672617dfa97"],
        "SHA-256": [
            "GET": "d484377dbbcbf22d781038935a825675a139129e82fccd405bdf97116612a935",
            "POST": "2f6d266efe1d1d29b02939e5de7336d241492077b805a929252884f04ad3f8d9",
        ],
    ]

    private func serveDigest(_ server: LoopbackServer, _ algorithm: String) {
        server.handle("/digest") { request in
            let wanted = Self.digests[algorithm]?[request.method] ?? "none"
            if request.headers["Authorization"]?.contains("response=\"\(wanted)\"") ?? false {
                return LoopbackResponse(text: "in " + request.text)
            }
            let challenge = #"Digest realm="r", nonce="abc", algorithm=\#(algorithm)"#
            return LoopbackResponse(status: 401, headers: ["WWW-Authenticate": challenge])
        }
    }

    @Test("Digest: from a provider, and from the request itself", arguments: ["MD5", "SHA-256"], Way.allCases)
    func digest(algorithm: String, way: Way) async throws {
        let provider = Provider { _ in Self.right }
        try await withProvider(provider) { server, agent in
            serveDigest(server, algorithm)
            for method in [HTTPMethod.get, .post] {
                var call = HTTPRequest(method, "/digest")
                if method == .post { call.body = .string("body") }
                let reply = try await agent.result(call, way).get()

                #expect(reply.text == (method == .post ? "in body" : "in "))
                call.authorization = .digest("canary-user", "canary-password")
                #expect(try await agent.result(call, way).get().status == 200)
            }
            #expect(provider.challenges.count == 2, "who brings a digest along needs no provider")
            #expect(server.requests.allSatisfy { !($0.headers["Authorization"] ?? "").contains("canary-password") })
        }
    }

    @Test("Digest: a wrong password ends with the 401", arguments: Way.allCases)
    func wrongDigest(way: Way) async throws {
        try await withFlow { server, agent in
            serveDigest(server, "MD5")
            var call = HTTPRequest(.get, "/digest")
            call.authorization = .digest("canary-user", "canary-wrong")
            let error = try #require(await agent.result(call, way).error)
            #expect(error.code == .invalidStatusCode(401) && server.requestCount <= 3)
        }
    }

    @Test("Digest: a server without a challenge gets no credential")
    func openServer() async throws {
        try await withFlow { server, agent in
            var call = HTTPRequest(.get, "/hello")
            call.authorization = .digest("canary-user", "canary-password")
            _ = try await agent.sendBothWays(call)
            #expect(server.requests.allSatisfy { $0.headers["Authorization"] == nil } && server.requestCount == 2)
        }
    }

    // MARK: Bodies and redirects

    @Test("A body is sent again, unless it can be read only once")
    func bodies() async throws {
        let provider = Provider { _ in Self.right }
        let file = try TemporaryFile(LoopbackServer.pattern(0..<100_000))
        try await withProvider(provider) { server, agent in
            for body in [.bytes(LoopbackServer.pattern(0..<100_000)), .file(file.path)] as [RequestBody] {
                let call = HTTPRequest(.post, Self.basicPath, body: body)
                let replies = try await agent.sendBothWays(call)
                #expect(replies.map(\.status) == [200, 200])
            }
            #expect(server.requests.allSatisfy { $0.bodyLength == 100_000 })
            let asked = provider.challenges.count
            let once = HTTPRequest(.post, Self.basicPath, body: .stream(once: Pieces(pieces: [[1, 2, 3]])))
            #expect(await agent.result(once).error?.code == .invalidStatusCode(401))
            #expect(provider.challenges.count == asked)
        }
    }

    @Test("A credential is sent only to the origin that it was given for")
    func otherOrigin() async throws {
        let provider = Provider { $0.realm == "first" ? Self.right : nil }
        let second = try LoopbackServer()
        second.handle("/there") { _ in
            LoopbackResponse(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"second\""])
        }
        try await withProvider(provider) { server, agent in
            server.handle("/start") { request in
                request.headers["Authorization"] == nil
                    ? LoopbackResponse(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"first\""])
                    : LoopbackResponse(status: 307, headers: ["Location": second.baseURL + "/there"])
            }
            let error = try #require(await agent.result(Get("/start")).error)
            #expect(error.code == .invalidStatusCode(401) && error.redirects.count == 1)
            #expect(provider.challenges.map(\.realm) == ["first", "second"])
            #expect(provider.challenges.last?.port == Int(second.port))
            for sent in second.requests { expectNoSecret(in: sent) }
        }
    }

    @Test("A server that an adapter chooses for the next attempt is asked for itself", arguments: Way.allCases)
    func otherServerOfAnAdapter(way: Way) async throws {
        let provider = Provider { $0.realm == "r" ? Self.right : nil }
        let second = try LoopbackServer()
        second.handle(Self.basicPath) { _ in
            LoopbackResponse(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"second\""])
        }
        let attempts = Mutex(0)
        try await withProvider(provider) {
            $0.adapters = [
                Adapt { request, run in
                    guard run.url.hasSuffix(Self.basicPath) else { return }
                    let number = attempts.withLock { attempts in
                        attempts += 1
                        return attempts
                    }
                    if number > 1 { request.url = second.baseURL + Self.basicPath }
                }
            ]
        } _: { server, agent in
            let error = await agent.result(Get(Self.basicPath), way).error
            #expect(error?.code == .invalidStatusCode(401) && error?.attempts == 2)
            #expect(provider.challenges.map(\.realm) == ["r", "second"])
            #expect(second.requestCount == 1)
            #expect(second.requests.allSatisfy { $0.headers["Authorization"] == nil })
        }
    }

    @Test("An Authorization header that was refused does not prevent the credential")
    func staleHeader() async throws {
        let provider = Provider { _ in Self.right }
        try await withProvider(provider) { server, agent in
            var call = HTTPRequest(.get, Self.basicPath)
            call.headers = ["Authorization": "Bearer canary-stale"]
            let reply = try await agent.sendBothWays(call)
            #expect(reply.map(\.status) == [200, 200])
        }
    }

    @Test("After a challenge the credential also applies to retries", arguments: [nil, "Bearer canary-stale"])
    func retryBehindChallenge(stale: String?) async throws {
        let provider = Provider { _ in Self.right }
        let count = Mutex(0)
        try await withProvider(provider) {
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1), jitter: .none)
        } _: { server, agent in
            server.handle("/x") { request in
                if request.headers["Authorization"] != Self.basicField {
                    return LoopbackResponse(status: 401, headers: ["WWW-Authenticate": "Basic realm=\"r\""])
                }
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                return LoopbackResponse(status: number < 3 ? 503 : 200)
            }
            var call = HTTPRequest(.get, "/x")
            if let stale { call.headers = ["Authorization": stale] }
            let reply = try await agent.send(call)
            #expect(reply.status == 200)
            #expect(provider.challenges.count == 1)
        }
    }

    enum End: CaseIterable, Sendable {
        case cancel, deadline, shutdown
    }

    @Test("A slow provider does not delay other runs", arguments: End.allCases)
    func slowProvider(end: End) async throws {
        let gate = Gate()
        let provider = Provider { _ in
            await gate.pass()
            return Self.right
        }
        try await withProvider(provider) { server, agent in
            var call = HTTPRequest(.get, Self.basicPath)
            if end == .deadline { call.deadline = .milliseconds(800) }
            let outcome = Outcome<Response>()
            let run = agent.start(call, completion: outcome.take)
            let awaited = Task { [call] in await agent.result(call).error }
            #expect(await eventually { gate.arrived == 2 || outcome.count > 0 })
            switch end {
            case .cancel:
                run.cancel()
                awaited.cancel()
            case .deadline: break
            case .shutdown: await agent.shutdown(grace: .zero)
            }
            let code: RequestError.Code =
                switch end {
                case .cancel: .cancelled
                case .deadline: .timeout(.deadline)
                case .shutdown: .shutdown
                }
            for error in [await outcome.error, await awaited.value] {
                #expect(error?.code == code && error?.attempts == 1)
            }
            gate.open()
        }
    }
}
