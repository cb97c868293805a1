import Ferry
import FerryTesting
import FoundationEssentials
import Glibc
import Testing

@testable import FerryCommand

/// The effect of each option of `ferry fetch` on the wire.
@Suite(.timeLimit(.minutes(2))) struct FetchOptionTests {
    private func report(_ line: String...) async throws -> FetchReport {
        let plan = try FetchPlan(ParsedArguments(line, of: FetchCommand.allOptions))
        return await withNetworkAgent(configuration: plan.configuration, grace: .zero) { agent in
            await FetchReport(of: plan, by: agent)
        }
    }

    // MARK: Bodies

    @Test func aFileIsTheBody() async throws {
        try await withLoopbackServer { server in
            let file = try TemporaryFile(LoopbackServer.pattern(0..<300_000))
            let report = try await report(server.baseURL + "/upload", "-X", "PUT", "-d", "@" + file.path)
            #expect(report.exitCode == .success)
            let seen = try #require(server.requests.last)
            #expect(seen.method == "PUT" && seen.bodyLength == 300_000)
            #expect(seen.headers["Content-Length"] == "300000" && seen.headers["Transfer-Encoding"] == nil)
        }
    }

    @Test func severalPiecesOfDataAreJoined() async throws {
        try await withLoopbackServer { server in
            let file = try TemporaryFile(Array("b=2".utf8))
            _ = try await report(server.baseURL + "/hello", "-d", "a=1", "-d", "@" + file.path)
            #expect(server.requests.last?.text == "a=1&b=2")
            #expect(server.requests.last?.headers["Content-Type"] == "application/x-www-form-urlencoded")
        }
    }

    @Test func partsOfAFormAreTextAndFiles() async throws {
        try await withLoopbackServer { server in
            let file = try TemporaryFile([0, 1, 0xFF])
            _ = try await report(
                server.baseURL + "/hello", "-F", "a=b;type=c", "-F", "f=@\(file.path)",
                "-F", "g=@\(file.path);type=image/png;filename=x.png")
            let seen = try #require(server.requests.last)
            #expect(seen.headers["Content-Type"]?.hasPrefix("multipart/form-data; boundary=") == true)
            #expect(seen.text.contains("name=\"a\"\r\n\r\nb;type=c\r\n"))
            let own = String(file.path.split(separator: "/").last ?? "")
            #expect(
                seen.text.contains("name=\"f\"; filename=\"\(own)\"\r\nContent-Type: application/octet-stream\r\n"))
            #expect(seen.text.contains("name=\"g\"; filename=\"x.png\"\r\nContent-Type: image/png\r\n"))
            #expect(seen.body.firstRange(of: [0x0D, 0x0A, 0, 1, 0xFF, 0x0D, 0x0A]) != nil)
        }
    }

    // MARK: Credentials

    @Test func digestAnswersTheChallenge() async throws {
        try await withLoopbackServer { server in
            server.handle("/vault") { request in
                if request.headers["Authorization"]?.hasPrefix("Digest username=\"kim\"") == true {
                    return LoopbackResponse(text: "open")
                }
                let challenge = #"Digest realm="r", nonce="n", algorithm=SHA-256, qop="auth""#
                return LoopbackResponse(status: 401, headers: ["WWW-Authenticate": LoopbackHeaders.Value(challenge)])
            }
            let report = try await report(server.baseURL + "/vault", "--digest", "kim:secret")
            #expect(report.response?.text == "open" && report.exitCode == .success)
            #expect(server.requests.first?.headers["Authorization"] == nil)
            #expect(server.requests.allSatisfy { $0.headers["Authorization"]?.contains("secret") != true })
        }
    }

    @Test func aBearerTokenIsSentAtOnce() async throws {
        try await withLoopbackServer { server in
            _ = try await report(server.baseURL + "/hello", "--bearer", "t0k")
            #expect(server.requests.map { $0.headers["Authorization"] } == ["Bearer t0k"])
        }
    }

    // MARK: Limits

    @Test func statusNamesWhatIsAccepted() async throws {
        try await withLoopbackServer { server in
            let named = try await report(server.baseURL + "/status/404", "--status", "200,404")
            #expect(named.exitCode == .success)
            let other = try await report(server.baseURL + "/hello", "--status", "404")
            #expect(other.exitCode == .statusNotAccepted)
        }
    }

    @Test func redirectsAreFollowedAndListed() async throws {
        try await withLoopbackServer { server in
            let report = try await report(server.baseURL + "/redirect/2")
            #expect(report.exitCode == .success && report.response?.redirects.count == 2)
            let object = try #require(decoded(report.json))
            #expect(object.redirects.count == 2 && object.redirects.allSatisfy { $0.hasPrefix(server.baseURL) })
            #expect(object.url == object.redirects.last && object.attempts == 3)
        }
    }

    @Test func redirectsHaveALimitAndZeroFollowsNone() async throws {
        try await withLoopbackServer { server in
            let tooMany = try await report(server.baseURL + "/redirect/3", "--max-redirects", "2")
            #expect(tooMany.fault?.code == "tooManyRedirects" && tooMany.exitCode == .transferFailed)
            let before = server.requestCount
            let none = try await report(server.baseURL + "/redirect/3", "--max-redirects", "0")
            #expect(none.response?.status == 302 && none.exitCode == .statusNotAccepted)
            #expect(server.requestCount == before + 1)
        }
    }

    @Test func retriesAreMadeAndCounted() async throws {
        try await withLoopbackServer { server in
            server.script(path: "/flaky", uses: 2, [.close])
            server.handle("/flaky") { _ in LoopbackResponse(text: "at last") }
            let report = try await report(server.baseURL + "/flaky", "--retries", "2")
            #expect(report.response?.text == "at last")
            #expect(decoded(report.json)?.attempts == 3)
            server.script(path: "/post", uses: 1, [.close])
            let post = try await self.report(server.baseURL + "/post", "--retries", "2", "-d", "x")
            #expect(post.fault?.code == "connectionClosed" && post.fault?.mayHaveBeenProcessed == true)
        }
    }

    @Test func maxBodyBoundsTheBody() async throws {
        try await withLoopbackServer { server in
            let report = try await report(server.baseURL + "/bytes/1001", "--max-body", "1000")
            #expect(report.fault?.code == "responseTooLarge")
            #expect(try await self.report(server.baseURL + "/bytes/1000", "--max-body", "1000").exitCode == .success)
        }
    }

    @Test func timeoutsNameTheirPart() async throws {
        try await withLoopbackServer { server in
            let total = try await report(server.baseURL + "/delay/60000", "--timeout", "0.05")
            #expect(total.fault?.code == "timeout" && total.fault?.phase == "waitingHead")
            let deadline = try await report(server.baseURL + "/delay/60000", "--deadline", "0.05")
            #expect(deadline.fault?.code == "timeout" && deadline.fault?.message.hasPrefix("deadline") == true)
        }
        var full = LoopbackServer.Options()
        full.accepting = .none
        try await withLoopbackServer(full) { server in
            let connect = try await report(server.baseURL, "--connect-timeout", "0.05")
            #expect(connect.fault?.code == "timeout" && connect.fault?.message.hasPrefix("connect") == true)
        }
    }

    // MARK: Proxies and addresses

    @Test func aProxyIsAskedForTheWholeURL() async throws {
        try await withLoopbackServer { proxy in
            let way = ["-x", "http://ann:pw@127.0.0.1:\(proxy.port)"]
            let plan = try FetchPlan(ParsedArguments(["http://site.test/hello"] + way, of: FetchCommand.allOptions))
            let report = await withNetworkAgent(configuration: plan.configuration, grace: .zero) { agent in
                await FetchReport(of: plan, by: agent)
            }
            #expect(report.response?.text == "Hello, ferry")
            #expect(proxy.requests.last?.target == "http://site.test/hello")
            #expect(proxy.requests.last?.headers["Proxy-Authorization"] == "Basic YW5uOnB3")
        }
    }

    @Test func hostsMayBeReachedWithoutTheProxy() async throws {
        try await withLoopbackServer { server in
            let report = try await report(
                server.baseURL + "/hello", "--proxy", "http://127.0.0.1:1", "--no-proxy", "site.test,127.0.0.1")
            #expect(report.response?.text == "Hello, ferry")
            #expect(server.requests.last?.target == "/hello")
        }
    }

    @Test func aHostMayHaveOtherAddresses() async throws {
        try await withLoopbackServer { server in
            let port = server.port
            let report = try await report(
                "http://192.0.2.1:\(port)/hello", "--resolve", "site.test:\(port):127.0.0.2",
                "--resolve", "192.0.2.1:\(port):127.0.0.2,127.0.0.1")
            #expect(report.response?.text == "Hello, ferry")
            #expect(server.requests.last?.headers["Host"] == "192.0.2.1:\(port)")
        }
    }

    @Test func aUnixSocketTakesThePlaceOfAnyHost() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/ferry-socket-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var options = LoopbackServer.Options()
        options.address = folder + "/s"
        try await withLoopbackServer(options) { server in
            let report = try await report("http://docker/hello", "--unix-socket", options.address)
            #expect(report.response?.text == "Hello, ferry")
            #expect(server.requests.last?.headers["Host"] == "docker")
            let escaped = options.address.split(separator: "/").map { "%2F" + $0 }.joined()
            let named = try await self.report("http+unix://\(escaped)/hello")
            #expect(named.response?.text == "Hello, ferry")
            #expect(server.requests.last?.headers["Host"] == "localhost")
            let nobody = try await self.report("http+unix://\(escaped)t/hello").fault
            #expect(nobody?.code == "connect" && nobody?.message.contains(options.address + "t") == true)
            let fault = try await self.report("http://docker/hello", "--unix-socket", folder + "/t").fault
            #expect(fault?.message.contains(folder + "/t") == true, "\(String(describing: fault))")
        }
    }

    /// `ferry bench` and `ferry download` have them, too.
    @Test(arguments: [FetchCommand.allOptions, BenchCommand.allOptions, DownloadCommand.allOptions])
    func addressesAreSelectedAndConnectionsOpenedAhead(options: [CommandOption]) throws {
        func configuration(_ words: String...) throws -> NetworkConfiguration {
            try NetworkConfiguration(ParsedArguments(words, of: options))
        }
        #expect(try configuration().addressSelection == .ordered)
        #expect(try configuration("--address-selection", "round-robin").addressSelection == .roundRobin)
        #expect(try configuration("--address-selection", "least-requests").addressSelection == .leastRequests)
        #expect(try configuration("--connect-ahead", "3").limits.minimumIdlePerHost == 3)
        #expect(throws: UsageError.self) { try configuration("--address-selection", "random") }
        #expect(throws: UsageError.self) { try configuration("--connect-ahead", "-1") }
        #expect(try configuration().tcpKeepAlive == nil)
        #expect(try configuration("--keepalive-time", "30").tcpKeepAlive == .seconds(30))
        #expect(try configuration("--max-streams", "3").limits.maxStreamsPerConnection == 3)
        #expect(throws: UsageError.self) { try configuration("--max-streams", "0") }
        #expect(throws: UsageError.self) { try configuration("--max-streams", "101") }
    }

    @Test func aProxyThatRefusesIsNamed() async throws {
        try await withLoopbackServer { proxy in
            proxy.script([.expectHead, .send("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), .close])
            let report = try await report("https://site.test/", "--proxy", "127.0.0.1:\(proxy.port)")
            #expect(report.fault?.code == "proxy" && report.fault?.message.hasPrefix("refused") == true)
            #expect(proxy.requests.last?.method == "CONNECT" && proxy.requests.last?.target == "site.test:443")
        }
    }

    @Test func publicOnlyNeverReachesTheLoopback() async throws {
        try await withLoopbackServer { server in
            let report = try await report(server.baseURL + "/hello", "--public-only")
            #expect(report.fault?.code == "addressForbidden" && report.fault?.mayHaveBeenProcessed == false)
            #expect(server.connectionCount == 0)
        }
    }

    @Test func compressedIsTheDefaultAndTheLastWordCounts() async throws {
        try await withLoopbackServer { server in
            _ = try await report(server.baseURL + "/hello")
            _ = try await report(server.baseURL + "/hello", "--no-compressed")
            _ = try await report(server.baseURL + "/hello", "--no-compressed", "--compressed")
            #expect(server.requests.map { $0.headers["Accept-Encoding"] } == ["gzip, deflate", nil, "gzip, deflate"])
            #expect(try await report(server.baseURL + "/gzip/5000").response?.bodyLength == 5000)
        }
    }

    @Test func cookiesAreKeptOnRequest() async throws {
        try await withLoopbackServer { server in
            server.handle("/set") { _ in
                LoopbackResponse(status: 302, headers: ["Set-Cookie": "a=1; Path=/", "Location": "/hello"])
            }
            _ = try await report(server.baseURL + "/set")
            #expect(server.requests.last?.headers["Cookie"] == nil)
            _ = try await report(server.baseURL + "/set", "--cookies")
            #expect(server.requests.last?.path == "/hello" && server.requests.last?.headers["Cookie"] == "a=1")
        }
    }

    @Test func http2IsSpokenOnRequest() throws {
        let plain = try FetchPlan(ParsedArguments(["http://h/"], of: FetchCommand.allOptions))
        let asked = try FetchPlan(ParsedArguments(["http://h/", "--http2"], of: FetchCommand.allOptions))
        #expect(plain.configuration.http2 == .never && asked.configuration.http2 == .negotiated)
    }

    // MARK: Trust

    @Test func aServerIsTrustedByItsAuthorityOrByNothing() async throws {
        let certificate = try ServerCertificate()
        try await withLoopbackServer(.init(certificate: certificate)) { server in
            let url = server.baseURL + "/hello"
            let stranger = try await report(url)
            #expect(stranger.fault?.message.hasPrefix("untrusted") == true)
            #expect(try await report(url, "--cacert", certificate.authorityFile).exitCode == .success)
            #expect(try await report(url, "--insecure").exitCode == .success)
            #expect(try await report(url, "-k", "--pin", certificate.publicKeyPin).exitCode == .success)
            let other = try ServerCertificate().publicKeyPin
            #expect(try await report(url, "-k", "--pin", other).fault?.message.hasPrefix("pinMismatch") == true)
        }
    }

    @Test func theClientShowsItsCertificate() async throws {
        let certificate = try ServerCertificate()
        var options = LoopbackServer.Options(certificate: certificate)
        options.demandsClientCertificate = true
        try await withLoopbackServer(options) { server in
            let url = server.baseURL + "/hello"
            let trust = certificate.authorityFile
            #expect(try await report(url, "--cacert", trust).fault?.code != nil)
            let report = try await report(
                url, "--cacert", trust, "--cert", certificate.clientCertificateFile, "--key",
                certificate.clientKeyFile)
            #expect(report.exitCode == .success)
            // As with `--key <(command)`: read at once, because they are opened for each connection.
            let piped = try [trust, certificate.clientCertificateFile, certificate.clientKeyFile].map { path in
                var ends: [Int32] = [0, 0]
                try #require(pipe(&ends) == 0)
                let bytes = try InputFile.bytes(at: path)
                #expect(write(ends[1], bytes, bytes.count) == bytes.count)
                close(ends[1])
                return ends[0]
            }
            let again = try await self.report(
                url, "--cacert", "/dev/fd/\(piped[0])", "--cert", "/dev/fd/\(piped[1])", "--key", "/dev/fd/\(piped[2])")
            #expect(again.exitCode == .success)
            for end in piped { close(end) }
        }
    }

    @Test func theOldestVersionOfTLSIsSet() async throws {
        var options = LoopbackServer.Options(certificate: try ServerCertificate())
        options.tlsVersions = 12...12
        try await withLoopbackServer(options) { server in
            let url = server.baseURL + "/hello"
            let old = try await report(url, "-k", "--tls-min", "1.2")
            #expect(old.exitCode == .success)
            #expect(try await report(url, "-k", "--tls-min", "1.3").fault?.code == "tls")
        }
    }
}

/// The part of a report that these tests check.
private struct ReportObject: Decodable {
    var url: String
    var redirects: [String]
    var attempts: Int
}

private func decoded(_ json: String) -> ReportObject? {
    try? JSONDecoder().decode(ReportObject.self, from: Data(json.utf8))
}
