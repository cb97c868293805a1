import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Unsuitable versions and client certificates: the rest of R60 to R64.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct TLSConfigurationFaultTests {
    private func expectHandshakeFault(
        _ code: RequestError.Code, sourceLocation: SourceLocation = #_sourceLocation,
        setUp: (inout FaultSetup, ServerCertificate) -> Void
    ) async throws {
        let certificate = try ServerCertificate()
        try await expectFault(
            [], code, .tls, .connect, processed: false, attempts: 1, received: 0, sourceLocation: sourceLocation,
            setUp: {
                $0.server.certificate = certificate
                $0.configuration.tls.authorityFile = certificate.authorityFile
                $0.next = .otherServer
                setUp(&$0, certificate)
            }
        ) {
            #expect($0.requestCount == 0, sourceLocation: sourceLocation)
        }
    }

    @Test("A server that only offers versions of TLS below the minimum is refused")
    func minimumVersion() async throws {
        try await expectHandshakeFault(.tls(.handshake)) { setup, _ in
            setup.server.tlsVersions = 12...12
            setup.configuration.tls.minimumVersion = .v13
        }
    }

    @Test("A version that both support is used", arguments: [12...12, 12...13, 13...13])
    func version(versions: ClosedRange<Int>) async throws {
        let certificate = try ServerCertificate()
        try await expectAnswer(setUp: {
            $0.server.certificate = certificate
            $0.server.tlsVersions = versions
            $0.configuration.tls.authorityFile = certificate.authorityFile
            $0.configuration.tls.minimumVersion = versions.upperBound == 13 ? .v13 : .v12
            $0.path = "/hello"
        }) { response, _ in
            #expect(response.text == "Hello, ferry")
        }
    }

    @Test("A wrong file or password of a client certificate is a configuration error, before anything is sent")
    func unusableClientCertificate() async throws {
        for password in [nil, "canary-wrong"] {
            try await expectHandshakeFault(.tls(.configuration)) { setup, certificate in
                setup.server.demandsClientCertificate = true
                setup.configuration.tls.clientCertificate = ClientCertificate(
                    certificateFile: certificate.clientCertificateFile, keyFile: certificate.lockedClientKeyFile,
                    keyPassword: password)
            }
        }
        try await expectHandshakeFault(.tls(.configuration)) { setup, certificate in
            setup.configuration.tls.clientCertificate = ClientCertificate(certificateFile: "/nowhere/client.pem")
        }
    }

    @Test("A client certificate is accepted by the server that requires one")
    func clientCertificate() async throws {
        let certificate = try ServerCertificate()
        for isLocked in [false, true] {
            try await expectAnswer(setUp: {
                $0.server.certificate = certificate
                $0.server.demandsClientCertificate = true
                $0.configuration.tls.authorityFile = certificate.authorityFile
                $0.configuration.tls.clientCertificate = ClientCertificate(
                    certificateFile: certificate.clientCertificateFile,
                    keyFile: isLocked ? certificate.lockedClientKeyFile : certificate.clientKeyFile,
                    keyPassword: isLocked ? "ferry" : nil)
                $0.path = "/hello"
            }) { response, _ in
                #expect(response.text == "Hello, ferry")
            }
        }
    }

    @Test("A server that requires one refuses requests without it")
    func missingClientCertificate() async throws {
        let certificate = try ServerCertificate()
        for versions in [12...12, 13...13] {
            var options = LoopbackServer.Options(certificate: certificate)
            options.demandsClientCertificate = true
            options.tlsVersions = versions
            try await withFlow(server: options) { server, agent in
                for result in await agent.resultsOfBothWays(.probe("/hello?" + Canary.query)) {
                    // With TLS 1.3 the refusal comes after the client's part of the handshake.
                    let error = try #require(result.error)
                    #expect(.tls ~= error || .connectionReset ~= error || .connectionClosed ~= error, "\(error)")
                }
                #expect(server.requestCount == 0)
            }
        }
    }

    @Test("R60: certificate errors are not retried, whatever the retry policy")
    func notRetried() async throws {
        for kind in [ServerCertificate.Kind.expired, .wrongHost, .untrusted] {
            let certificate = try ServerCertificate(kind)
            try await withFlow(server: LoopbackServer.Options(certificate: certificate)) {
                $0.retryPolicy = .exponential(maxAttempts: 5, baseDelay: .milliseconds(1))
                $0.retryPolicy.retryableErrors.append(.tls)
                $0.retryPolicy.decide = { _ in .retry }
            } _: { server, agent in
                let error = try #require(await agent.result(Get("/hello")).error)
                #expect(.tls ~= error)
                #expect(server.connectionCount == 1)
            }
        }
    }

    @Test("R58: a redirect to an untrusted server ends there")
    func redirectToUntrusted() async throws {
        let certificate = try ServerCertificate()
        let untrusted = try LoopbackServer(.init(certificate: ServerCertificate(.untrusted)))
        try await withFlow(server: LoopbackServer.Options(certificate: certificate)) { server, agent in
            let location = "Location: \(untrusted.baseURL)/hello\r\nContent-Length: 0\r\n"
            server.script(path: "/start", [.send(head("302 X", location)), .serve])
            for result in await agent.resultsOfBothWays(.probe("/start")) {
                #expect(result.error?.code == .tls(.untrusted) && result.error?.redirects.count == 1)
            }
            #expect(untrusted.requestCount == 0)
        }
    }
}
