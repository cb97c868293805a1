import FerryTesting
import Foundation
import Testing

extension LoopbackTests {
    @Suite("LoopbackServer: TLS", .timeLimit(.minutes(1)))
    struct LoopbackTLSTests {
        private func connect(_ server: LoopbackServer, trusting file: String? = nil, host: String = "127.0.0.1")
            async throws
            -> TLSClient
        {
            let authority = file ?? server.certificate?.authorityFile ?? ""
            let client = try TLSClient(RawClient(port: server.port), authorityFile: authority, host: host)
            try await client.handshake()
            return client
        }

        @Test(arguments: ["127.0.0.1", "localhost", "::1"])
        func validCertificateIsAccepted(host: String) async throws {
            let server = try LoopbackServer(.init(certificate: ServerCertificate()))
            let client = try await connect(server, host: host)
            #expect(try await client.get("/hello").text == "Hello, ferry")
            #expect(try await client.get("/bytes/1000000").body == LoopbackServer.pattern(0..<1_000_000))
            #expect(try await client.get("/chunked/100000").body == LoopbackServer.pattern(0..<100_000))
            #expect(server.handshakeCount == 1)
            try await server.waitForHandshakes(1)
            #expect(server.baseURL.hasPrefix("https://"))
        }

        @Test(arguments: [
            (ServerCertificate.Kind.expired, 10), (.notYetValid, 9), (.wrongHost, 64), (.untrusted, 20),
            (.selfSigned, 18),
        ])
        func otherCertificatesFailForTheirReason(kind: ServerCertificate.Kind, reason: Int) async throws {
            let server = try LoopbackServer(.init(certificate: ServerCertificate(kind)))
            let error = await #expect(throws: TLSClient.HandshakeError.self) { try await connect(server) }
            #expect(error?.verifyResult == reason)
            #expect(server.requestCount == 0)
            try await server.waitForOpenConnections(atMost: 0)
        }

        @Test func pinIsThatOfTheKey() throws {
            let one = try ServerCertificate(), other = try ServerCertificate()
            #expect(one.publicKeyPin.hasPrefix("sha256//"))
            #expect(one.publicKeyPin.count == 8 + 44)
            #expect(one.publicKeyPin != other.publicKeyPin)
        }

        @Test func authorityFileGoesWithItsCertificate() throws {
            var certificate: ServerCertificate? = try ServerCertificate()
            let file = try #require(certificate?.authorityFile)
            #expect(try String(contentsOfFile: file, encoding: .utf8) == certificate?.authority)
            certificate = nil
            #expect(!FileManager.default.fileExists(atPath: file))
            #expect(!FileManager.default.fileExists(atPath: (file as NSString).deletingLastPathComponent))
        }

        @Test func uploadsAndEchoesPassThroughTLS() async throws {
            let server = try LoopbackServer(.init(certificate: ServerCertificate()))
            let client = try await connect(server)
            let body = LoopbackServer.pattern(0..<200_000)
            let head = "POST /echo/body HTTP/1.1\r\nContent-Length: \(body.count)\r\n\r\n"
            // Less than the buffers between hold, because libssl does not read and write one connection at once.
            try await client.send(Array(head.utf8) + body)
            #expect(try await client.readResponse().body == body)
        }

        @Test func stalledHandshakeAnswersNothing() async throws {
            let server = try LoopbackServer(.init(certificate: ServerCertificate()))
            server.script(connection: 1, [.stallHandshake])
            let client = try RawClient(port: server.port)
            try await client.send([0x16, 0x03, 0x01, 0x00, 0x05])
            try await server.waitForReceivedBytes(5)
            #expect(server.openConnectionCount == 1)
            #expect(try await connect(server).get("/hello").status == 200, "the second connection is served")
        }

        @Test func closedHandshakeFails() async throws {
            let server = try LoopbackServer(.init(certificate: ServerCertificate()))
            server.script([.closeHandshake])
            await #expect(throws: TLSClient.HandshakeError.self) { try await connect(server) }
            #expect(server.handshakeCount == 0)
        }

        @Test func plainSpeaksHTTPOnTheTLSPort() async throws {
            let server = try LoopbackServer(.init(certificate: ServerCertificate()))
            server.script(connection: 1, [.plain, .expectBytes(1), .send("HTTP/1.1 400 Bad Request\r\n\r\n"), .close])
            await #expect(throws: TLSClient.HandshakeError.self) { try await connect(server) }
            server.script(connection: 2, [.plain, .serve])
            #expect(try await RawClient(port: server.port).get("/hello").status == 200)
        }

        @Test func startTLSComesAfterPlainSteps() async throws {
            let server = try LoopbackServer(.init(certificate: ServerCertificate()))
            server.script([.expectHead, .send("HTTP/1.1 200 Connected\r\n\r\n"), .startTLS, .serve])
            let raw = try RawClient(port: server.port)
            let tunnel = try await raw.exchange("CONNECT t:443 HTTP/1.1\r\n\r\n", toHead: true)
            #expect(tunnel.statusLine == "HTTP/1.1 200 Connected")
            let client = try TLSClient(raw, authorityFile: server.certificate?.authorityFile ?? "", host: "127.0.0.1")
            try await client.handshake()
            #expect(try await client.get("/hello").text == "Hello, ferry")
            #expect(server.requests.map(\.method) == ["CONNECT", "GET"])
        }

        @Test func closeSaysGoodbyeAndDropDoesNot() async throws {
            let server = try LoopbackServer(.init(certificate: ServerCertificate()))
            server.script(path: "/close", [.send("HTTP/1.1 200 OK\r\n\r\nabc"), .close])
            server.script(path: "/drop", [.send("HTTP/1.1 200 OK\r\n\r\nabc"), .drop])
            let polite = try await connect(server)
            #expect(try await polite.get("/close").text == "abc")
            #expect(polite.sawGoodbye)
            let abrupt = try await connect(server)
            await #expect(throws: SocketError.self) { _ = try await abrupt.get("/drop") }
            #expect(!abrupt.sawGoodbye)
        }

        @Test(
            arguments: [
                (["h2", "http/1.1"], ["http/1.1"], "http/1.1"), (["http/1.1", "h2"], ["h2", "http/1.1"], "h2"),
                (["h2"], ["http/1.1"], nil), ([], ["h2"], nil),
            ] as [([String], [String], String?)])
        func applicationProtocolIsAgreedOn(offered: [String], spoken: [String], agreed: String?) async throws {
            var options = try LoopbackServer.Options(certificate: ServerCertificate())
            options.applicationProtocols = spoken
            let server = try LoopbackServer(options)
            let client = try TLSClient(
                RawClient(port: server.port), authorityFile: server.certificate?.authorityFile ?? "",
                host: "localhost", offering: offered)
            try await client.handshake()
            #expect(client.agreedProtocol == agreed)
        }

        @Test func garbageInsteadOfAHelloIsClosed() async throws {
            let server = try LoopbackServer(.init(certificate: ServerCertificate()))
            let client = try RawClient(port: server.port)
            try await client.send("GET / HTTP/1.1\r\n\r\n")
            _ = try? await client.receiveAll()
            try await server.waitForOpenConnections(atMost: 0)
            #expect(server.handshakeCount == 0)
        }
    }
}
