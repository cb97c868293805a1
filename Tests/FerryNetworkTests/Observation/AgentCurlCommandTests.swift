import Ferry
import FerryMeasurement
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// The command line of a request, run by bash: the server receives what it would have received from Ferry.
@Suite(.timeLimit(.minutes(2))) struct AgentCurlCommandTests {
    private struct Upload: Request {
        var path = "/hello?a=%20b"
        var method = HTTPMethod.post
        var headers: Headers = ["X-Api-Key": "canary", "X-It's": "a \"b\" $HOME"]
        var arguments = Arguments()
        var body: RequestBody?
        var authorization: Authorization?
        var acceptedEncodings: [ContentEncoding]? = []
        var prebuiltRequest: OutgoingRequest?
    }

    private func run(_ command: String, before: String = "") throws -> ChildProcess.End {
        let environment = ["CURL_HOME": "/nonexistent", "HOME": "/nonexistent", "http_proxy": "", "all_proxy": ""]
        return try ChildProcess(["bash", "-c", before + command + " 2>&1"], environment: environment).finish()
    }

    /// Sends the request with Ferry and with curl, and compares what arrived.
    private func compare(_ request: Upload, before: String = "") async throws {
        try await withLoopbackServer { server in
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL, headers: ["X-Common": "1"]))
            let command = try agent.curlCommand(for: request, redacted: false)
            #expect(server.requestCount == 0)
            let end = try run(command, before: before)
            try #require(end.code == 0, "\(command)\n\(end.output)")
            try await agent.send(request)
            await agent.shutdown(grace: .zero)
            let curls = try #require(server.requests.first)
            let own = try #require(server.requests.last)
            #expect(curls.method == own.method && curls.target == own.target && curls.body == own.body)
            #expect(fields(curls) == fields(own), "\(command)")
        }
    }

    private func fields(_ request: LoopbackRequest) -> [String] {
        request.headers.fields.map { "\($0.name.lowercased()): \($0.value)" }.sorted()
    }

    @Test func aFormIsTheSameExchange() async throws {
        try await compare(Upload(arguments: ["b": ["x", "it's"]], authorization: .basic("kim", "canary")))
    }

    @Test func aBodyOfBytesIsTheSameExchange() async throws {
        try await compare(Upload(method: "PURGE", body: .bytes([0, 0x27, 0xFF], contentType: "a/b")))
    }

    @Test func anUploadWithoutABodyIsTheSameExchange() async throws {
        try await compare(Upload())
    }

    @Test func aFileAndARangeOfItAreTheSameExchange() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "ferry it's \(UUID().uuidString)").path
        try Data(LoopbackServer.pattern(0..<5000)).write(to: URL(filePath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        try await compare(Upload(body: .file(file)))
        try await compare(Upload(body: .file(file, range: 100..<2000)))
    }

    @Test func aPrebuiltRequestIsTheSameExchange() async throws {
        try await withLoopbackServer { server in
            let request = Upload(
                prebuiltRequest: OutgoingRequest(method: "PUT", url: server.baseURL + "/hello", body: .string("text")))
            let agent = NetworkAgent(configuration: .init(headers: ["X-Common": "1"]))
            try #require(run(agent.curlCommand(for: request, redacted: false)).code == 0)
            try await agent.send(request)
            await agent.shutdown(grace: .zero)
            let (curls, own) = (try #require(server.requests.first), try #require(server.requests.last))
            #expect(curls.method == "PUT" && curls.text == "text" && fields(curls) == fields(own))
        }
    }

    @Test func partsOfAFormAreItsArgumentsThenItsParts() async throws {
        try await withLoopbackServer { server in
            var form = Multipart()
            form.append("t", "it's; \"text\"")
            form.append(
                "b", [UInt8](arrayLiteral: 0, 1), filename: "b.bin", contentType: "a/b",
                headers: ["Content-Language": "de"])
            let request = Upload(arguments: ["a": 1], body: .multipart(form))
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
            let end = try run(agent.curlCommand(for: request, redacted: false))
            try #require(end.code == 0, "\(end.output)")
            let seen = try #require(server.requests.last)
            let names = [
                "name=\"a\"", "name=\"t\"", "name=\"b\"; filename=\"b.bin\"", "\r\nContent-Language: de\r\n",
            ]
            #expect(names.allSatisfy { seen.text.contains($0) } && seen.text.contains("it's; \"text\""))
            #expect(seen.body.firstRange(of: [0x0A, 0, 1, 0x0D]) != nil)
            await agent.shutdown(grace: .zero)
        }
    }

    @Test func aStreamComesByStandardInput() async throws {
        try await withLoopbackServer { server in
            let body = RequestBody.stream { AsyncStream<[UInt8]> { $0.finish() } }
            let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
            let command = try agent.curlCommand(for: Upload(body: body), redacted: false)
            #expect(try run(command, before: "printf abc | ").code == 0)
            #expect(server.requests.last?.text == "abc" && server.requests.last?.method == "POST")
            await agent.shutdown(grace: .zero)
        }
    }

    @Test func secretsAreLeftOutUnlessAskedFor() async throws {
        var configuration = NetworkConfiguration(baseURL: "https://kim:canary@h.test")
        configuration.proxy = .url("http://u:canary@proxy:3128")
        configuration.headers = ["X-House": "canary"]
        configuration.sensitiveHeaders = ["X-House"]
        let agent = NetworkAgent(configuration: configuration)
        for authorization: Authorization in [.basic("kim", "canary"), .bearer("canary"), .digest("kim", "canary")] {
            let request = Upload(
                path: "/x?token=canary", body: .string("canary"), authorization: authorization)
            let command = try agent.curlCommand(for: request)
            #expect(!command.contains("canary"), "\(command)")
            #expect(try agent.curlCommand(for: request, redacted: false).contains("canary"))
        }
        await agent.shutdown(grace: .zero)
    }

    @Test func proxyTrustBoundsAndDigestAreOptions() async throws {
        var configuration = NetworkConfiguration(timeouts: Timeouts(connect: .seconds(2), total: .milliseconds(1500)))
        configuration.proxy = .socks5("gate", port: 1080, credential: Credential(user: "a b", password: "p@:"))
        configuration.tls = TLSConfiguration(
            authorityFile: "/ca.pem", pinnedKeys: ["sha256//AAAA"],
            clientCertificate: ClientCertificate(certificateFile: "/c.pem", keyFile: "/k.pem"), minimumVersion: .v13)
        configuration.redirectPolicy = .follow(upTo: 3)
        let agent = NetworkAgent(configuration: configuration)
        let request = Upload(path: "https://h.test/x", authorization: .digest("kim", "pw"))
        let command = try agent.curlCommand(for: request, redacted: false)
        for option in [
            "--proxy 'socks5h://a%20b:p%40%3A@gate:1080'", "--cacert /ca.pem", "--cert /c.pem", "--key /k.pem",
            "--pinnedpubkey 'sha256//AAAA'", "--tlsv1.3", "--http1.1", "--digest --user 'kim:pw'",
            "--location --max-redirs 3", "--connect-timeout 2", "--max-time 1.500",
        ] {
            #expect(command.contains(option), "\(option) in \(command)")
        }
        await agent.shutdown(grace: .zero)
    }

    @Test func whatCannotBeSentThrows() async throws {
        let agent = NetworkAgent()
        #expect(throws: RequestError.self) { try agent.curlCommand(for: Upload(path: "no url")) }
        await agent.shutdown(grace: .zero)
    }
}
