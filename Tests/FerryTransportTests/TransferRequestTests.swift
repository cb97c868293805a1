import FerryTesting
import FerryTransport
import Testing

/// The contents of a request, and how they arrive.
@Suite(.timeLimit(.minutes(1))) struct TransferRequestTests {
    @Test func theRareSettingsCostACopyOneReference() {
        // Eight bytes for all of them, whatever they contain.
        #expect(MemoryLayout<TransferRequest>.size <= 200)
        var request = TransferRequest(url: "http://h/")
        #expect(request.proxy == nil && request.credentials == nil && request.acceptedEncodings == .standard)
        let proxy = TransferProxy(kind: .socks5, address: "p:1", user: "u")
        request.proxy = proxy
        request.acceptedEncodings = .none
        request.credentials = TransferCredentials(user: "u", password: "p", schemes: [.basic, .digest])
        var other = request
        other.proxy = nil
        #expect(request.proxy == proxy && other.proxy == nil && other.credentials == request.credentials)
        other.credentials = nil
        #expect(other.acceptedEncodings == .none && request.credentials?.schemes == [.basic, .digest])
        other.acceptedEncodings = .standard
        #expect(other.proxy == nil && other.acceptedEncodings == .standard)
    }

    private func withServer(_ body: (Collector, LoopbackServer) async throws -> Void) async throws {
        let server = try LoopbackServer()
        defer { server.stop() }
        let collector = try Collector()
        defer { collector.transport.shutdown() }
        try await body(collector, server)
    }

    @Test func aProxyAndItsUser() async throws {
        try await withServer { collector, server in
            let address = "127.0.0.1:\(server.port)"
            let request = TransferRequest(url: "http://far.example/hello").with {
                $0.proxy = TransferProxy(kind: .http, address: address, user: "ann", password: "secret")
            }
            let result = try await collector.run(request)
            #expect(result.succeeded && server.requests.last?.target == "http://far.example/hello")
            #expect(server.requests.last?.headers["Proxy-Authorization"] == "Basic YW5uOnNlY3JldA==")
            let refused = request.with { $0.proxy?.address = "127.0.0.1" }
            await #expect(throws: TransferFailure(.invalidRequest)) { try await collector.run(refused) }
        }
    }

    @Test func credentials() async throws {
        try await withServer { collector, server in
            let request = TransferRequest(url: server.baseURL + "/basic-auth/ann/secret")
            let bare = try await collector.run(request)
            #expect(bare.status == 401)
            let result = try await collector.run(
                request.with {
                    $0.credentials = TransferCredentials(user: "ann", password: "secret", schemes: .basic)
                })
            #expect(result.status == 200 && result.attempts == 1)
        }
    }

    @Test func encodings() async throws {
        try await withServer { collector, server in
            let request = TransferRequest(url: server.baseURL + "/hello")
            for (encodings, sent) in [
                (TransferEncodings.standard, nil), (.none, nil), (.these("br, gzip"), "br, gzip"),
            ] {
                _ = try await collector.run(request.with { $0.acceptedEncodings = encodings })
                #expect(server.requests.last?.headers["Accept-Encoding"] == sent)
            }
        }
    }

    @Test func publicAddressesOnly() async throws {
        try await withServer { collector, server in
            let result = try await collector.run(
                TransferRequest(url: server.baseURL + "/hello").with { $0.publicOnly = true })
            #expect(result.failure?.code == .addressForbidden && result.phase == .connect)
            #expect(result.headBytesSent == 0 && server.connectionCount == 0)
        }
    }

    @Test func theOptionsOfTLSArrive() async throws {
        let certificate = try ServerCertificate()
        var options = LoopbackServer.Options(certificate: certificate)
        options.demandsClientCertificate = true
        let server = try LoopbackServer(options)
        defer { server.stop() }
        var configuration = TransportConfiguration()
        configuration.authorityFile = certificate.authorityFile
        let stranger = try Collector(configuration)
        let refused = try await stranger.get(server.baseURL + "/hello")
        #expect(refused.failure?.detail == .tlsHandshake)
        configuration.clientCertificateFile = certificate.clientCertificateFile
        configuration.clientKeyFile = certificate.lockedClientKeyFile
        configuration.clientKeyPassword = "ferry"
        configuration.minimumTLSVersion = .v13
        let known = try Collector(configuration)
        let result = try await known.get(server.baseURL + "/hello")
        #expect(result.succeeded)
        for collector in [stranger, known] { collector.transport.shutdown() }
    }

    @Test func theNamesOfTheCoresFaultsAreInOrder() {
        #expect(TransferFailure.Detail.proxyAuthRequired.rawValue == 39)
        #expect(TransferFailure.Detail(rawValue: 47) == .http2Other && TransferFailure.Detail(rawValue: 48) == nil)
    }
}
