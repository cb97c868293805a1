import CFerry
import FerryTesting
import Glibc
import Testing

/// A response to CONNECT, then the requests under TLS.
let tunnel: LoopbackScript = [.expectHead, .send("HTTP/1.1 200 OK\r\n\r\n"), .startTLS, .serve]

extension CoreRequest {
    /// Through a proxy at `server`'s port.
    func through(
        _ server: LoopbackServer, _ kind: Int = FERRY_PROXY_HTTP, user: String? = nil, password: String? = nil,
        schemes: Int = 0
    ) -> CoreRequest {
        with {
            var extras = $0.extras ?? CoreExtras()
            extras.proxy = .init(
                kind: kind, address: "127.0.0.1:\(server.port)", user: user, password: password, schemes: schemes)
            $0.extras = extras
        }
    }
}

/// A loop that trusts the server's certificate and looks names up with the stub.
func withSecureCore(
    _ change: (inout CoreLoop.Options, inout LoopbackServer.Options) -> Void = { _, _ in },
    probes: Bool = false, _ body: (CoreLoop, LoopbackServer) async throws -> Void
) async throws {
    let certificate = try ServerCertificate()
    var options = CoreLoop.Options()
    options.caFile = certificate.authorityFile
    options.usesLookupStub = true
    var serverOptions = LoopbackServer.Options()
    serverOptions.certificate = certificate
    change(&options, &serverOptions)
    try await withCore(options, server: serverOptions, probes: probes, body)
}

extension CoreTests {
    /// HTTP proxies.
    @Suite struct Proxies {
        private let lookups = LookupStub.shared
        private let authRequired = CoreFault(FERRY_E_PROXY, FERRY_D_PROXY_AUTH_REQUIRED)
        private let refused = CoreFault(FERRY_E_PROXY, FERRY_D_PROXY_REFUSED)
        private let unreachable = CoreFault(FERRY_E_PROXY, FERRY_D_PROXY_UNREACHABLE)
        private let handshake = CoreFault(FERRY_E_PROXY, FERRY_D_PROXY_HANDSHAKE)

        /// Fields that were sent to the proxy for a connection are not sent by the next user of the connection.
        @Test func aTunnelIsItsSenders() async throws {
            try await withSecureCore { core, server in
                server.script(tunnel)
                for (secret, isReused) in [("Basic YQ==", false), ("Basic Yg==", false), ("Basic YQ==", true)] {
                    let result = try await core.run(
                        CoreRequest("GET", "https://localhost/hello").through(server).with {
                            $0.add("Proxy-Authorization", secret)
                        })
                    #expect(result.fault == .ok && result.isReused == isReused, "\(secret)")
                }
                let told = server.requests.filter { $0.method == "CONNECT" }.map { $0.headers["Proxy-Authorization"] }
                #expect(told == ["Basic YQ==", "Basic Yg=="])
            }
        }

        @Test func aPlainRequestNamesTheWholeURL() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            try await withCore(options) { core, server in
                let get = CoreRequest("GET", "http://one.proxies.test/hello?a=%2F&b=c%20d").through(server)
                let result = try await core.run(get)
                #expect(result.fault == .ok && result.text == "Hello, ferry" && result.peerPort == Int(server.port))
                #expect(server.requests.last?.target == "http://one.proxies.test/hello?a=%2F&b=c%20d")
                #expect(server.requests.last?.headers["Host"] == "one.proxies.test")
                #expect(server.requests.last?.headers["Proxy-Authorization"] == nil)
                let second = try await core.run(
                    CoreRequest("POST", "http://two.proxies.test:8080/echo/../echo").through(
                        server, user: "ann", password: "s:e"
                    ).with { $0.body = .bytes([1, 2]) })
                #expect(second.fault == .ok && server.requests.last?.body == [1, 2])
                #expect(server.requests.last?.target == "http://two.proxies.test:8080/echo/../echo")
                #expect(server.requests.last?.headers["Proxy-Authorization"] == "Basic YW5uOnM6ZQ==")
                // The proxy looks up the names, and nobody else does.
                #expect(core.statistics.lookups == 0)
                let third = try await core.run(get)
                #expect(third.isReused && server.requests.last?.headers["Proxy-Authorization"] == nil)
            }
        }

