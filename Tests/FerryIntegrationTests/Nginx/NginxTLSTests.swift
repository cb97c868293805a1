import Ferry
import Testing

/// Trust, with nginx and OpenSSL as the peers.
@Suite(.timeLimit(.minutes(2))) struct NginxTLSTests {
    @Test("https works with the trusted authority over one connection, by name and by address")
    func trusted() async throws {
        let nginx = try Nginx.shared
        try await withAgent(.trusting) { agent in
            for host in ["127.0.0.1", "localhost"] {
                let mark = token()
                for round in 0..<5 {
                    let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)", .tls, host: host)))
                    #expect(reply.text == "Hello, ferry")
                    #expect(reply.isReusedConnection == (round > 0))
                }
                let lines = try await nginx.log(mark, count: 5)
                #expect(Set(lines.map(\.connection)).count == 1)
                #expect(lines.allSatisfy { $0.tls == "TLSv1.3" && $0.version == "HTTP/1.1" })
            }
        }
    }

    @Test("a megabyte arrives unchanged over TLS in both directions")
    func large() async throws {
        let nginx = try Nginx.shared
        let bytes = Nginx.pattern(1024 * 1024)
        try await withAgent(.trusting) { agent in
            #expect(try await agent.send(HTTPRequest.to(nginx.url("/1m.bin", .tls))).bytes == bytes)
            let echo = try await agent.send(HTTPRequest.echo(nginx.url("/echo", .tls), .post, body: .bytes(bytes)))
                .value
            #expect(echo.sha256 == sha256(bytes))
        }
    }

    @Test(
        "an invalid certificate is refused, and nginx sees no request",
        arguments: [
            (Nginx.Site.expired, RequestError.Code.tls(.expired)), (.wrongName, .tls(.hostname)),
            (.untrusted, .tls(.untrusted)),
        ])
    func refused(site: Nginx.Site, code: RequestError.Code) async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent(.trusting) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)", site)))
            }
            #expect(error?.code == code)
            #expect(error?.phase == .tls && error?.mayHaveBeenProcessed == false)
            // The next line of nginx's log is that of a later request: an earlier one would precede it.
            try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?after-\(mark)", .tls)))
            let lines = try await nginx.log(mark, count: 1)
            #expect(lines.map(\.target) == ["/hello.txt?after-\(mark)"])
        }
    }

    @Test("the system's authorities do not know ours")
    func unknownAuthority() async throws {
        let nginx = try Nginx.shared
        try await withAgent { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .tls)))
            }
            #expect(error?.code == .tls(.untrusted))
        }
    }

    @Test("one of the pinned keys must be the server's")
    func pins() async throws {
        let nginx = try Nginx.shared
        let certificates = try Certificates.shared
        var configuration = try NetworkConfiguration.trusting
        configuration.tls.pinnedKeys = [certificates.pin(.client), certificates.pin(.valid)]
        try await withAgent(configuration) { agent in
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .tls)))
            #expect(reply.text == "Hello, ferry")
        }
        configuration.tls.pinnedKeys = [certificates.pin(.client)]
        try await withAgent(configuration) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .tls)))
            }
            #expect(error?.code == .tls(.pinMismatch))
        }
    }

    @Test("both versions of TLS work", arguments: [(Nginx.Site.tls12, "TLSv1.2"), (.tls13, "TLSv1.3")])
    func versions(site: Nginx.Site, name: String) async throws {
        let nginx = try Nginx.shared
        let mark = token()
        try await withAgent(.trusting) { agent in
            try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)", site)))
            #expect(try await nginx.log(mark, count: 1).map(\.tls) == [name])
        }
    }

    @Test("a version below the minimum is refused")
    func minimumVersion() async throws {
        let nginx = try Nginx.shared
        var configuration = try NetworkConfiguration.trusting
        configuration.tls.minimumVersion = .v13
        try await withAgent(configuration) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .tls12)))
            }
            #expect(error?.code == .tls(.handshake))
            let reply = try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .tls13)))
            #expect(reply.text == "Hello, ferry")
        }
    }

    @Test("a server that requires a client certificate refuses requests without one")
    func noClientCertificate() async throws {
        let nginx = try Nginx.shared
        try await withAgent(.trusting) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .mutual)))
            }
            #expect(error?.code == .invalidStatusCode(400))
        }
    }

    @Test("a client certificate is accepted, with its key in the clear or encrypted", arguments: [false, true])
    func clientCertificate(isEncrypted: Bool) async throws {
        let nginx = try Nginx.shared
        let certificates = try Certificates.shared
        let mark = token()
        var configuration = try NetworkConfiguration.trusting
        configuration.tls.clientCertificate = ClientCertificate(
            certificateFile: certificates.file(.client),
            keyFile: isEncrypted ? certificates.encryptedClientKey : certificates.key(.client),
            keyPassword: isEncrypted ? "ferry" : nil)
        try await withAgent(configuration) { agent in
            for _ in 0..<2 { try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)", .mutual))) }
            let lines = try await nginx.log(mark, count: 2)
            #expect(lines.allSatisfy { $0.client.contains("CN=ferry-client") })
            #expect(Set(lines.map(\.connection)).count == 1)
        }
    }

    @Test("a client certificate from an unknown authority is refused")
    func strangersCertificate() async throws {
        let nginx = try Nginx.shared
        let certificates = try Certificates.shared
        var configuration = try NetworkConfiguration.trusting
        configuration.tls.clientCertificate = ClientCertificate(
            certificateFile: certificates.file(.stranger), keyFile: certificates.key(.stranger))
        try await withAgent(configuration) { agent in
            let error = await failure { () throws(RequestError) in
                try await agent.send(HTTPRequest.to(nginx.url("/hello.txt", .mutual)))
            }
            #expect(error?.code == .invalidStatusCode(400))
        }
    }

    @Test("a missing key, or one that the password does not open, is a configuration error")
    func unusableKey() async throws {
        let nginx = try Nginx.shared
        let certificates = try Certificates.shared
        let mark = token()
        for (key, password) in [(certificates.encryptedClientKey, "wrong"), ("/nonexistent/client.key", nil)] {
            var configuration = try NetworkConfiguration.trusting
            configuration.tls.clientCertificate = ClientCertificate(
                certificateFile: certificates.file(.client), keyFile: key, keyPassword: password)
            try await withAgent(configuration) { agent in
                let error = await failure { () throws(RequestError) in
                    try await agent.send(HTTPRequest.to(nginx.url("/hello.txt?\(mark)", .mutual)))
                }
                #expect(error?.code == .tls(.configuration))
            }
        }
    }

    @Test("agents with different certificates get different identities")
    func twoClients() async throws {
        let nginx = try Nginx.shared
        let certificates = try Certificates.shared
        var configuration = try NetworkConfiguration.trusting
        configuration.tls.clientCertificate = ClientCertificate(
            certificateFile: certificates.file(.client), keyFile: certificates.key(.client))
        try await withAgent(configuration) { known in
            try await withAgent(.trusting) { unknown in
                try await known.send(HTTPRequest.to(nginx.url("/hello.txt", .mutual)))
                let error = await failure { () throws(RequestError) in
                    try await unknown.send(HTTPRequest.to(nginx.url("/hello.txt", .mutual)))
                }
                #expect(error?.code == .invalidStatusCode(400))
            }
        }
    }
}
