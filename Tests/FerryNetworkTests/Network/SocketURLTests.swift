import FerryTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// URLs of Unix sockets, `http+unix://%2Frun%2Fdocker.sock/v1/info`. On both engines.
@Suite(.timeLimit(.minutes(1))) struct SocketURLTests {
    static let engines: [TransferEngine] = [.automatic, .libcurl]

    private func withSocket(
        _ name: String = "A b.sock", certificate: ServerCertificate? = nil,
        _ body: (String, LoopbackServer) async throws -> Void
    ) async throws {
        let folder = try Folder()
        var options = LoopbackServer.Options()
        options.address = folder.file(name)
        options.certificate = certificate
        let server = try LoopbackServer(options)
        try await body("unix://" + Self.escaped(options.address), server)
    }

    private static func escaped(_ path: String) -> String {
        path.utf8.map { $0 == 0x2F ? "%2F" : $0 == 0x20 ? "%20" : String(UnicodeScalar($0)) }.joined()
    }

    @Test("Path and query go to the socket, the host is localhost, the connection is kept", arguments: engines)
    func plain(engine: TransferEngine) async throws {
        try await withSocket { socket, server in
            try await withAgent(engine, { $0.http2 = engine == .libcurl ? .negotiated : .never }) { agent in
                for path in ["/hello", "/hello?a=1#x", "/HELLO"] {
                    let result = await agent.result(Get("HTTP+" + socket + path))
                    #expect(result.error?.code == (path == "/HELLO" ? .invalidStatusCode(404) : nil))
                }
                try await agent.send(Full(path: "http+" + socket + "/hello", headers: ["Host": "docker"]))
                #expect(server.requests.map(\.target) == ["/hello", "/hello?a=1", "/HELLO", "/hello"])
                #expect(
                    server.requests.map { $0.headers["Host"] } == ["localhost", "localhost", "localhost", "docker"])
                if engine == .automatic { #expect(server.connectionCount == 1) }
            }
            try await withAgent(engine, { $0.baseURL = "http+" + socket + "/echo/" }) { agent in
                let reply = try await agent.post("body", body: .string("one"))
                #expect(reply.text == "one")
            }
        }
    }

    @Test("TLS uses the name localhost", arguments: engines)
    func secure(engine: TransferEngine) async throws {
        let certificate = try ServerCertificate()
        try await withSocket(certificate: certificate) { socket, server in
            try await withAgent(engine, { $0.tls.authorityFile = certificate.authorityFile }) { agent in
                for _ in 0..<2 { try await agent.send(Get("https+" + socket + "/hello")) }
                #expect(await agent.result(Get("http+" + socket + "/hello")).error != nil)
            }
        }
    }

    @Test("Sockets and hosts of one agent are kept apart", arguments: engines)
    func several(engine: TransferEngine) async throws {
        let server = try LoopbackServer()
        try await withSocket("a") { first, one in
            try await withSocket("b") { second, two in
                try await withAgent(engine, { $0.keepsCookies = true }) { agent in
                    for (server, name) in [(server, "tcp"), (one, "one"), (two, "two")] {
                        server.handle("/who") { request in
                            LoopbackResponse(
                                headers: ["Set-Cookie": "from=\(name)"], text: name + (request.headers["Cookie"] ?? ""))
                        }
                    }
                    for _ in 0..<3 {
                        let seen1 = try await agent.send(Get("http+" + first + "/who")).text
                        #expect(seen1 == "one")
                        let seen2 = try await agent.send(Get("http+" + second + "/who")).text
                        #expect(seen2 == "two")
                    }
                    let tcp = "http://localhost:\(server.port)/who"
                    let seen3 = try await agent.send(Get(tcp)).text
                    #expect(seen3 == "tcp")
                    let seen4 = try await agent.send(Get(tcp)).text
                    #expect(seen4 == "tcpfrom=tcp")
                    #expect(agent.cookies.all.map(\.value) == ["tcp"])
                    let origins = agent.statistics.origins.keys
                    if engine == .automatic {
                        #expect(origins.count { $0.hasPrefix("http+unix://") } == 2, "\(origins)")
                    }
                }
            }
        }
    }

    @Test("Without a server the error names the path", arguments: engines)
    func nobody(engine: TransferEngine) async throws {
        let folder = try Folder()
        let (file, closed) = (folder.file("file"), folder.file("closed"))
        #expect(FileManager.default.createFile(atPath: file, contents: Data()))
        #expect(mkdir(closed, 0) == 0)
        defer { chmod(closed, 0o700) }
        let long = "/" + String(repeating: "s", count: 107)
        var cases = [
            (folder.file("none"), RequestError.Code.connect(.failed)), (file, .connect(.refused)),
            (folder.file("file") + "/x", .connect(.failed)), (long, .connect(.failed)),
        ]
        // Root may open anything.
        if geteuid() != 0 { cases.append((closed + "/s", .connect(.failed))) }
        try await withAgent(engine) { agent in
            for (path, code) in cases {
                let error = await agent.result(Get("http+unix://" + Self.escaped(path) + "/hello")).error
                #expect(error?.code == code && error?.description.contains(path) == true, "\(path): \(error as Any)")
                #expect(error?.mayHaveBeenProcessed == false)
            }
        }
    }

    @Test(
        "An invalid path is an invalid URL",
        arguments: [
            "http+unix://", "http+unix:///run/a.sock", "http+unix://a:80/", "http+unix://u@a/", "http+unix://%00/",
            "http+unix://%2Fa%00b/", "http+unix://%2/", "http+unix://%zz/", "http+unix://a b/", "http+unix://[a]/",
        ])
    func broken(url: String) async throws {
        try await withAgent(.automatic) { agent in
            #expect(await agent.result(Get(url)).error?.code == .invalidURL)
        }
    }

    @Test("No redirect leads to a socket, except to the same one", arguments: engines)
    func redirects(engine: TransferEngine) async throws {
        let server = try LoopbackServer()
        try await withSocket("a") { first, one in
            try await withSocket("b") { second, two in
                try await withAgent(engine) { agent in
                    func lead(_ from: LoopbackServer, to location: String) {
                        from.handle("/go") { _ in LoopbackResponse(status: 302, headers: ["Location": location]) }
                    }
                    func code(_ url: String) async -> RequestError.Code? {
                        await agent.result(Get(url + "/go")).error?.code
                    }
                    for location in ["http+" + first + "/hello", "HTTPS+" + first + "/hello"] {
                        lead(server, to: location)
                        #expect(await code(server.baseURL) == .redirectForbidden(.scheme))
                        lead(two, to: location)
                        #expect(await code("http+" + second) == .redirectForbidden(.scheme))
                    }
                    for location in ["//a.sock/hello", "//localhost/hello"] {
                        lead(one, to: location)
                        #expect(await code("http+" + first) == .redirectForbidden(.invalidLocation))
                    }
                    #expect(one.requestCount == 2)
                    for location in ["/hello", "hello?x=1", "http+" + first + "/hello", "http://LOCALHOST:80/hello#a"] {
                        lead(one, to: location)
                        let seen5 = try await agent.send(Get("http+" + first + "/go")).redirects.count
                        #expect(seen5 == 1)
                    }
                    // And from there to a host, without the secrets.
                    lead(one, to: server.baseURL + "/hello")
                    try await agent.send(Full(path: "http+" + first + "/go", headers: ["Authorization": "Bearer a"]))
                    #expect(server.requests.last?.headers["Authorization"] == nil)
                }
            }
        }
    }

    @Test("A socket is not a public address, and no proxy is used for it", arguments: engines)
    func policies(engine: TransferEngine) async throws {
        try await withSocket { socket, server in
            try await withAgent(engine, { $0.addressPolicy = .publicOnly }) { agent in
                #expect(await agent.result(Get("http+" + socket + "/hello")).error?.code == .addressForbidden)
            }
            try await withAgent(engine, { $0.proxy = .http("127.0.0.1", port: 1) }) { agent in
                let seen6 = try await agent.send(Get("http+" + socket + "/hello")).status
                #expect(seen6 == 200)
            }
            // The URL is more specific.
            try await withAgent(engine, { $0.unixSocket = "/nowhere" }) { agent in
                let seen7 = try await agent.send(Get("http+" + socket + "/hello")).status
                #expect(seen7 == 200)
                #expect(server.requestCount == 2)
            }
        }
    }

    @Test func connectionsAreOpenedAhead() async throws {
        try await withSocket { socket, server in
            try await withAgent(.automatic) { agent in
                let seen8 = try await agent.connect(to: "http+" + socket, count: 2)
                #expect(seen8 == 2)
                let seen9 = try await agent.send(Get("http+" + socket + "/hello")).isReusedConnection
                #expect(seen9)
                #expect(server.connectionCount == 2)
            }
        }
    }

    @Test func curlIsToldTheSocket() async throws {
        try await withAgent(.automatic) { agent in
            let text = try agent.curlCommand(for: Get("http+unix://%2Frun%2FA.sock/v1?x=1"), redacted: false)
            #expect(text.contains("--unix-socket /run/A.sock") && text.contains("http://localhost/v1?x=1"), "\(text)")
        }
    }

    @Test("Sockets whose paths differ in case are different origins")
    func spelling() throws {
        let texts = try ["%2FA", "%2fA", "%2f%41", "%2Fa"].map {
            try URLJoiner.join("http+unix://\($0)/x", to: nil).url
        }
        #expect(texts[0] == texts[1] && texts[1] == texts[2] && texts[2] != texts[3])
        #expect(HostKey(url: texts[0]) == HostKey(url: texts[2]) && HostKey(url: texts[0]) != HostKey(url: texts[3]))
    }
}
