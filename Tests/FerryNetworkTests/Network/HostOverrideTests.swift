import FerryTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Connections that do not go to the host of the URL: to configured addresses, or to a Unix socket. On both engines.
@Suite(.timeLimit(.minutes(1))) struct HostOverrideTests {
    static let engines: [TransferEngine] = [.automatic, .libcurl]

    // MARK: Addresses

    @Test("The configured addresses are used, and the name is still the host", arguments: engines)
    func addresses(engine: TransferEngine) async throws {
        let server = try LoopbackServer()
        let key = "Api.Example.com:\(server.port)"
        try await withAgent(engine) {
            $0.hostOverrides = [key: ["127.0.0.1"]]
        } _: { agent in
            for _ in 0..<3 {
                let response = try await agent.result(.probe("http://api.example.COM:\(server.port)/hello")).get()
                #expect(response.text == "Hello, ferry" && response.metrics.peer?.address == "127.0.0.1")
            }
            #expect(server.requests.allSatisfy { $0.headers["Host"] == "api.example.com:\(server.port)" })
            #expect(server.connectionCount == 1)
        }
    }

    @Test("The next address is tried, an address can be overridden, and other ports are looked up", arguments: engines)
    func severalAddresses(engine: TransferEngine) async throws {
        let server = try LoopbackServer()
        try await withAgent(engine) {
            $0.hostOverrides = [
                "a.test:\(server.port)": ["127.0.0.2", "127.0.0.1"], "192.0.2.1:\(server.port)": ["127.0.0.1"],
                "x.invalid:1": ["127.0.0.1"],
            ]
        } _: { agent in
            for host in ["a.test", "192.0.2.1"] {
                let response = try await agent.result(.probe("http://\(host):\(server.port)/hello")).get()
                #expect(response.metrics.peer?.address == "127.0.0.1")
            }
            #expect(await agent.result(.probe("http://x.invalid:2/")).error?.code == .dns(.notFound))
        }
    }

    @Test("The certificate must have the name", arguments: engines)
    func certificate(engine: TransferEngine) async throws {
        let certificate = try ServerCertificate()
        let server = try LoopbackServer(.init(certificate: certificate))
        try await withAgent(engine) {
            $0.tls.authorityFile = certificate.authorityFile
            $0.hostOverrides = [
                "localhost:\(server.port)": ["127.0.0.1"], "other.example.com:\(server.port)": ["127.0.0.1"],
            ]
        } _: { agent in
            let good = await agent.result(.probe("https://localhost:\(server.port)/hello"))
            #expect(throws: Never.self) { try good.get() }
            let bad = await agent.result(.probe("https://other.example.com:\(server.port)/hello"))
            #expect(bad.error?.code == .tls(.hostname))
        }
    }

    @Test("The address policy applies", arguments: engines)
    func policy(engine: TransferEngine) async throws {
        let server = try LoopbackServer()
        try await withAgent(engine) {
            $0.hostOverrides = ["public.example.com:\(server.port)": ["127.0.0.1"]]
            $0.addressPolicy = .publicOnly
        } _: { agent in
            let result = await agent.result(.probe("http://public.example.com:\(server.port)/hello"))
            #expect(result.error?.code == .addressForbidden && server.connectionCount == 0)
        }
    }

    @Test(
        "An invalid host, port or address fails every run and is named",
        arguments: [
            ("a.test", ["127.0.0.1"], "a.test"), ("a.test:0", ["127.0.0.1"], "a.test:0"),
            ("a.test:65536", ["127.0.0.1"], "a.test:65536"), (":80", ["127.0.0.1"], ":80"),
            ("[::1]:80", ["127.0.0.1"], "[::1]:80"), ("::1:80", ["127.0.0.1"], "::1:80"),
            ("http://a.test:80", ["127.0.0.1"], "http://a.test:80"), ("a.test:+80", ["127.0.0.1"], "a.test:+80"),
            ("a b:80", ["127.0.0.1"], "a b:80"), ("bücher.test:80", ["127.0.0.1"], "bücher.test:80"),
            ("a.test:80", [], "a.test:80"), ("a.test:80", ["localhost"], "localhost"),
            ("a.test:80", ["127.0.0.1,127.0.0.2"], "127.0.0.1,127.0.0.2"), ("a.test:80", ["fe80::1%lo"], "fe80::1%lo"),
            ("a.test:80", [String](repeating: "127.0.0.1", count: 17), "17"),
        ])
    func broken(key: String, addresses: [String], named: String) async throws {
        let server = try LoopbackServer()
        try await withAgent(.automatic) {
            $0.hostOverrides = [key: addresses]
        } _: { agent in
            let error = try #require(await agent.result(.probe(server.baseURL + "/hello")).error)
            #expect(error.code == .invalidRequest && error.description.contains(named), "\(error)")
        }
    }

    // MARK: Unix sockets

    private func withSocket(_ body: (String, LoopbackServer) async throws -> Void) async throws {
        let folder = try Folder()
        let path = folder.file("s")
        var options = LoopbackServer.Options()
        options.address = path
        try await body(path, try LoopbackServer(options))
    }

    @Test("Every connection goes to the socket and is reused", arguments: engines)
    func everyConnection(engine: TransferEngine) async throws {
        try await withSocket { path, server in
            try await withAgent(engine) {
                $0.unixSocket = path
                $0.http2 = .negotiated
            } _: { agent in
                for url in ["http://localhost/hello", "http://docker/hello", "http://192.0.2.1:81/hello"] {
                    for _ in 0..<2 {
                        let response = try await agent.result(.probe(url)).get()
                        #expect(response.text == "Hello, ferry" && response.metrics.peer == nil)
                    }
                }
                #expect(
                    server.requests.map { $0.headers["Host"] } == [
                        "localhost", "localhost", "docker", "docker", "192.0.2.1:81", "192.0.2.1:81",
                    ])
                if engine == .automatic { #expect(server.connectionCount == 3) }
            }
        }
    }

    @Test("Bodies are sent in both directions, many at once", arguments: engines)
    func manyAtOnce(engine: TransferEngine) async throws {
        try await withSocket { path, server in
            try await withAgent(engine) {
                $0.unixSocket = path
            } _: { agent in
                let body = LoopbackServer.pattern(0..<100_000)
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for _ in 0..<200 {
                        group.addTask {
                            let call = HTTPRequest(.post, "http://localhost/echo/body", body: .bytes(body))
                            return try await agent.result(call, .awaited).get().response.withBytes {
                                $0.elementsEqual(body)
                            }
                        }
                    }
                    for try await isSame in group { #expect(isSame) }
                }
            }
        }
    }

    @Test("TLS uses the name of the URL", arguments: engines)
    func secureSocket(engine: TransferEngine) async throws {
        let folder = try Folder()
        let certificate = try ServerCertificate()
        var options = LoopbackServer.Options()
        options.address = folder.file("s")
        options.certificate = certificate
        let server = try LoopbackServer(options)
        try await withAgent(engine) {
            $0.unixSocket = options.address
            $0.tls.authorityFile = certificate.authorityFile
        } _: { agent in
            #expect(await agent.result(.probe("https://localhost/hello")).error == nil)
            #expect(await agent.result(.probe("https://b.example.com/hello")).error?.code == .tls(.hostname))
            #expect(server.requestCount == 1)
        }
    }

    @Test("An error names the path at which nobody listens", arguments: engines)
    func nobodyListens(engine: TransferEngine) async throws {
        let folder = try Folder()
        let file = folder.file("file")
        #expect(FileManager.default.createFile(atPath: file, contents: Data()))
        for (path, code) in [
            (folder.file("none"), RequestError.Code.connect(.failed)), (file, .connect(.refused)),
        ] {
            try await withAgent(engine) {
                $0.unixSocket = path
            } _: { agent in
                let error = try #require(await agent.result(.probe("http://localhost/hello")).error)
                #expect(error.code == code && error.description.contains(path), "\(error)")
                #expect(!error.mayHaveBeenProcessed)
            }
        }
    }

    @Test(
        "An invalid path fails every run", arguments: ["", "/" + String(repeating: "s", count: 107), "/a\0b"])
    func impossiblePath(path: String) async throws {
        try await withAgent(.automatic) {
            $0.unixSocket = path
        } _: { agent in
            let error = try #require(await agent.result(.probe("http://localhost/hello")).error)
            #expect(error.code == .invalidRequest && error.description.contains("unixSocket"), "\(error)")
        }
    }

    @Test("A socket is not a public address, and no proxy is used for it", arguments: engines)
    func refused(engine: TransferEngine) async throws {
        try await withSocket { path, server in
            try await withAgent(engine) {
                $0.unixSocket = path
            } _: { agent in
                var probe = HTTPRequest.probe("http://localhost/hello")
                probe.addressPolicy = .publicOnly
                #expect(await agent.result(probe).error?.code == .addressForbidden)
                #expect(server.connectionCount == 0)
            }
            try await withAgent(engine) {
                $0.unixSocket = path
                $0.proxy = .http("127.0.0.1", port: 1)
            } _: { agent in
                let error = await agent.result(.probe("http://localhost/hello")).error
                #expect(error?.code == .invalidRequest && server.connectionCount == 0)
            }
        }
    }

    /// Connects to Unix sockets do not wait in the system: a full backlog is reported at once.
    @Test("A busy server is waited for, up to the connect timeout")
    func fullBacklog() async throws {
        let folder = try Folder()
        let path = folder.file("s")
        let listener = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        #expect(bound == 0 && listen(listener, 0) == 0)
        try await withAgent(.automatic) {
            $0.unixSocket = path
        } _: { agent in
            // One is accepted, but never gets a response.
            let first = Outcome<Response>(), second = Outcome<Response>()
            agent.start(.probe("http://a/"), completion: first.take)
            #expect(await eventually { agent.statistics.connectionsOpened == 1 })
            var probe = HTTPRequest.probe("http://b/")
            probe.timeouts = Timeouts(connect: .milliseconds(100))
            #expect(await agent.result(probe).error?.code == .timeout(.connect))
            agent.start(.probe("http://c/"), completion: second.take)
            for outcome in [first, second] {
                let connection = accept(listener, nil, nil)
                #expect(connection >= 0)
                close(connection)
                let code = await outcome.code
                #expect(code == .connectionClosed || code == .connectionReset, "\(String(describing: code))")
            }
        }
    }
}