        @Test func httpsGoesThroughATunnelAndSecretsStayOnTheirSide() async throws {
            try await withSecureCore { core, server in
                server.script(tunnel)
                let get = CoreRequest("GET", "https://localhost:1/hello").through(
                    server, user: "ann", password: "secret"
                )
                .with {
                    $0.add("Authorization", "Bearer origin")
                    $0.add("Cookie", "a=b")
                    $0.add("X-Key", "own")
                }
                for round in 0..<2 {
                    let result = try await core.run(get)
                    #expect(result.fault == .ok && result.text == "Hello, ferry" && result.isReused == (round == 1))
                    #expect(result.attempts == 1 && result.headReceived < 200)
                }
                #expect(server.requests.map(\.method) == ["CONNECT", "GET", "GET"])
                let connect = server.requests[0]
                #expect(connect.target == "localhost:1" && connect.headers["Host"] == "localhost:1")
                #expect(connect.headers["Proxy-Authorization"] == "Basic YW5uOnNlY3JldA==")
                for name in ["Authorization", "Cookie", "X-Key"] { #expect(connect.headers[name] == nil) }
                let inner = server.requests[1]
                #expect(inner.target == "/hello" && inner.headers["Proxy-Authorization"] == nil)
                #expect(inner.headers["Authorization"] == "Bearer origin" && inner.headers["X-Key"] == "own")
                #expect(core.statistics.lookups == 0)
            }
        }

        @Test func aFieldForTheProxyGoesToTheProxyOnly() async throws {
            try await withSecureCore { core, server in
                server.script(tunnel)
                let result = try await core.run(
                    CoreRequest("GET", "https://localhost:1/hello").through(server).with {
                        $0.add("X-First", "1")
                        $0.add("proxy-authorization", "Bearer p")
                        $0.add("X-Last", "2")
                    })
                #expect(result.fault == .ok)
                #expect(server.requests[0].headers["Proxy-Authorization"] == "Bearer p")
                #expect(server.requests[0].headers["X-First"] == nil && server.requests[0].headers["X-Last"] == nil)
                #expect(server.requests[1].headers["Proxy-Authorization"] == nil)
                #expect(server.requests[1].headers["X-First"] == "1" && server.requests[1].headers["X-Last"] == "2")
            }
        }

        @Test func aFieldForTheProxyWithoutAValueIsAField() async throws {
            try await withSecureCore { core, server in
                server.script(tunnel)
                let result = try await core.run(
                    CoreRequest("GET", "https://localhost:1/hello").through(server).with {
                        $0.add("Proxy-Authorization", "")
                    })
                #expect(result.fault == .ok && server.requests[0].headers["Proxy-Authorization"] == "")
            }
        }

        @Test(arguments: [
            "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\n",
            "Content-Length: 0, 0\r\n", "Content-Length: 1\r\nContent-Length: 2\r\n",
        ]) func theFramingOfASuccessfulAnswerToConnectIsIgnored(fields: String) async throws {
            try await withSecureCore { core, server in
                server.script([.expectHead, .send("HTTP/1.1 200 OK\r\n\(fields)\r\n"), .startTLS, .serve])
                let result = try await core.run(CoreRequest("GET", "https://localhost:1/hello").through(server))
                #expect(result.fault == .ok && result.text == "Hello, ferry", "\(result.fault)")
            }
        }

        @Test func theProxyWantsCredentials() async throws {
            try await withSecureCore { core, server in
                let no = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 3\r\n\r\nabc"
                server.script([.plain, .expectHead, .send(no), .expectClose])
                for flags in [CoreRequest.Flags.idempotent, []] {
                    let result = try await core.run(
                        CoreRequest("GET", "https://localhost:1/hello").through(server).with { $0.flags = flags })
                    #expect(result.fault == authRequired && result.status == 407)
                    #expect(result.phase == FERRY_PHASE_CONNECT && result.attempts == 0 && !result.isProcessed)
                }
                let plain = try await core.run(CoreRequest("GET", "http://localhost:1/hello").through(server))
                #expect(plain.fault == authRequired && plain.status == 407)
                let wrong = try await core.run(
                    CoreRequest("GET", "https://localhost:1/hello").through(server, user: "a", password: "b"))
                #expect(wrong.fault == authRequired)
                #expect(server.requests.count == 4)
            }
        }

        @Test(arguments: ["403 Forbidden", "502 Bad Gateway", "302 Found\r\nLocation: http://127.0.0.1/", "500 x"])
        func theProxyRefuses(answer: String) async throws {
            try await withSecureCore { core, server in
                server.script([
                    .plain, .expectHead, .send("HTTP/1.1 \(answer)\r\nContent-Length: 1\r\n\r\nx"), .expectClose,
                ])
                let result = try await core.run(CoreRequest("GET", "https://localhost:1/hello").through(server))
                #expect(result.fault == refused && result.status == Int(answer.prefix(3)))
                #expect(result.phase == FERRY_PHASE_CONNECT && result.head.isEmpty && result.body == nil)
            }
        }

        @Test func theProxyBreaksOff() async throws {
            try await withSecureCore { core, server in
                server.script(connection: 1, [.plain, .expectHead, .close])
                server.script(connection: 2, [.plain, .expectHead, .send("HTTP/1.1 200 O"), .close])
                server.script(connection: 3, [.plain, .expectHead, .reset])
                server.script(connection: 4, [.plain, .expectHead, .send("SSH-2.0-x\r\n\r\n"), .close])
                for _ in 0..<4 {
                    let result = try await core.run(CoreRequest("GET", "https://localhost:1/hello").through(server))
                    #expect(result.fault == handshake, "\(result.fault) \(result.message ?? "")")
                    #expect(result.phase == FERRY_PHASE_CONNECT && !result.isProcessed)
                }
            }
        }

        @Test func theAnswerToConnectIsBounded() async throws {
            try await withSecureCore { core, server in
                let field = "X: " + String(repeating: "x", count: 1_000) + "\r\n"
                server.script(
                    connection: 1, [.plain, .expectHead, .send("HTTP/1.1 200 OK\r\n"), .repeating(field, times: 2_000)])
                server.script(
                    connection: 2,
                    [
                        .plain, .expectHead, .send("HTTP/1.1 200 OK\r\nX: "),
                        .repeating(String(repeating: "y", count: 1_000), times: 200),
                    ])
                for _ in 0..<2 {
                    let result = try await core.run(
                        CoreRequest("GET", "https://localhost:1/hello").through(server).with { $0.total = 10_000 })
                    #expect(result.fault == CoreFault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES))
                    #expect(result.phase == FERRY_PHASE_CONNECT)
                }
            }
        }

        @Test func fieldsOfTheProxyDoNotMixWithTheServers() async throws {
            try await withSecureCore { core, server in
                server.script([
                    .expectHead,
                    .send("HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-Proxy: 1\r\nContent-Encoding: gzip\r\n\r\n"),
                    .startTLS, .serve,
                ])
                let result = try await core.run(
                    CoreRequest("GET", "https://localhost:1/hello").through(server).with {
                        $0.flags = [.decode, .notifyHead]
                        $0.answer = .stream
                    })
                #expect(result.fault == .ok && result.values("X-Proxy").isEmpty && result.contentLength == 12)
                #expect(core.events(result.id).contains(.head(status: 200)))
                #expect(core.events(result.id).count { $0 == .head(status: 200) } == 1)
                #expect(String(decoding: core.streamed(result.id), as: UTF8.self) == "Hello, ferry")
            }
        }

        @Test func aProxyThatIsNotThere() async throws {
            var serverOptions = LoopbackServer.Options()
            serverOptions.accepting = .refused
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            try await withCore(options, server: serverOptions, probes: false) { core, server in
                for url in ["http://localhost:1/", "https://localhost:1/"] {
                    for kind in [FERRY_PROXY_HTTP, FERRY_PROXY_SOCKS5_NAMES] {
                        let result = try await core.run(CoreRequest("GET", url).through(server, kind))
                        #expect(result.fault == unreachable && result.osErrno == ECONNREFUSED)
                        #expect(result.phase == FERRY_PHASE_CONNECT && !result.isProcessed)
                    }
                }
                lookups.set("gone.proxies.test", [])
                let result = try await core.run(
                    CoreRequest("GET", "http://localhost:1/").with {
                        $0.extras = CoreExtras(proxy: .init(address: "gone.proxies.test:3128"))
                    })
                #expect(result.fault == unreachable && result.phase == FERRY_PHASE_DNS)
            }
        }

        @Test func theProxysNameIsLookedUpLikeAnyOther() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            try await withCore(options) { core, server in
                lookups.set("way.proxies.test", ["127.0.0.1"], isHeld: true)
                let get = CoreRequest("GET", "http://three.proxies.test/hello").with {
                    $0.extras = CoreExtras(proxy: .init(address: "WAY.proxies.test:\(server.port)"))
                }
                let ids = try (0..<20).map { _ in try core.submit(get) }
                await lookups.until("way.proxies.test", lookups: 1)
                core.cancel(ids[0])
                let cancelled = await core.result(of: ids[0])
                #expect(cancelled.fault == .cancelled && cancelled.phase == FERRY_PHASE_DNS)
                lookups.release("way.proxies.test")
                for result in await core.results(of: Array(ids.dropFirst())) { #expect(result.fault == .ok) }
                #expect(lookups.lookups("way.proxies.test") == 1 && lookups.lookups("three.proxies.test") == 0)
            }
        }

        @Test func anIdleProxyTimesOut() async throws {
            try await withSecureCore { core, server in
                server.script([.plain, .expectHead, .keepOpen])
                let result = try await core.run(
                    CoreRequest("GET", "https://localhost:1/").through(server).with { $0.connect = 100 })
                #expect(result.fault == .timeout(FERRY_D_TIMEOUT_CONNECT) && result.phase == FERRY_PHASE_CONNECT)
            }
        }

        @Test func differentCredentialsNeverShareAConnection() async throws {
            try await withSecureCore { core, server in
                server.script(tunnel)
                func run(_ user: String?, _ password: String? = nil) async throws -> CoreResult {
                    try await core.run(
                        CoreRequest("GET", "https://localhost:1/hello").through(server, user: user, password: password))
                }
                var reused: [Bool] = []
                for (user, password) in [
                    ("ann", "1"), ("ann", "1"), ("ann", "2"), ("bob", "1"), (nil, nil), ("bob", "1"),
                ] {
                    let result = try await run(user, password)
                    #expect(result.fault == .ok)
                    reused.append(result.isReused)
                }
                #expect(reused == [false, true, false, false, false, true])
            }
        }

        @Test func plainConnectionsAreNotSharedAmongCredentialsEither() async throws {
            try await withCore { core, server in
                var reused: [Bool] = []
                for user in ["ann", "ann", "bob", nil, "ann", nil] {
                    let result = try await core.run(
                        CoreRequest("GET", "http://five.proxies.test/hello").through(server, user: user))
                    #expect(result.fault == .ok)
                    reused.append(result.isReused)
                }
                #expect(reused == [false, true, false, false, true, true])
                // Nor with requests without a proxy.
                let direct = try await core.get(server.baseURL + "/hello")
                #expect(direct.fault == .ok && !direct.isReused)
            }
        }

        @Test func theLimitOfAHostHoldsOnAllWays() async throws {
            try await withSecureCore({ options, _ in options.maxPerHost = 2 }) { core, server in
                server.script(tunnel)
                let ids = try (0..<12).map { i in
                    try core.submit(
                        CoreRequest("GET", "https://localhost:1/delay/20").through(server, user: "u\(i % 3)"))
                }
                await core.untilStatistics { $0.running == 2 && $0.waiting == 10 }
                for result in await core.results(of: ids) { #expect(result.fault == .ok) }
            }
        }

        @Test(arguments: [
            "", ":80", "host", "host:", "host:0", "host:65536", "host:80/", "http://host:80", "u@host:80", "host:8 0",
            "[::1:80", "ho st:80", "host:80\r\nX: y",
        ])
        func whatIsNoAddressOfAProxyIsRefused(address: String) async throws {
            try await withCore { core, server in
                let request = CoreRequest("GET", server.baseURL + "/hello").with {
                    $0.extras = CoreExtras(proxy: .init(address: address))
                }
                #expect(throws: CoreFault(FERRY_E_INVALID_REQUEST)) { try core.submit(request) }
                let colon = request.with { $0.extras?.proxy = .init(address: "host:80", user: "a:b") }
                #expect(throws: CoreFault(FERRY_E_INVALID_REQUEST)) { try core.submit(colon) }
            }
        }

        @Test func withPublicOnlyTheProxyIsExemptAndItsTargetIsNot() async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            try await withCore(options) { core, server in
                for (host, code) in [
                    ("four.proxies.test", FERRY_OK), ("8.8.8.8", FERRY_OK),
                    ("127.0.0.1", FERRY_E_ADDRESS_FORBIDDEN), ("0x7f.1", FERRY_E_ADDRESS_FORBIDDEN),
                    ("[::ffff:10.0.0.1]", FERRY_E_ADDRESS_FORBIDDEN), ("localhost", FERRY_E_ADDRESS_FORBIDDEN),
                    ("a.LOCALHOST.", FERRY_E_ADDRESS_FORBIDDEN), ("169.254.169.254", FERRY_E_ADDRESS_FORBIDDEN),
                ] {
                    let result = try await core.run(
                        CoreRequest("GET", "http://\(host)/hello").through(server).with { $0.flags = .publicOnly })
                    #expect(result.code == code, "\(host)")
                }
                #expect(server.requestCount == 2)
            }
        }
    }
}
