import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Redirects: rows R33 to R36.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct RedirectFaultTests {
    /// A redirect, once for each of these targets.
    private func pointing(_ locations: String..., status: Int = 302) -> LoopbackScript {
        let fields = locations.map { "Location: \($0)\r\n" }.joined()
        return [.send(head("\(status) Elsewhere", fields + "Content-Length: 0\r\n")), .serve]
    }

    @Test(
        "R33: a redirect to itself is followed as often as allowed, and the error lists the URLs",
        arguments: [0, 1, 5],
        [301, 302, 303, 307, 308])
    func loop(limit: Int, status: Int) async throws {
        try await expectFault(
            pointing("/fault?" + Canary.query, status: status), .tooManyRedirects, .processing, attempts: limit + 1
        ) {
            $0.probe.redirectPolicy = .follow(upTo: limit)
        } after: { server in
            #expect(server.requests.filter { $0.path == "/fault" }.count == limit + 1)
        } error: { error in
            #expect(error.redirects.count == limit)
            #expect(error.redirects.allSatisfy { $0.status == status && $0.target.hasSuffix("/fault?token=***") })
            #expect(error.response?.status == status)
        }
    }

    @Test("R33: by default ten redirects are followed, and the eleventh is not")
    func defaultLimit() async throws {
        try await expectFault(pointing("/fault?" + Canary.query), .tooManyRedirects, .processing, attempts: 11)
        try await expectAnswer(setUp: { $0.path = "/redirect/10" }) { response, _ in
            #expect(response.text == "Hello, ferry")
            #expect(response.redirects.count == 10 && response.attempts == 11)
        }
    }

    @Test("R33: without following, or without a Location, the redirect is the response")
    func notFollowed() async throws {
        try await expectFault(
            pointing("/hello"), .invalidStatusCode(302), .processing
        ) {
            $0.probe.redirectPolicy = RedirectPolicy.none
        }
        for fields in ["", "Location:\r\n"] {
            let script: LoopbackScript = [.send(head("302 Found", fields + "Content-Length: 0\r\n")), .serve]
            try await expectFault(script, .invalidStatusCode(302), .processing)
        }
        for status in [300, 304, 305, 306] {
            try await expectFault(pointing("/hello", status: status), .invalidStatusCode(status), .processing)
        }
    }

    @Test(
        "R34: only http and https are followed",
        arguments: [
            "file:///etc/passwd", "FILE:///etc/passwd", "gopher://127.0.0.1:1/x?token=canary", "dict://127.0.0.1:1/d",
            "ftp://canary:canary@127.0.0.1:1/x", "javascript:alert(1)", "data:,x", "unix:///run/x", "ws://127.0.0.1:1/",
        ])
    func scheme(location: String) async throws {
        try await expectFault(pointing(location), .redirectForbidden(.scheme), .processing) {
            $0.probe.redirectPolicy = .follow { _ in .follow }
        } after: { server in
            #expect(server.requestCount == 2)
        }
    }

    @Test("R34: a redirect to a file never reaches the transport", arguments: Play.allCases)
    func fileIsNotOpened(play: Play) async throws {
        let stub = StubTransport(always: .response(status: 302, headers: ["Location": "file:///etc/passwd"]))
        let agent = NetworkAgent(configuration: .test, stub: stub)
        #expect(try await agent.outcome(of: Get(), play).error?.code == .redirectForbidden(.scheme))
        #expect(stub.requests.map(\.url) == ["http://h/x"])
        await agent.shutdown()
    }

    @Test(
        "R34: an invalid Location is not guessed",
        arguments: ["http://", "http://h:99999/", "http://[::1/", "http://h:a/?token=canary", "http://a b/", "//"])
    func noPlace(location: String) async throws {
        try await expectFault(pointing(location), .redirectForbidden(.invalidLocation), .processing)
    }

    @Test("R34: two different Locations are refused; the same one twice counts as one")
    func twoPlaces() async throws {
        try await expectFault(
            pointing("/hello", "http://canary:canary@evil.example/"), .redirectForbidden(.invalidLocation), .processing)
        try await expectAnswer(pointing("/hello", "/hello")) { response, _ in
            #expect(response.text == "Hello, ferry")
        }
    }

    @Test("R34: a redirect that the policy's rule refuses is not sent, and one that it delivers is the response")
    func refusedByRule() async throws {
        try await expectFault(pointing("/hello?" + Canary.query), .redirectForbidden(.policy), .processing) {
            $0.probe.redirectPolicy = .follow { _ in .refuse }
        } after: { server in
            #expect(server.requests.map(\.path) == ["/fault", "/hello"], "the second is the one after the fault")
        }
        try await expectFault(pointing("/hello"), .invalidStatusCode(302), .processing) {
            $0.probe.redirectPolicy = .follow { _ in .deliver }
        }
    }

    @Test("R36: from https to http is not followed", arguments: [301, 302, 303, 307, 308])
    func downgrade(status: Int) async throws {
        let plain = try LoopbackServer()
        let certificate = try ServerCertificate()
        let location = plain.baseURL.replacing("http://", with: "http://canary:canary@") + "/hello?" + Canary.query
        try await expectFault(
            pointing(location, status: status), .redirectForbidden(.downgrade), .processing
        ) {
            $0.server.certificate = certificate
            $0.configuration.tls.authorityFile = certificate.authorityFile
        }
        #expect(plain.connectionCount == 0)
    }

    @Test("R36: from https to http is followed if allowed, and then without the secrets")
    func allowedDowngrade() async throws {
        let plain = try LoopbackServer()
        let certificate = try ServerCertificate()
        try await expectAnswer(
            pointing(plain.baseURL + "/hello"),
            setUp: {
                $0.server.certificate = certificate
                $0.configuration.tls.authorityFile = certificate.authorityFile
                $0.probe.redirectPolicy = .follow(allowsDowngrade: true)
            }
        ) { response, server in
            #expect(response.text == "Hello, ferry" && response.url == plain.baseURL + "/hello")
            #expect(server.requests[0].headers["Authorization"] == Canary.authorization)
        }
        #expect(plain.requestCount == FaultSetup().plays.count)
        for request in plain.requests { expectNoSecret(in: request) }
    }

    @Test("R36: from http to https is followed, without the secrets")
    func upgrade() async throws {
        let certificate = try ServerCertificate()
        let secure = try LoopbackServer(.init(certificate: certificate))
        try await expectAnswer(
            pointing(secure.baseURL + "/hello"),
            setUp: { $0.configuration.tls.authorityFile = certificate.authorityFile }
        ) { response, _ in
            #expect(response.text == "Hello, ferry" && response.metrics.redirects == 1)
        }
        #expect(secure.requestCount == FaultSetup().plays.count)
        for request in secure.requests { expectNoSecret(in: request) }
    }

    @Test("An error after a redirect lists the URLs")
    func faultBehindRedirect() async throws {
        let closed = try LoopbackServer(.refusing)
        try await expectFault(
            pointing(closed.baseURL + "/x?" + Canary.query), .connect(.refused), .connect, attempts: 2
        ) {
            $0.checksURL = false
        } error: { error in
            #expect(error.url == closed.baseURL + "/x?token=***")
            #expect(error.redirects.map(\.status) == [302])
            // The redirect was received, and is listed among the URLs.
            #expect(error.bytesReceived > 0)
        }
    }

    @Test("An incomplete body after a redirect is an error")
    func incompleteBehindRedirect() async throws {
        let short: LoopbackScript = [.send(head("200 OK", "Content-Length: 10\r\n") + "abc"), .close]
        try await expectFault(
            pointing("/short"), .incompleteBody(expected: 10, got: 3), .body, attempts: 2
        ) {
            $0.install = { $0.script(path: "/short", short) }
            $0.checksURL = false
        }
    }
}

extension LoopbackServer.Options {
    /// The port of a server that refuses connections.
    static var refusing: LoopbackServer.Options {
        var options = LoopbackServer.Options()
        options.accepting = .refused
        return options
    }
}

/// No request that a server received contains one of the secrets.
func expectNoSecret(in request: LoopbackRequest, _ sourceLocation: SourceLocation = #_sourceLocation) {
    let text = "\(request.target)\n\(request.headers)\n\(request.text)"
    for word in Canary.words {
        #expect(!text.contains(word), "\(request.headers)", sourceLocation: sourceLocation)
    }
}
