import CFerry
import FerryTesting
import Testing

extension CoreTests {
    /// SOCKS 5 proxies (RFC 1928, RFC 1929), played by scripts that count the bytes.
    @Suite struct Socks {
        private let lookups = LookupStub.shared
        private let authRequired = CoreFault(FERRY_E_PROXY, FERRY_D_PROXY_AUTH_REQUIRED)
        private let handshake = CoreFault(FERRY_E_PROXY, FERRY_D_PROXY_HANDSHAKE)
        private let granted: [UInt8] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]

        private func withNames(_ body: (CoreLoop, LoopbackServer) async throws -> Void) async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            try await withCore(options, probes: false, body)
        }

        /// A greeting without credentials, then a request of this many bytes.
        private func script(_ request: Int) -> LoopbackScript {
            [.expectBytes(3), .sendBytes([5, 0]), .expectBytes(request), .sendBytes(granted), .serve]
        }

        @Test func theProxyLooksUpTheName() async throws {
            try await withNames { core, server in
                let name = "one.socks.test"
                server.script(script(4 + 1 + name.utf8.count + 2))
                for round in 0..<2 {
                    let result = try await core.run(
                        CoreRequest("GET", "http://\(name)/hello").through(server, FERRY_PROXY_SOCKS5_NAMES).with {
                            $0.add("Proxy-Authorization", "secret")
                            $0.idle = 3_000
                        })
                    #expect(result.fault == .ok && result.text == "Hello, ferry" && result.isReused == (round == 1))
                    #expect(server.requests.last?.target == "/hello")
                    #expect(server.requests.last?.headers["Proxy-Authorization"] == nil)
                }
                #expect(core.statistics.lookups == 0)
            }
        }

        @Test func theNameIsLookedUpHere() async throws {
            try await withNames { core, server in
                lookups.set("two.socks.test", ["10.9.8.7", "10.9.8.6"])
                server.script(script(4 + 4 + 2))
                let get = CoreRequest("GET", "http://two.socks.test/hello").through(server, FERRY_PROXY_SOCKS5)
                let result = try await core.run(get.with { $0.idle = 3_000 })
                #expect(result.fault == .ok && server.requests.last?.headers["Host"] == "two.socks.test")
                #expect(core.statistics.lookups == 1)
                let again = try await core.run(get)
                #expect(again.isReused)
                lookups.set("none.socks.test", [])
                let unknown = try await core.run(
                    CoreRequest("GET", "http://none.socks.test/").through(server, FERRY_PROXY_SOCKS5))
                #expect(unknown.fault == CoreFault(FERRY_E_DNS, FERRY_D_DNS_NOT_FOUND))
            }
        }

        @Test(arguments: [("[2001:db8::7]", 4 + 16 + 2), ("192.0.2.9", 4 + 4 + 2)])
        func addressesGoAsAddresses(host: String, bytes: Int) async throws {
            for kind in [FERRY_PROXY_SOCKS5, FERRY_PROXY_SOCKS5_NAMES] {
                try await withNames { core, server in
                    server.script(script(bytes))
                    let result = try await core.run(
                        CoreRequest("GET", "http://\(host)/hello").through(server, kind).with { $0.idle = 3_000 })
                    #expect(result.fault == .ok)
                }
            }
        }

        @Test func anAddressOfVersion6BehindAName() async throws {
            try await withNames { core, server in
                lookups.set("six.socks.test", ["2001:db8::7"])
                server.script(script(4 + 16 + 2))
                let result = try await core.run(
                    CoreRequest("GET", "http://six.socks.test/hello").through(server, FERRY_PROXY_SOCKS5).with {
                        $0.idle = 3_000
                    })
                #expect(result.fault == .ok)
            }
        }

        @Test func publicOnlyChoosesAmongTheAddresses() async throws {
            try await withNames { core, server in
                server.script(script(4 + 16 + 2))
                lookups.set("mixed.socks.test", ["10.0.0.1", "2a00::1", "127.0.0.1"])
                lookups.set("private.socks.test", ["10.0.0.1", "127.0.0.1"])
                func get(_ host: String) async throws -> CoreResult {
                    try await core.run(
                        CoreRequest("GET", "http://\(host)/hello").through(server, FERRY_PROXY_SOCKS5).with {
                            $0.flags = .publicOnly
                            $0.idle = 3_000
                        })
                }
                let mixed = try await get("mixed.socks.test")
                #expect(mixed.fault == .ok)
                for host in ["private.socks.test", "127.0.0.1"] {
                    let result = try await get(host)
                    #expect(result.fault == CoreFault(FERRY_E_ADDRESS_FORBIDDEN), "\(host)")
                    #expect(result.phase == FERRY_PHASE_CONNECT)
                }
                #expect(server.connectionCount == 1)
            }
        }

        @Test func credentials() async throws {
            try await withNames { core, server in
                let begin: [LoopbackScript.Step] = [
                    .expectBytes(4), .sendBytes([5, 2]), .expectBytes(8),
                ]
                let end: [LoopbackScript.Step] = [.expectBytes(10), .sendBytes(granted), .serve]
                server.script(connection: 1, LoopbackScript(begin + [.sendBytes([1, 0])] + end))
                server.script(connection: 2, LoopbackScript(begin + [.sendBytes([1, 1])]))
                server.script(connection: 3, [.expectBytes(4), .sendBytes([5, 0xff])])
                server.script(connection: 4, [.expectBytes(3), .sendBytes([5, 0xff])])
                let get = CoreRequest("GET", "http://192.0.2.9/hello").with { $0.idle = 3_000 }
                let good = try await core.run(
                    get.through(server, FERRY_PROXY_SOCKS5_NAMES, user: "ann", password: "pw"))
                #expect(good.fault == .ok)
                for (user, password) in [("bob", "pw"), ("eve", "pw"), (nil, nil)] as [(String?, String?)] {
                    let bad = try await core.run(
                        get.through(server, FERRY_PROXY_SOCKS5_NAMES, user: user, password: password))
                    #expect(bad.fault == authRequired && bad.phase == FERRY_PHASE_CONNECT && !bad.isProcessed)
                }
                #expect(server.requestCount == 1)
            }
        }

        @Test func repliesThatSayNo() async throws {
            try await withNames { core, server in
                for (i, reply) in [1, 2, 3, 4, 5, 6, 7, 8, 99].enumerated() {
                    server.script(
                        connection: i + 1,
                        [
                            .expectBytes(3), .sendBytes([5, 0]), .expectBytes(10),
                            .sendBytes([5, UInt8(reply), 0, 1, 0, 0, 0, 0, 0, 0]),
                        ])
                }
                server.script(connection: 10, [.expectBytes(3), .sendBytes([4, 0])])
                server.script(connection: 11, [.expectBytes(3), .close])
                for i in 1...11 {
                    let result = try await core.run(
                        CoreRequest("GET", "http://192.0.2.9/hello").through(server, FERRY_PROXY_SOCKS5).with {
                            $0.idle = 3_000
                        })
                    #expect(result.fault == handshake, "\(i): \(result.fault)")
                    #expect(result.phase == FERRY_PHASE_CONNECT && !result.isProcessed)
                }
            }
        }

        /// Version 4 has IPv4 addresses, and 4a names.
        @Test(arguments: [nil, "ann"] as [String?])
        func versionFour(user: String?) async throws {
            let granted: [UInt8] = [0, 0x5a, 0, 0, 0, 0, 0, 0]
            let name = "four.socks.test"
            let more = user?.utf8.count ?? 0
            for (kind, host, bytes) in [
                (FERRY_PROXY_SOCKS4, name, 9), (FERRY_PROXY_SOCKS4, "192.0.2.9", 9),
                (FERRY_PROXY_SOCKS4_NAMES, "192.0.2.9", 9),
                (FERRY_PROXY_SOCKS4_NAMES, name, 9 + name.utf8.count + 1),
            ] {
                try await withNames { core, server in
                    lookups.set(name, ["2001:db8::7", "10.9.8.7"])
                    server.script([.expectBytes(bytes + more), .sendBytes(granted), .serve])
                    let get = CoreRequest("GET", "http://\(host)/hello").with { $0.idle = 3_000 }
                    for round in 0..<2 {
                        let result = try await core.run(get.through(server, kind, user: user))
                        #expect(result.fault == .ok && result.isReused == (round == 1), "\(kind) \(host)")
                    }
                    #expect(core.statistics.handles == easyHandles(1))
                }
            }
        }

        @Test func versionFourSaysNo() async throws {
            try await withNames { core, server in
                for i in 1...3 {
                    let reply = [0, UInt8(0x5a + i), 0, 0, 0, 0, 0, 0]
                    server.script(connection: i, [.expectBytes(9), .sendBytes(reply)])
                }
                server.script(connection: 4, [.expectBytes(9), .sendBytes([0, 0x5a, 0]), .close])
                lookups.set("six.socks.test", ["2001:db8::7"])
                let get = CoreRequest("GET", "http://192.0.2.9/hello").with { $0.idle = 3_000 }
                for i in 1...4 {
                    let result = try await core.run(get.through(server, FERRY_PROXY_SOCKS4))
                    #expect(result.fault == handshake, "\(i): \(result.fault)")
                    #expect(result.phase == FERRY_PHASE_CONNECT && !result.isProcessed)
                }
                let six = try await core.run(
                    CoreRequest("GET", "http://six.socks.test/").through(server, FERRY_PROXY_SOCKS4))
                #expect(six.fault == handshake && server.connectionCount == 4)
            }
        }

        @Test func repliesThatComeByteForByte() async throws {
            try await withNames { core, server in
                server.script([
                    .expectBytes(4), .drip("\u{5}\u{2}", interval: .milliseconds(3)), .expectBytes(8),
                    .drip("\u{1}\0", interval: .milliseconds(3)), .expectBytes(10),
                    .drip("\u{5}\0\0\u{3}\u{4}abcd\0\u{1}", interval: .milliseconds(3)), .serve,
                ])
                let result = try await core.run(
                    CoreRequest("GET", "http://192.0.2.9/hello").with { $0.idle = 3_000 }.through(
                        server, FERRY_PROXY_SOCKS5_NAMES, user: "ann", password: "pw"))
                #expect(result.fault == .ok && result.text == "Hello, ferry")
            }
        }

        /// A kept connection through the proxy is not used for another user.
        @Test func connectionsAreTheirUsers() async throws {
            try await withNames { core, server in
                server.script([.expectBytes(4), .sendBytes([5, 0]), .expectBytes(10), .sendBytes(granted), .serve])
                let get = CoreRequest("GET", "http://192.0.2.9/hello").with { $0.idle = 3_000 }
                for (user, isReused) in [("ann", false), ("bob", false), ("ann", true)] {
                    let result = try await core.run(
                        get.through(server, FERRY_PROXY_SOCKS5_NAMES, user: user, password: "pw"))
                    #expect(result.fault == .ok && result.isReused == isReused, "\(user)")
                }
                #expect(server.connectionCount == 2)
            }
        }

        @Test func httpsThroughSocks() async throws {
            try await withSecureCore { core, server in
                server.script([
                    .expectBytes(3), .sendBytes([5, 0]), .expectBytes(16), .sendBytes(granted),
                    .startTLS, .serve,
                ])
                let result = try await core.run(
                    CoreRequest("GET", "https://localhost/hello").through(server, FERRY_PROXY_SOCKS5_NAMES).with {
                        $0.idle = 3_000
                    })
                #expect(result.fault == .ok && result.text == "Hello, ferry")
            }
        }
    }
}
