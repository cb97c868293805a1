import FaultTable
import Ferry
import FerryTesting
import Foundation
import Testing

@testable import FerryTestSupport

/// Untrusted servers: rows R58 to R64.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct TLSFaultTests {
    /// A server with a certificate, and an agent that trusts its authority; nothing of the request may be sent.
    private func expectDistrust(
        _ code: RequestError.Code, _ kind: ServerCertificate.Kind = .valid, _ script: LoopbackScript = [],
        phase: RequestPhase = .tls, sourceLocation: SourceLocation = #_sourceLocation,
        setUp: (inout FaultSetup) -> Void = { _ in }
    ) async throws {
        let certificate = try ServerCertificate(kind)
        try await expectFault(
            script, code, phase, processed: false, attempts: 1, received: 0, sourceLocation: sourceLocation,
            setUp: {
                $0.server.certificate = certificate
                $0.configuration.tls.authorityFile = certificate.authorityFile
                $0.next = .otherServer
                $0.place = .everyConnection
                setUp(&$0)
            }
        ) { #expect($0.requestCount == 0, sourceLocation: sourceLocation) }
    }

    @Test(
        "R58: a certificate outside its period of validity is reported as expired",
        arguments: [ServerCertificate.Kind.expired, .notYetValid])
    func expired(kind: ServerCertificate.Kind) async throws { try await expectDistrust(.tls(.expired), kind) }

    @Test("R59: a certificate of another host is refused")
    func wrongHost() async throws { try await expectDistrust(.tls(.hostname), .wrongHost) }

    @Test("R59: so it is when the host has a name")
    func wrongName() async throws {
        let certificate = try ServerCertificate(.wrongHost)
        let server = try LoopbackServer(.init(certificate: certificate))
        let agent = NetworkAgent(configuration: .init(tls: .init(authorityFile: certificate.authorityFile)))
        let error = await fault { () throws(RequestError) in
            try await agent.send(Get("https://localhost:\(server.port)/hello"))
        }
        #expect(error?.code == .tls(.hostname))
        #expect(server.requestCount == 0)
        await agent.shutdown()
    }

    @Test(
        "R60: an unknown authority is not trusted",
        arguments: [ServerCertificate.Kind.untrusted, .selfSigned])
    func untrusted(kind: ServerCertificate.Kind) async throws { try await expectDistrust(.tls(.untrusted), kind) }

    @Test("R60: the system's authorities do not know ours")
    func systemAuthorities() async throws {
        try await expectDistrust(.tls(.untrusted)) { $0.configuration.tls.authorityFile = nil }
    }

    @Test("R60: an unreadable file of authorities means that no server is trusted")
    func unreadableAuthorities() async throws {
        try await expectDistrust(.tls(.configuration), phase: .connect) {
            $0.configuration.tls.authorityFile = "/nonexistent/authorities.pem"
        }
    }

    @Test("A FIFO in place of a file of authorities or of a certificate does not stop the event loop")
    func pipes() async throws {
        let pipe = NSTemporaryDirectory() + "/ferry-\(UUID().uuidString)"
        try #require(mkfifo(pipe, 0o600) == 0)
        defer { unlink(pipe) }
        try await expectDistrust(.tls(.configuration), phase: .connect) { $0.configuration.tls.authorityFile = pipe }
        try await expectDistrust(.tls(.configuration), phase: .connect) {
            $0.configuration.tls.clientCertificate = ClientCertificate(certificateFile: pipe)
        }
    }

    @Test("R60: without verification all of these succeed")
    func unverified() async throws {
        for kind in ServerCertificate.Kind.allCases {
            let certificate = try ServerCertificate(kind)
            let server = try LoopbackServer(.init(certificate: certificate))
            // The file of authorities is not used.
            for file in [nil, "/nonexistent/authorities.pem"] {
                let tls = TLSConfiguration(authorityFile: file, verification: .none)
                let agent = NetworkAgent(configuration: .init(tls: tls))
                #expect(try await agent.send(Get(server.baseURL + "/hello")).text == "Hello, ferry")
                await agent.shutdown()
            }
        }
    }

    @Test("R61: an unpinned key is refused, with and without verification")
    func pinMismatch() async throws {
        let other = try ServerCertificate().publicKeyPin
        for verification in [TLSConfiguration.Verification.full, .none] {
            try await expectDistrust(.tls(.pinMismatch)) {
                $0.configuration.tls.pinnedKeys = [other, "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
                $0.configuration.tls.verification = verification
            }
        }
    }

    @Test("R61: one of the pinned keys is enough")
    func pinMatch() async throws {
        let certificate = try ServerCertificate()
        let other = try ServerCertificate().publicKeyPin
        try await expectTLSAnswer(certificate) { $0.configuration.tls.pinnedKeys = [other, certificate.publicKeyPin] }
    }

    @Test("R63: a server without TLS fails the handshake")
    func plainText() async throws {
        for text in ["HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "\0\0\0\0\0\0\0\0", "x"] {
            try await expectDistrust(.tls(.handshake), .valid, [.plain, .expectBytes(10), .send(text), .close])
        }
    }

    @Test("R63: so does a close or a reset within it")
    func closedInHandshake() async throws {
        try await expectDistrust(.tls(.handshake), .valid, [.closeHandshake])
        try await expectDistrust(.tls(.handshake), .valid, [.plain, .close])
        try await expectDistrust(.tls(.handshake), .valid, [.plain, .expectBytes(10), .reset])
    }

    @Test("R63: plain http to a TLS server is not HTTP")
    func plainClient() async throws {
        let server = try LoopbackServer(.init(certificate: ServerCertificate()))
        let agent = NetworkAgent()
        let error = await fault { () throws(RequestError) in
            try await agent.send(Get("http://127.0.0.1:\(server.port)/hello"))
        }
        let code = try #require(error).code
        #expect(.malformedResponse ~= code || .connectionClosed ~= code || .connectionReset ~= code, "\(code)")
        await agent.shutdown()
    }

    @Test("R64: a handshake that stalls is a timeout of TLS")
    func stalledHandshake() async throws {
        for timeouts in [Timeouts(connect: .milliseconds(200)), Timeouts(idle: .milliseconds(200))] {
            try await expectDistrust(.timeout(.tls), .valid, [.stallHandshake]) {
                $0.probe.timeouts = timeouts
                $0.ends(after: .milliseconds(200))
            }
        }
    }

    @Test("https works with the trusted authority, and the connection is kept")
    func served() async throws {
        try await expectTLSAnswer(ServerCertificate()) { _ in }
    }

    private func expectTLSAnswer(_ certificate: ServerCertificate, setUp: (inout FaultSetup) -> Void) async throws {
        try await expectAnswer(setUp: {
            $0.server.certificate = certificate
            $0.configuration.tls.authorityFile = certificate.authorityFile
            $0.path = "/bytes/100000"
            setUp(&$0)
        }) { response, server in
            #expect(response.bytes == LoopbackServer.pattern(0..<100_000))
            #expect(response.metrics.tls != nil)
            #expect(server.handshakeCount == 1)
        }
    }
}
