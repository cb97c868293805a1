import CCoreParts
import CFerry
import FerryTesting
import Testing

extension CoreTests {
    @Suite struct TLS {
        /// A GET of /hello from a server with this kind of certificate.
        private func get(
            _ kind: ServerCertificate.Kind, _ change: (inout CoreLoop.Options, ServerCertificate) -> Void = { _, _ in },
            host: String = "127.0.0.1", _ check: (CoreResult, LoopbackServer) throws -> Void
        ) async throws {
            let certificate = try ServerCertificate(kind)
            var options = CoreLoop.Options()
            options.caFile = certificate.authorityFile
            change(&options, certificate)
            try await withCore(options, server: .init(certificate: certificate), probes: false) { core, server in
                let result = try await core.get("https://\(host):\(server.port)/hello")
                try check(result, server)
                if result.code != FERRY_OK {
                    #expect(server.requestCount == 0 && result.attempts == 0 && !result.isProcessed)
                    // A file that cannot be read is detected before the handshake.
                    let isEarly = result.detail == FERRY_D_TLS_CONFIGURATION
                    #expect(result.phase == (isEarly ? FERRY_PHASE_CONNECT : FERRY_PHASE_TLS))
                    #expect(result.message != nil)
                }
            }
        }

        @Test(arguments: ["127.0.0.1", "localhost"])
        func aValidCertificate(host: String) async throws {
            try await get(.valid, host: host) { result, server in
                #expect(result.fault == .ok && result.text == "Hello, ferry")
                #expect(result.metrics.tls >= result.metrics.connect && result.metrics.connect > 0)
                #expect(server.handshakeCount == 1)
            }
        }

        /// libcurl 8 closes TLS connections in the background, with a handle of its own, and waits for the server to
        /// close too.
        @Test func aServerThatDoesNotCloseIsNotWaitedFor() async throws {
            try await withSecureCore(probes: false) { core, server in
                server.script(path: "/close", [.expectHead, .send(answer("bye", "Connection: close")), .keepOpen])
                for _ in 0..<3 {
                    let result = try await core.get(server.baseURL + "/close")
                    #expect(result.fault == .ok && result.text == "bye")
                    await core.untilStatistics { $0.sockets == 0 }
                }
            }
        }

