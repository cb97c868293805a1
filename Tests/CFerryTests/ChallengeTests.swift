import CFerry
import FerrySynchronization
import FerryTesting
import Testing

extension CoreTests {
    /// Credentials for challenges.
    @Suite struct Challenges {
        private static let all =
            FERRY_SCHEME_BASIC | FERRY_SCHEME_DIGEST | FERRY_SCHEME_NTLM | FERRY_SCHEME_NEGOTIATE

        private func ann(_ schemes: Int, password: String = "secret") -> CoreExtras {
            CoreExtras(credentials: .init(user: "ann", password: password, schemes: schemes))
        }

        /// Sends a challenge until the right credentials come.
        private func challenge(_ server: LoopbackServer, _ path: String, _ challenges: [String], _ wanted: String) {
            server.handle(path) { request in
                if request.headers["Authorization"]?.contains(wanted) ?? false {
                    return LoopbackResponse(status: 200, body: request.body)
                }
                return LoopbackResponse(
                    status: 401,
                    headers: LoopbackHeaders(challenges.map { .init(name: "WWW-Authenticate", value: $0) }),
                    body: Array("no".utf8))
            }
        }

        private let basic = "Basic YW5uOnNlY3JldA=="
        private let digest = #"Digest realm="r", nonce="abc""#
        /// With ann's password for /digest/a%2Fb?x=1.
        private let getResponse = #"response="efc702bfd36b4342f7278c6830123603""#
        private let postResponse = #"response="d67b5377b377719edfed837e66df27fc""#

