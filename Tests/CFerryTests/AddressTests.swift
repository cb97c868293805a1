import CFerry
import FerryTesting
import Testing

extension CoreTests {
    /// FERRY_PUBLIC_ONLY.
    @Suite struct Addresses {
        private let lookups = LookupStub.shared
        private let forbidden = CoreFault(FERRY_E_ADDRESS_FORBIDDEN)

        @Test(arguments: [
            "0.0.0.0", "0.1.2.3", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1",
            "127.255.255.255", "169.254.0.1", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.1",
            "192.0.2.1", "192.88.99.1", "192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255",
            "198.51.100.1", "203.0.113.255", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
            "::", "::1", "::7f00:1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:8.8.8.8",
            "64:ff9b::7f00:1", "64:ff9b::10.0.0.1", "64:ff9b:1::8.8.8.8", "100::1", "2001::1", "2001:0:4136::1",
            "2001:2::1", "2001:10::1", "2001:1ff:ffff::1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::",
            "2002:c0a8:1::1", "3fff::1", "3fff:fff::1", "4000::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1",
            "fe80::1%1", "febf::1", "fec0::1", "ff02::1", "[::1]", "[::ffff:10.0.0.1]",
        ])
        func notOfThePublicInternet(address: String) {
            #expect(ferry_address_is_public(address) == 0)
        }

        @Test(arguments: [
            "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
            "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0",
            "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0",
            "203.0.112.255", "203.0.114.0", "223.255.255.255", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
            "2001:200::1", "2001:db7:ffff::1", "2001:db9::1", "2001:4860:4860::8888", "2002:808:808::1",
            "2606:4700::1111", "2a00::1", "3ffe:ffff::1", "[2a00::1]",
        ])
        func ofThePublicInternet(address: String) {
            #expect(ferry_address_is_public(address) == 1)
        }

        @Test(arguments: ["", "a", "localhost", "1.2.3", "1.2.3.4.5", "127.1", "0x7f000001", "[", "[]", "::g"])
        func notAnAddress(text: String) {
            #expect(ferry_address_is_public(text) == -1)
        }

        @Test(arguments: [
            "127.0.0.1", "127.1", "0x7f000001", "2130706433", "0", "0177.0.0.1", "127.0.0.1.", "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]", "localhost", "a.localhost", "0.0.0.0", "[::]", "[::1]",
        ])
        func spellingsOfOneself(host: String) async throws {
            try await withCore { core, server in
                let url = "http://\(host):\(server.port)/hello"
                let result = try await core.run(CoreRequest("GET", url).with { $0.flags = .publicOnly })
                // A text that libcurl's parser does not take for an address either is not found, or not a URL.
                let isRefused = result.fault == forbidden && result.phase == FERRY_PHASE_CONNECT
                let isNoName = [FERRY_E_DNS, FERRY_E_INVALID_URL].contains(result.code) && host.hasSuffix(".")
                #expect(isRefused || isNoName, "\(result.fault)")
                #expect(result.attempts == 0 && result.headSent == 0 && !result.isProcessed)
                #expect(server.connectionCount == 0)
            }
        }

        @Test func linkLocalAddressesAreNotConnectedTo() async throws {
            try await withCore { core, _ in
                for host in ["169.254.169.254", "10.0.0.1", "[fe80::1]", "[fd00::1]"] {
                    let result = try await core.run(
                        CoreRequest("GET", "http://\(host)/").with { $0.flags = .publicOnly })
                    #expect(result.fault == forbidden && result.message == nil, "\(host)")
                }
                #expect(core.statistics.connections == 0)
            }
        }

        private func withNames(_ body: (CoreLoop, LoopbackServer) async throws -> Void) async throws {
            var options = CoreLoop.Options()
            options.usesLookupStub = true
            try await withCore(options, body)
        }

        @Test func theAddressOfANameCounts() async throws {
            try await withNames { core, server in
                for (i, addresses) in [
                    ["127.0.0.1"], ["::1", "127.0.0.1"], ["169.254.169.254", "10.1.2.3", "192.168.0.1"],
                ].enumerated() {
                    lookups.set("private\(i).addresses.test", addresses)
                    let result = try await core.run(
                        CoreRequest("GET", "http://private\(i).addresses.test:\(server.port)/").with {
                            $0.flags = .publicOnly
                        })
                    #expect(result.fault == forbidden, "\(addresses)")
                }
                #expect(server.connectionCount == 0 && core.statistics.connections == 0)
            }
        }

        @Test func ofSeveralOnlyThePublicOnesAreTried() async throws {
            try await withNames { core, server in
                // No public address is reachable here: connecting fails or takes too long, but it is tried.
                lookups.set("mixed.addresses.test", ["127.0.0.1", "8.8.8.8", "::1"])
                let result = try await core.run(
                    CoreRequest("GET", "http://mixed.addresses.test:\(server.port)/").with {
                        $0.flags = .publicOnly
                        $0.connect = 300
                    })
                #expect(
                    [FERRY_E_CONNECT, FERRY_E_TIMEOUT].contains(result.code) && result.phase == FERRY_PHASE_CONNECT)
                #expect(server.connectionCount == 0)
            }
        }

        @Test(arguments: [false, true])
        func aKeptConnectionToAPrivateAddressIsNotUsed(isSecure: Bool) async throws {
            var options = CoreLoop.Options()
            var serverOptions = LoopbackServer.Options()
            if isSecure {
                let certificate = try ServerCertificate()
                options.caFile = certificate.authorityFile
                serverOptions.certificate = certificate
            }
            try await withCore(options, server: serverOptions) { core, server in
                let get = CoreRequest("GET", server.baseURL + "/hello")
                for _ in 0..<3 {
                    let kept = try await core.run(get)
                    #expect(kept.fault == .ok)
                    let result = try await core.run(get.with { $0.flags = [.publicOnly, .idempotent] })
                    #expect(result.fault == forbidden && result.phase == FERRY_PHASE_CONNECT)
                    #expect(result.attempts == 0 && result.headSent == 0 && !result.isProcessed)
                }
                #expect(server.requestCount == 3)
            }
        }

        @Test func manyWithAndWithoutAtOnce() async throws {
            try await withCore { core, server in
                for _ in 0..<5 {
                    let ids = try (0..<100).map { i in
                        try core.submit(
                            CoreRequest("GET", server.baseURL + "/hello").with {
                                if i % 3 == 0 { $0.flags = .publicOnly }
                            })
                    }
                    for (i, result) in await core.results(of: ids).enumerated() {
                        #expect(result.fault == (i % 3 == 0 ? forbidden : .ok))
                    }
                }
                #expect(server.requestCount == 5 * 66)
            }
        }
    }
}