        @Test(arguments: [
            (ServerCertificate.Kind.expired, FERRY_D_TLS_EXPIRED), (.notYetValid, FERRY_D_TLS_EXPIRED),
            (.wrongHost, FERRY_D_TLS_HOSTNAME), (.untrusted, FERRY_D_TLS_UNTRUSTED),
            (.selfSigned, FERRY_D_TLS_UNTRUSTED),
        ])
        func certificatesThatAreWrong(kind: ServerCertificate.Kind, detail: Int) async throws {
            try await get(kind) { result, _ in #expect(result.fault == .tls(detail)) }
        }

        @Test func theSystemsAuthoritiesDoNotKnowOurs() async throws {
            try await get(.valid, { options, _ in options.caFile = nil }) { result, _ in
                #expect(result.fault == .tls(FERRY_D_TLS_UNTRUSTED))
            }
        }

        @Test func aMissingAuthorityFileIsAConfigurationFault() async throws {
            try await get(.valid, { options, _ in options.caFile = "/nowhere/ca.pem" }) { result, _ in
                #expect(result.fault == .tls(FERRY_D_TLS_CONFIGURATION))
            }
        }

        @Test(arguments: ServerCertificate.Kind.allCases)
        func insecureTakesEverything(kind: ServerCertificate.Kind) async throws {
            try await get(kind, { options, _ in options.isInsecure = true }) { result, _ in #expect(result.fault == .ok)
            }
        }

        @Test(arguments: [false, true])
        func pins(isInsecure: Bool) async throws {
            let wrong = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
            try await get(
                .valid,
                { options, certificate in
                    options.isInsecure = isInsecure
                    options.pins = wrong + ";" + certificate.publicKeyPin
                }
            ) { result, _ in #expect(result.fault == .ok) }
            try await get(
                .valid,
                { options, _ in
                    options.isInsecure = isInsecure
                    options.pins = wrong
                }
            ) { result, _ in #expect(result.fault == .tls(FERRY_D_TLS_PIN_MISMATCH)) }
        }

        @Test func plainHTTPOnAPortThatSpeaksTLSAndTheOtherWayRound() async throws {
            try await withCore { core, server in
                let result = try await core.get("https://127.0.0.1:\(server.port)/hello")
                #expect(result.fault == .tls(FERRY_D_TLS_HANDSHAKE))
                #expect(result.phase == FERRY_PHASE_TLS && !result.isProcessed)
            }
        }

        @Test func aCloseInTheHandshake() async throws {
            let certificate = try ServerCertificate()
            var options = CoreLoop.Options()
            options.caFile = certificate.authorityFile
            try await withCore(options, server: .init(certificate: certificate), probes: false) { core, server in
                server.script(connection: 1, [.closeHandshake])
                let result = try await core.get(server.baseURL + "/hello")
                #expect(result.fault == .tls(FERRY_D_TLS_HANDSHAKE))
                let next = try await core.get(server.baseURL + "/hello")
                #expect(next.fault == .ok)
                let reused = try await core.get(server.baseURL + "/hello")
                #expect(reused.isReused && reused.metrics.tls == 0 && server.handshakeCount == 1)
            }
        }

        @Test func bodiesUnderTLS() async throws {
            let certificate = try ServerCertificate()
            var options = CoreLoop.Options()
            options.caFile = certificate.authorityFile
            try await withCore(options, server: .init(certificate: certificate)) { core, server in
                for size in [0, 1, 100_000, 3_000_000] {
                    let down = try await core.get(server.baseURL + "/bytes/\(size)")
                    #expect(down.body ?? [] == LoopbackServer.pattern(0..<size))
                    let up = try await core.run(
                        CoreRequest("POST", server.baseURL + "/upload").with { $0.body = .bytes(down.body ?? []) })
                    #expect(up.fault == .ok && server.requests.last?.bodyLength == UInt64(size))
                }
                // The end of a body without a length must be a close_notify; otherwise anybody could truncate it.
                server.script(path: "/cut", [.send("HTTP/1.1 200 OK\r\n\r\nabc"), .drop])
                server.script(path: "/whole", [.send("HTTP/1.1 200 OK\r\n\r\nabc"), .close])
                let whole = try await core.get(server.baseURL + "/whole")
                #expect(whole.fault == .ok && whole.text == "abc")
                let cut = try await core.get(server.baseURL + "/cut")
                #expect(cut.fault == CoreFault(FERRY_E_INCOMPLETE_BODY))
            }
        }

        /// A loop with these options, and a server that requires a client certificate.
        private func demanded(
            _ versions: ClosedRange<Int>, _ change: (inout CoreLoop.Options, ServerCertificate) -> Void,
            _ check: (CoreResult, LoopbackServer) -> Void
        ) async throws {
            let certificate = try ServerCertificate()
            var options = CoreLoop.Options()
            options.caFile = certificate.authorityFile
            change(&options, certificate)
            var serverOptions = LoopbackServer.Options(certificate: certificate)
            serverOptions.demandsClientCertificate = true
            serverOptions.tlsVersions = versions
            try await withCore(options, server: serverOptions, probes: false) { core, server in
                check(try await core.get(server.baseURL + "/hello"), server)
            }
        }

        @Test(arguments: [12...12, 13...13])
        func aClientsCertificate(versions: ClosedRange<Int>) async throws {
            try await demanded(
                versions,
                { options, certificate in
                    options.clientCertificate = certificate.clientCertificateFile
                    options.clientKey = certificate.clientKeyFile
                }
            ) { result, _ in #expect(result.fault == .ok && result.text == "Hello, ferry") }
            try await demanded(
                versions,
                { options, certificate in
                    options.clientCertificate = certificate.clientCertificateFile
                    options.clientKey = certificate.lockedClientKeyFile
                    options.clientKeyPassword = "ferry"
                }
            ) { result, _ in #expect(result.fault == .ok) }
        }

        @Test(arguments: [12...12, 13...13])
        func aCertificateThatIsDemandedAndNotThere(versions: ClosedRange<Int>) async throws {
            try await demanded(versions, { _, _ in }) { result, server in
                #expect(result.fault == .tls(FERRY_D_TLS_HANDSHAKE), "\(result.fault) \(result.message ?? "")")
                #expect(result.phase == FERRY_PHASE_TLS && !result.isProcessed && server.requestCount == 0)
            }
            // From an authority that the server does not know.
            let other = try ServerCertificate()
            try await demanded(
                versions,
                { options, _ in
                    options.clientCertificate = other.clientCertificateFile
                    options.clientKey = other.clientKeyFile
                }
            ) { result, server in
                #expect(result.fault == .tls(FERRY_D_TLS_HANDSHAKE), "\(result.fault) \(result.message ?? "")")
                #expect(result.phase == FERRY_PHASE_TLS && !result.isProcessed && server.requestCount == 0)
            }
        }

        @Test func aClientsFilesThatCannotBeUsed() async throws {
            let other = try ServerCertificate()
            func expect(_ change: (inout CoreLoop.Options, ServerCertificate) -> Void) async throws {
                try await demanded(12...13, change) { result, server in
                    #expect(result.fault == .tls(FERRY_D_TLS_CONFIGURATION), "\(result.fault) \(result.message ?? "")")
                    #expect(!result.isProcessed && server.requestCount == 0)
                }
            }
            try await expect { options, _ in options.clientCertificate = "/nowhere/client.pem" }
            try await expect { options, certificate in
                options.clientCertificate = certificate.clientCertificateFile  // which contains no key
            }
            try await expect { options, certificate in
                options.clientCertificate = certificate.clientCertificateFile
                options.clientKey = "/nowhere/client.key"
            }
            try await expect { options, certificate in
                options.clientCertificate = certificate.clientCertificateFile
                options.clientKey = certificate.lockedClientKeyFile
                options.clientKeyPassword = "wrong"
            }
            try await expect { options, certificate in
                options.clientCertificate = certificate.clientCertificateFile
                options.clientKey = other.clientKeyFile
            }
        }

        @Test(arguments: [FERRY_TLS_1_2, FERRY_TLS_1_3])
        func theLeastVersion(least: Int) async throws {
            for versions in [12...12, 13...13] {
                let certificate = try ServerCertificate()
                var options = CoreLoop.Options()
                options.caFile = certificate.authorityFile
                options.minimumTLS = least
                var serverOptions = LoopbackServer.Options(certificate: certificate)
                serverOptions.tlsVersions = versions
                try await withCore(options, server: serverOptions, probes: false) { core, server in
                    let result = try await core.get(server.baseURL + "/hello")
                    let isTooOld = least == FERRY_TLS_1_3 && versions == 12...12
                    #expect(result.fault == (isTooOld ? .tls(FERRY_D_TLS_HANDSHAKE) : .ok))
                }
            }
        }

        /// The server asks for another handshake again and again, within the first (RFC 5246, 7.4.1.1). OpenSSL skips
        /// this in one call, as long as more arrives. libcurl has no limit for it.
        @Test(.enabled(if: testedEngine == FERRY_ENGINE_HTTP1)) func aHandshakeThatDoesNotEnd() async throws {
            try await withCore(probes: false) { core, server in
                let record = [0x16, 3, 3, 0x40, 0] + [UInt8](repeating: 0, count: 16_384)
                server.script(connection: 1, [.repeatingBytes(record, times: 64), .serve])
                let result = try await core.get("https://127.0.0.1:\(server.port)/hello")
                #expect(result.fault == .tls(FERRY_D_TLS_HANDSHAKE), "\(result.fault)")
                #expect(result.message == "too many key updates", "\(result.message ?? "")")
            }
        }

        /// KeyUpdate (RFC 8446, 4.6.3) is a message without data: the loop must not spend its time with it.
        @Test(arguments: [0, 30, 20_000]) func keyUpdatesInAResponse(count: Int) async throws {
            try await withSecureCore { core, server in
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
                server.script(path: "/", [.send(head + "he"), .keyUpdates(count), .send("llo"), .serve])
                let result = try await core.get(server.baseURL + "/")
                if count < 1000 || testedEngine == FERRY_ENGINE_LIBCURL {
                    #expect(result.fault == .ok && result.text == "hello", "\(result.fault)")
                } else {
                    #expect(result.fault == CoreFault(FERRY_E_CONNECTION_RESET), "\(result.fault)")
                    #expect(result.message == "too many key updates", "\(result.message ?? "")")
                }
            }
        }

        /// close_notify in the last packet of a response is the server's right (RFC 8446, 6.1).
        @Test func anEndTogetherWithTheResponseIsNotPoison() async throws {
            try await withSecureCore(probes: false) { core, server in
                server.script(path: "/close", [.expectHead, .send(answer("bye", "Connection: close")), .close])
                for _ in 0..<20 {
                    let result = try await core.get(server.baseURL + "/close")
                    #expect(result.fault == .ok && result.text == "bye")
                }
                await core.untilStatistics { $0.sockets == 0 }
                #expect(core.statistics.guarded == 0)
            }
        }

        @Test func loopsOfDifferentTrustShareNothing() async throws {
            let certificate = try ServerCertificate()
            var options = CoreLoop.Options()
            options.isInsecure = true
            try await withCore(options, server: .init(certificate: certificate)) { trusting, server in
                let first = try await trusting.get(server.baseURL + "/hello")
                #expect(first.fault == .ok)
                let strict = try CoreLoop()
                let second = try await strict.get(server.baseURL + "/hello")
                #expect(second.fault == .tls(FERRY_D_TLS_UNTRUSTED))
                await expectCleanStop(strict)
            }
        }
    }
}