        @Test func basicIsSentWhenItIsAskedForAndNotBefore() async throws {
            try await withCore { core, server in
                challenge(server, "/basic", [#"Basic realm="r""#], basic)
                let get = CoreRequest("GET", server.baseURL + "/basic").with { $0.extras = ann(FERRY_SCHEME_BASIC) }
                let result = try await core.run(get)
                #expect(result.fault == .ok && result.status == 200 && result.attempts == 1)
                #expect(server.requests.map { $0.headers["Authorization"] } == [nil, basic])
                #expect(result.values("WWW-Authenticate").isEmpty && server.connectionCount == 1)
                // A server that sends no challenge gets no credentials.
                let open = try await core.run(get.with { $0.url = Array((server.baseURL + "/hello").utf8) })
                #expect(open.status == 200 && server.requests.last?.headers["Authorization"] == nil)
                #expect(server.requestCount == 3)
            }
        }

        @Test func digestSignsThePathThatIsSent() async throws {
            try await withCore { core, server in
                challenge(server, "/digest/*", [digest, #"Basic realm="r""#], getResponse)
                let result = try await core.run(
                    CoreRequest("GET", server.baseURL + "/digest/a%2Fb?x=1").with { $0.extras = ann(Self.all) })
                #expect(result.fault == .ok && result.status == 200)
                #expect(server.requests.last?.target == "/digest/a%2Fb?x=1")
                #expect(server.requests.last?.headers["Authorization"]?.contains(#"uri="/digest/a%2Fb?x=1""#) ?? false)
            }
        }

        @Test(arguments: [FERRY_SCHEME_DIGEST, FERRY_SCHEME_DIGEST | FERRY_SCHEME_BASIC])
        func aPostGoesOutWholeEachTime(schemes: Int) async throws {
            try await withCore { core, server in
                challenge(server, "/digest/*", [digest], postResponse)
                for size in [0, 10, 300_000] {
                    let body = LoopbackServer.pattern(0..<size)
                    let result = try await core.run(
                        CoreRequest("POST", server.baseURL + "/digest/a%2Fb?x=1").with {
                            $0.extras = ann(schemes)
                            $0.body = .bytes(body)
                        })
                    #expect(result.fault == .ok && result.status == 200 && (result.body ?? []) == body, "\(size)")
                    #expect(server.requests.suffix(2).map(\.bodyLength) == [UInt64(size), UInt64(size)])
                }
            }
        }

        @Test func wrongCredentialsGiveTheAnswerOfTheServer() async throws {
            try await withCore { core, server in
                challenge(server, "/basic", [#"Basic realm="r""#], basic)
                challenge(server, "/digest/*", [digest], getResponse)
                for (path, schemes) in [("/basic", FERRY_SCHEME_BASIC), ("/digest/a%2Fb?x=1", FERRY_SCHEME_DIGEST)] {
                    let before = server.requestCount
                    let result = try await core.run(
                        CoreRequest("GET", server.baseURL + path).with {
                            $0.extras = ann(schemes, password: "wrong")
                        })
                    #expect(result.fault == .ok && result.status == 401 && result.text == "no")
                    #expect(server.requestCount - before <= 3)
                }
            }
        }

        @Test func aSchemeThatIsNotOursIsNotAnswered() async throws {
            try await withCore { core, server in
                challenge(server, "/other", [#"Bearer realm="r""#, #"Basic realm="r""#], "never")
                let result = try await core.run(
                    CoreRequest("POST", server.baseURL + "/other").with {
                        $0.extras = ann(FERRY_SCHEME_DIGEST)
                        $0.body = .bytes([1])
                    })
                #expect(result.fault == .ok && result.status == 401 && server.requestCount == 1)
            }
        }

        @Test func onlyTheLastHeadIsTold() async throws {
            try await withCore { core, server in
                challenge(server, "/basic", [#"Basic realm="r""#], basic)
                for (password, status) in [("secret", 200), ("wrong", 401)] {
                    let result = try await core.run(
                        CoreRequest("GET", server.baseURL + "/basic").with {
                            $0.extras = ann(FERRY_SCHEME_BASIC, password: password)
                            $0.answer = .stream
                        })
                    #expect(result.fault == .ok && result.status == status)
                    let heads = core.events(result.id).filter { if case .head = $0 { true } else { false } }
                    #expect(heads == [.head(status: status)])
                    #expect(core.streamed(result.id) == (status == 401 ? Array("no".utf8) : []))
                }
            }
        }

        @Test func anAnswerWithoutABodyOrALengthIsTheLastToo() async throws {
            try await withCore { core, server in
                server.script(path: "/empty", [.send("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"), .serve])
                server.script(path: "/close", [.send("HTTP/1.1 401 No\r\n\r\nabc"), .close])
                for path in ["/empty", "/close"] {
                    let result = try await core.run(
                        CoreRequest("GET", server.baseURL + path).with {
                            $0.extras = ann(Self.all)
                            $0.answer = .stream
                        })
                    #expect(result.fault == .ok && result.status == 401, "\(path)")
                    #expect(core.events(result.id).contains(.head(status: 401)))
                    #expect(result.isCloseFramed == (path == "/close"))
                }
            }
        }

        @Test func aPulledBodyIsHeldBackUntilItsChallengeIsMet() async throws {
            try await withCore { core, server in
                challenge(server, "/digest/*", [digest], postResponse)
                for length in [UInt64(3), nil] {
                    let result = try await core.run(pulled(server, "/digest/a%2Fb?x=1", length))
                    #expect(result.fault == .ok && result.status == 200, "\(result.fault)")
                    #expect(server.requests.last?.body == [1, 2, 3])
                }
            }
        }

        @Test func aPulledBodyCannotGoOutTwice() async throws {
            try await withCore { core, server in
                server.handle("/stale") { _ in
                    LoopbackResponse(
                        status: 401,
                        headers: [
                            "WWW-Authenticate":
                                #"Digest realm="r", nonce="\#(UInt64.random(in: 0...9999))", stale=true"#
                        ])
                }
                for length in [UInt64(3), nil] {
                    let result = try await core.run(pulled(server, "/stale", length))
                    #expect(result.fault == CoreFault(FERRY_E_BODY_NOT_REPLAYABLE), "\(result.fault)")
                    #expect(result.status == 401)
                }
            }
        }

        /// A POST of three bytes that can be pulled once.
        private func pulled(_ server: LoopbackServer, _ path: String, _ length: UInt64?) -> CoreRequest {
            let isDone = Once()
            return CoreRequest("POST", server.baseURL + path).with {
                $0.extras = ann(FERRY_SCHEME_DIGEST)
                $0.body = .pull(length)
                $0.onPull = { space in
                    if !isDone.first() { return 0 }
                    space.copyBytes(from: [1, 2, 3])
                    return 3
                }
            }
        }

        @Test func aServerThatNeverHasEnough() async throws {
            try await withCore { core, server in
                server.handle("/more") { _ in
                    LoopbackResponse(
                        status: 401,
                        headers: [
                            "WWW-Authenticate":
                                #"Digest realm="r", nonce="\#(UInt64.random(in: 0...9999))", stale=true"#
                        ])
                }
                let result = try await core.run(
                    CoreRequest("GET", server.baseURL + "/more").with {
                        $0.extras = ann(FERRY_SCHEME_DIGEST)
                        $0.flags = .idempotent
                        $0.total = 5_000
                    })
                #expect(result.fault != .ok || result.status == 401)
                #expect(server.requestCount <= 20)
            }
        }

        @Test func theProxysChallenge() async throws {
            try await withSecureCore { core, server in
                let no = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 3\r\n\r\nabc"
                server.script([
                    .plain, .expectHead, .send(no), .expectHead, .send("HTTP/1.1 200 OK\r\n\r\n"), .startTLS, .serve,
                ])
                for (port, extras) in [(1, nil), (2, ann(FERRY_SCHEME_DIGEST, password: "other"))] {
                    let result = try await core.run(
                        CoreRequest("GET", "https://localhost:\(port)/hello").with { $0.extras = extras }
                            .through(server, user: "ann", password: "secret", schemes: FERRY_SCHEME_BASIC))
                    #expect(result.fault == .ok && result.status == 200, "\(result.fault)")
                }
                #expect(server.requests.map(\.method) == ["CONNECT", "CONNECT", "GET", "CONNECT", "CONNECT", "GET"])
                #expect(server.requests[1].headers["Proxy-Authorization"] == basic)
                #expect(server.requests[2].headers["Authorization"] == nil)
                #expect(server.requests[2].headers["Proxy-Authorization"] == nil)
            }
        }

        /// The proxy has opened it for this user, and has not been asked for anybody else.
        @Test(arguments: [
            (FERRY_SCHEME_BASIC, #"Basic realm="p""#), (FERRY_SCHEME_DIGEST, #"Digest realm="p", nonce="abc""#),
        ])
        func aTunnelBelongsToTheUserWhoMetTheProxysChallenge(scheme: Int, field: String) async throws {
            try await withSecureCore({ options, _ in options.engine = FERRY_ENGINE_LIBCURL }) { core, server in
                let no = "HTTP/1.1 407 No\r\nProxy-Authenticate: \(field)\r\nContent-Length: 3\r\n\r\nabc"
                let asks: LoopbackScript = [
                    .plain, .expectHead, .send(no), .expectHead, .send("HTTP/1.1 200 OK\r\n\r\n"), .startTLS, .serve,
                ]
                server.script(connection: 1, asks)
                server.script(connection: 2, asks)
                server.script(connection: 3, tunnel)
                let get = CoreRequest("GET", "https://localhost:1/hello").with { $0.total = 20_000 }
                let anns = get.through(server, user: "ann", password: "secret", schemes: scheme)
                let bobs = get.through(server, user: "bob", password: "secret", schemes: scheme)
                var reused: [Bool] = []
                for request in [anns, anns, bobs, get.through(server)] {
                    let result = try await core.run(request)
                    #expect(result.fault == .ok && result.status == 200, "\(result.fault)")
                    reused.append(result.isReused)
                }
                #expect(reused == [false, true, false, false] && server.connectionCount == 3)
            }
        }

        @Test func theBodyOfTheProxysChallengeIsBounded() async throws {
            try await withSecureCore { core, server in
                let no = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 90000000\r\n\r\n"
                server.script([.plain, .expectHead, .send(no), .pattern(bytes: 90_000_000)])
                let result = try await core.run(
                    CoreRequest("GET", "https://localhost:1/hello").with { $0.total = 20_000 }
                        .through(server, user: "ann", password: "secret", schemes: FERRY_SCHEME_BASIC))
                #expect(result.fault == CoreFault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES), "\(result.fault)")
                #expect(result.phase == FERRY_PHASE_CONNECT)
            }
        }

        @Test func theProxysChallengeWithoutATunnel() async throws {
            try await withCore { core, server in
                let no = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 3\r\n\r\nabc"
                server.script(path: "/hello", uses: 1, [.send(no), .serve])
                server.script(path: "/never", [.expectHead, .send(no), .restart])
                let get = CoreRequest("GET", "http://one.challenges.test/hello")
                    .through(server, user: "ann", password: "secret", schemes: FERRY_SCHEME_BASIC)
                let result = try await core.run(get)
                #expect(result.fault == .ok && result.status == 200 && result.text == "Hello, ferry")
                #expect(server.requests.map { $0.headers["Proxy-Authorization"] } == [nil, basic])
                let never = try await core.run(
                    get.with { $0.url = Array("http://one.challenges.test/never".utf8) })
                #expect(never.fault == CoreFault(FERRY_E_PROXY, FERRY_D_PROXY_AUTH_REQUIRED))
            }
        }

        @Test func schemesThatLibcurlDoesNotKnowAreRefused() async throws {
            try await withCore { core, server in
                var known = FERRY_SCHEME_BASIC | FERRY_SCHEME_DIGEST
                if ferry_features() & UInt32(FERRY_FEATURE_NTLM) != 0 { known |= FERRY_SCHEME_NTLM }
                if ferry_features() & UInt32(FERRY_FEATURE_NEGOTIATE) != 0 { known |= FERRY_SCHEME_NEGOTIATE }
                for schemes in 0..<32 {
                    let request = CoreRequest("GET", server.baseURL + "/hello").with { $0.extras = ann(schemes) }
                    if schemes & known != 0 {
                        let result = try await core.run(request)
                        #expect(result.fault == .ok)
                    } else {
                        #expect(throws: CoreFault(FERRY_E_INVALID_REQUEST)) { try core.submit(request) }
                    }
                }
            }
        }

        /// libcurl's Digest would send them unchanged, and a line break would start another field.
        @Test(arguments: ["\r\nX-Evil: 1", "\n", "\u{1}", "\u{7F}"], [true, false])
        func controlBytesInACredentialAreRefused(bytes: String, isUser: Bool) async throws {
            try await withCore { core, server in
                let (user, password) = isUser ? ("ann" + bytes, "p") : ("ann", "p" + bytes)
                let get = CoreRequest("GET", server.baseURL + "/hello")
                for schemes in [FERRY_SCHEME_DIGEST, Self.all] {
                    let own = get.with {
                        $0.extras = CoreExtras(
                            credentials: .init(user: user, password: password, schemes: schemes))
                    }
                    #expect(throws: CoreFault(FERRY_E_INVALID_REQUEST)) { try core.submit(own) }
                    let proxys = get.through(server, user: user, password: password, schemes: schemes)
                    #expect(throws: CoreFault(FERRY_E_INVALID_REQUEST)) { try core.submit(proxys) }
                }
                let basic = get.through(server, user: user, password: password)
                #expect(throws: CoreFault(FERRY_E_INVALID_REQUEST)) { try core.submit(basic) }
                #expect(server.connectionCount == 0)
            }
        }

        @Test func ntlmBindsItsConnectionToItsUser() async throws {
            guard ferry_features() & UInt32(FERRY_FEATURE_NTLM) != 0 else { return }
            try await withCore { core, server in
                // The second message of a handshake, in the server's form.
                let second =
                    "TlRMTVNTUAACAAAADAAMADgAAAAFgomiASNFZ4mrze8AAAAAAAAAAAAAAAAAAAAABgOAJQAAAA9GAEUAUgBSAFkA"
                server.handle("/ntlm") { request in
                    let sent = request.headers["Authorization"] ?? ""
                    if sent.hasPrefix("NTLM TlRMTVNTUAAD") { return LoopbackResponse(status: 200, body: request.body) }
                    let value = sent.hasPrefix("NTLM TlRMTVNTUAAB") ? "NTLM " + second : "NTLM"
                    return LoopbackResponse(status: 401, headers: ["WWW-Authenticate": value])
                }
                func run(_ user: String?) async throws -> CoreResult {
                    try await core.run(
                        CoreRequest("POST", server.baseURL + "/ntlm").with {
                            $0.body = .bytes([7])
                            guard let user else { return }
                            $0.extras = CoreExtras(
                                credentials: .init(user: user, password: "p", schemes: FERRY_SCHEME_NTLM))
                        })
                }
                let ann = try await run("ann")
                #expect(ann.fault == .ok && ann.status == 200 && ann.body == [7], "\(ann.fault) \(ann.status)")
                let connections = server.connectionCount
                let nobody = try await run(nil)
                #expect(nobody.status == 401 && !nobody.isReused && server.connectionCount == connections + 1)
                let bob = try await run("bob")
                #expect(bob.status == 200 && bob.body == [7])
            }
        }
    }
}

/// True once.
private final class Once: Sendable {
    private let isUsed = Mutex(false)
    func first() -> Bool {
        isUsed.withLock { used in
            defer { used = true }
            return !used
        }
    }
}
