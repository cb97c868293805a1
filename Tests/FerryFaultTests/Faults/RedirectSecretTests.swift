import FaultTable
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// What a redirected request contains: rows R37 and R39.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct RedirectSecretTests {
    /// Secrets known to HTTP, one declared by the policy, one declared by the configuration, and one of the
    /// configuration's own fields.
    private static let secrets = [
        "Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Declared", "X-Common",
    ]

    private func request(_ path: String) -> HTTPRequest<Response> {
        var call = HTTPRequest(.get, path)
        for name in Self.secrets where name != "X-Common" { call.headers.append(name, "canary-\(name)") }
        call.headers.append("X-Own", "own")
        call.redirectPolicy = .follow(sensitiveHeaders: ["x-api-key"])
        return call
    }

    private func configure(_ configuration: inout NetworkConfiguration) {
        configuration.headers = ["X-Common": "canary-common", "X-Trace": "trace"]
        configuration.sensitiveHeaders = ["X-DECLARED", "x-common"]
    }

    private func point(_ server: LoopbackServer, _ path: String, to location: String, _ status: Int) {
        server.script(
            path: path,
            [.expectBody, .send(head("\(status) Elsewhere", "Location: \(location)\r\nContent-Length: 0\r\n")), .serve])
    }

    @Test("R37: no secret reaches a second origin, nor the first one again", arguments: [301, 302, 303, 307, 308])
    func otherPort(status: Int) async throws {
        let second = try LoopbackServer()
        try await withFlow(configure) { first, agent in
            point(first, "/start", to: second.baseURL + "/there", status)
            point(second, "/there", to: second.baseURL + "/on", status)
            point(second, "/on", to: first.baseURL + "/back", status)
            var call = request("/start")
            call.statusValidation = .any
            for outcome in try await agent.outcomes(of: call) {
                let reply = try outcome.get()
                #expect(reply.status == 404 && reply.redirects.count == 3)
            }
            for sent in first.requests.filter({ $0.path == "/start" }) {
                for name in Self.secrets { #expect(sent.headers[name]?.hasPrefix("canary") ?? false, "\(name)") }
            }
            let after = second.requests + first.requests.filter { $0.path == "/back" }
            #expect(after.count == 3 * Play.allCases.count)
            for sent in after {
                expectNoSecret(in: sent)
                #expect(sent.headers["X-Own"] == "own" && sent.headers["X-Trace"] == "trace")
            }
        }
    }

    @Test("R37: the same address under another name is another origin")
    func otherName() async throws {
        try await withFlow(configure) { server, agent in
            point(server, "/start", to: "http://localhost:\(server.port)/hello", 302)
            for outcome in try await agent.outcomes(of: request("/start")) {
                #expect(try outcome.get().text == "Hello, ferry")
            }
            for sent in server.requests where sent.path == "/hello" {
                expectNoSecret(in: sent)
                #expect(sent.headers["Host"] == "localhost:\(server.port)")
            }
        }
    }

    @Test("R37: within an origin secrets are kept", arguments: ["/hello", "hello", "//127.0.0.1:PORT/hello", "?x=1"])
    func sameOrigin(location: String) async throws {
        try await withFlow(configure) { server, agent in
            point(server, "/start", to: location.replacing("PORT", with: "\(server.port)"), 302)
            server.handle("/start") { _ in LoopbackResponse(text: "never") }
            var call = request("/start")
            call.redirectPolicy?.limit = 1
            call.statusValidation = .any
            _ = try await agent.outcomes(of: call)
            for sent in server.requests where sent.path == "/hello" {
                for name in Self.secrets { #expect(sent.headers[name]?.hasPrefix("canary") ?? false, "\(name)") }
            }
            #expect(server.requestCount == 2 * Play.allCases.count)
        }
    }

    @Test("R37: user and password in a Location are never sent")
    func userInfoInLocation() async throws {
        let second = try LoopbackServer()
        try await withFlow { first, agent in
            let place = second.baseURL.replacing("://", with: "://" + Canary.userInfo)
            point(first, "/start", to: place + "/hello?" + Canary.query, 302)
            for outcome in try await agent.outcomes(of: Get("/start")) {
                #expect(try outcome.get().redirects.first?.target == second.baseURL + "/hello?token=***")
            }
            for sent in second.requests {
                #expect(sent.headers["Authorization"] == nil)
                #expect(sent.query == Canary.query, "the query is the server's own")
            }
            #expect(second.requestCount == Play.allCases.count)
        }
    }

    @Test("R37: Host, Origin and Referer of the first server are not sent on")
    func boundToOrigin() async throws {
        let second = try LoopbackServer()
        try await withFlow { first, agent in
            point(first, "/start", to: second.baseURL + "/hello", 307)
            var call = HTTPRequest(.get, "/start")
            call.headers = [
                "Host": "first.example", "Origin": "http://first.example", "Referer": "http://first.example/",
            ]
            for outcome in try await agent.outcomes(of: call) { _ = try outcome.get() }
            #expect(second.requestCount == Play.allCases.count)
            for sent in second.requests {
                #expect(sent.headers["Host"] == "127.0.0.1:\(second.port)")
                #expect(sent.headers["Origin"] == nil && sent.headers["Referer"] == nil)
            }
        }
    }

    // MARK: R39

    enum Body: CaseIterable, Sendable {
        case none, data, file, stream, form, once
    }

    @Test(
        "R39: the status decides about method and body",
        arguments: [HTTPMethod.get, .post, .put, .delete, .head], [301, 302, 303, 307, 308])
    func methodAndBody(method: HTTPMethod, status: Int) async throws {
        let bytes = LoopbackServer.pattern(0..<5000)
        let file = try TemporaryFile(bytes)
        let becomesGet = status == 303 || (status < 303 && method == .post)
        let expected: HTTPMethod = status == 303 && method == .head ? .head : becomesGet ? .get : method
        try await withFlow { server, agent in
            point(server, "/start", to: "/target", status)
            server.handle("/target") { _ in LoopbackResponse(text: "there") }
            for body in Body.allCases where method != .head || body == .none {
                for play in Play.allCases {
                    let from = server.requestCount
                    var call = HTTPRequest(method, "/start")
                    call.headers = ["Content-Language": "en", "X-Own": "own"]
                    call.idempotencyKey = .automatic
                    call.body = body.made(bytes, file)
                    let isRefused = body == .once && !becomesGet
                    let result = try await agent.outcome(of: call, play)
                    let seen = Array(server.requests.dropFirst(from))
                    #expect(seen.map(\.path) == (isRefused ? ["/start"] : ["/start", "/target"]), "\(body)")
                    #expect(seen[0].method == method.rawValue)
                    switch result {
                    case .success(let reply):
                        #expect(!isRefused && reply.redirects.count == 1)
                        expectBody(seen[1], expected, isDropped: becomesGet, seen[0])
                    case .failure(let error):
                        #expect(isRefused && error.code == .bodyNotReplayable, "\(body): \(error)")
                        #expect(error.mayHaveBeenProcessed && error.attempts == 1)
                    }
                }
            }
        }
    }

    private func expectBody(
        _ sent: LoopbackRequest, _ method: HTTPMethod, isDropped: Bool, _ first: LoopbackRequest
    ) {
        #expect(sent.method == method.rawValue)
        #expect(sent.headers["X-Own"] == "own")
        #expect(sent.body.count == (isDropped ? 0 : first.body.count) && (isDropped || sent.body == first.body))
        #expect((sent.headers["Content-Language"] == nil) == isDropped)
        #expect(first.headers["Idempotency-Key"] != nil)
        #expect(sent.headers["Idempotency-Key"] == (isDropped ? nil : first.headers["Idempotency-Key"]))
        if !isDropped {
            #expect(sent.headers["Content-Type"] == first.headers["Content-Type"])
            #expect(sent.headers["Content-Length"] == first.headers["Content-Length"])
        } else {
            #expect(sent.headers["Content-Type"] == nil && sent.headers["Content-Length"] == nil)
            #expect(sent.headers["Transfer-Encoding"] == nil)
        }
    }

    @Test("R39: a policy that keeps the method keeps it", arguments: [301, 302])
    func keptMethod(status: Int) async throws {
        try await withFlow { server, agent in
            point(server, "/start", to: "/target", status)
            server.handle("/target") { _ in LoopbackResponse(text: "there") }
            var call = HTTPRequest(.post, "/start", body: .string("kept"))
            call.redirectPolicy = .follow(keepsMethodOn301And302: true)
            for outcome in try await agent.outcomes(of: call) { _ = try outcome.get() }
            #expect(
                server.requests.count == 2 * Play.allCases.count && server.requests.allSatisfy { $0.method == "POST" })
            #expect(server.requests.allSatisfy { $0.text == "kept" })
        }
    }

    @Test("R39: a body that is sent again to a second origin goes without the secrets")
    func bodyToOtherOrigin() async throws {
        let second = try LoopbackServer()
        second.handle("/target") { _ in LoopbackResponse(text: "there") }
        try await withFlow(configure) { first, agent in
            point(first, "/start", to: second.baseURL + "/target", 307)
            var call = request("/start")
            call.method = .post
            call.body = .string("kept")
            for outcome in try await agent.outcomes(of: call) { _ = try outcome.get() }
            #expect(second.requests.map(\.text) == Play.allCases.map { _ in "kept" })
            for sent in second.requests { expectNoSecret(in: sent) }
        }
    }
}

extension RedirectSecretTests.Body {
    fileprivate func made(_ bytes: [UInt8], _ file: TemporaryFile) -> RequestBody? {
        switch self {
        case .none: nil
        case .data: .bytes(bytes, contentType: "application/octet-stream")
        case .file: .file(file.path)
        case .stream: .stream { Pieces(pieces: [bytes, [1, 2, 3]]) }
        case .form: .multipart(form(bytes))
        case .once: .stream(once: Pieces(pieces: [bytes]))
        }
    }

    private func form(_ bytes: [UInt8]) -> Multipart {
        var form = Multipart(boundary: "B")
        form.append("name", "value")
        form.append("stream", stream: { Pieces(pieces: [bytes]) })
        return form
    }
}
