import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Which servers get tokens, and which responses count as refusals.
@Suite(.timeLimit(.minutes(2))) struct TokenScopeTests {
    @Test("Another origin gets no token and causes no refresh", arguments: ["Authorization", "X-Session"])
    func otherOrigin(field: String) async throws {
        let second = try LoopbackServer()
        second.handle("/there") { _ in LoopbackResponse(status: 401) }
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired, field: field)
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            server.script(
                path: "/start",
                [.send(head("307 X", "Location: \(second.baseURL)/there\r\nContent-Length: 0\r\n")), .serve])
            for result in await agent.resultsOfBothWays(Get("/start")) {
                #expect(result.error?.code == .invalidStatusCode(401))
            }
            #expect(second.requestCount == 2 && tokens.count("/token") == 0)
            for sent in second.requests { expectNoSecret(in: sent) }
        }
    }

    @Test("An absolute URL of a foreign server gets no token and causes no refresh", arguments: Way.allCases)
    func foreignURL(way: Way) async throws {
        let foreign = try LoopbackServer()
        foreign.handle("/there") { _ in LoopbackResponse(status: 401) }
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
            $0.cdnURL = "http://cdn.invalid"
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            let error = await agent.result(Get(foreign.baseURL + "/there"), way).error
            #expect(error?.code == .invalidStatusCode(401) && error?.attempts == 1)
            let complete = Whole(prebuiltRequest: OutgoingRequest(url: foreign.baseURL + "/there"))
            #expect(await agent.result(complete, way).error?.attempts == 1)
            #expect(foreign.requestCount == 2 && tokens.count("/token") == 0)
            for sent in foreign.requests { expectNoSecret(in: sent) }
            // The base URL, written in full, is not a foreign server.
            let reply = try await agent.result(Get(server.baseURL + "/data"), way).get()
            #expect(reply.text == "data ")
            #expect(tokens.issued == 1)
        }
    }

    @Test("A request that an adapter redirects elsewhere gets no token; one that it brings to the base URL does")
    func adaptedURL() async throws {
        let mirror = try LoopbackServer()
        mirror.handle("/data") { _ in LoopbackResponse(status: 401) }
        try await withFlow { configuration in
            let base = configuration.baseURL ?? ""
            configuration.authenticator = Session(token: TokenServer.expired)
            configuration.adapters = [
                Adapt { request, run in
                    // The refresh passes it, too.
                    guard run.url.hasSuffix("/data") else { return }
                    request.url = (run.tag == "home" ? base : mirror.baseURL) + "/data"
                }
            ]
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            for result in await agent.resultsOfBothWays(Get("/data")) {
                #expect(result.error?.code == .invalidStatusCode(401) && result.error?.attempts == 1)
            }
            #expect(mirror.requestCount == 2 && tokens.count("/token") == 0)
            for sent in mirror.requests { expectNoSecret(in: sent) }
            var home = HTTPRequest(.get, mirror.baseURL + "/data")
            home.tag = "home"
            let reply = try await agent.send(home)
            #expect(reply.text == "data ")
            #expect(mirror.requestCount == 2 && tokens.issued == 1)
        }
    }

    @Test("A mirror that an adapter chooses for a retry says nothing about the token", arguments: Way.allCases)
    func mirrorForARetry(way: Way) async throws {
        let mirror = try LoopbackServer()
        mirror.handle("/data") { _ in LoopbackResponse(status: 401) }
        let attempts = Mutex(0)
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
            $0.retryPolicy = .quick
            $0.adapters = [
                Adapt { request, run in
                    guard run.url.hasSuffix("/data") else { return }
                    let number = attempts.withLock { attempts in
                        attempts += 1
                        return attempts
                    }
                    if number > 1 { request.url = mirror.baseURL + "/data" }
                }
            ]
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            server.script(path: "/data", uses: 1, unwanted(503))
            let error = await agent.result(Get("/data"), way).error
            #expect(error?.code == .invalidStatusCode(401) && error?.attempts == 2)
            #expect(mirror.requestCount == 1 && tokens.count("/token") == 0)
            for sent in mirror.requests { expectNoSecret(in: sent) }
        }
    }

    @Test("A prebuilt request keeps its own credentials, unless it asks for the token", arguments: Way.allCases)
    func prebuiltRequest(way: Way) async throws {
        struct Asking: Request {
            var prebuiltRequest: OutgoingRequest?
            let path = ""
            let usesAuthenticator = true
        }
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            let prebuilt = OutgoingRequest(url: server.baseURL + "/data", headers: ["Authorization": "Basic own"])
            let error = await agent.result(Whole(prebuiltRequest: prebuilt), way).error
            #expect(error?.code == .invalidStatusCode(401) && error?.attempts == 1)
            #expect(server.requests.map { $0.headers["Authorization"] } == ["Basic own"])
            #expect(tokens.count("/token") == 0)
            let reply = try await agent.result(Asking(prebuiltRequest: prebuilt), way).get()
            #expect(reply.text == "data ")
            #expect(tokens.issued == 1)
        }
    }

    @Test("A request's own server gets the token; without a base URL every server does", arguments: [true, false])
    func ownServer(hasBase: Bool) async throws {
        let own = try LoopbackServer()
        let tokens = TokenServer(on: own)
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired, path: own.baseURL + "/token")
            if !hasBase { $0.baseURL = nil }
        } _: { _, agent in
            let data = hasBase ? Whole(path: "/data", baseURL: own.baseURL) : Whole(path: own.baseURL + "/data")
            let replies = try await agent.sendBothWays(data)
            #expect(replies.map(\.text) == ["data ", "data "])
            #expect(tokens.issued == 1)
        }
    }

    private struct Whole: Request {
        var prebuiltRequest: OutgoingRequest?
        var path = ""
        var baseURL: String?
        var coalesces = false
    }

    @Test("Runs of which only one uses the token do not share a transfer")
    func notShared() async throws {
        let own = try LoopbackServer()
        let gate = Gate()
        own.handle("/data") { _ in
            await gate.pass()
            return LoopbackResponse(status: 200)
        }
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.token(1))
        } _: { _, agent in
            let outcomes = [Outcome<Response>(), Outcome<Response>()]
            let requests = [
                Whole(path: "/data", baseURL: own.baseURL, coalesces: true),
                Whole(path: own.baseURL + "/data", coalesces: true),
            ]
            for (request, outcome) in zip(requests, outcomes) { agent.start(request, completion: outcome.take) }
            #expect(await eventually(within: .seconds(20)) { gate.arrived == 2 })
            gate.open()
            for outcome in outcomes { #expect(await outcome.code == nil) }
            #expect(own.requests.count { $0.headers["Authorization"] != nil } == 1)
        }
    }

    @Test("A token that was refreshed after a redirect stays with its origin as well")
    func refreshedBehindRedirect() async throws {
        let second = try LoopbackServer()
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired, field: "X-Session")
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            server.handle("/start") { _ in LoopbackResponse(status: 307, headers: ["Location": "/middle"]) }
            server.handle("/middle") { request in
                request.headers["X-Session"] == TokenServer.token(1)
                    ? LoopbackResponse(status: 307, headers: ["Location": second.baseURL + "/hello"])
                    : LoopbackResponse(status: 401)
            }
            let reply = try await agent.send(Get("/start"))
            #expect(reply.text == "Hello, ferry" && reply.redirects.count == 2 && reply.attempts == 4)
            #expect(tokens.issued == 1)
            for sent in second.requests { expectNoSecret(in: sent) }
        }
    }

    @Test(
        "A token in the body is not sent to another origin after a redirect", arguments: [303, 307, 308], [true, false])
    func tokenInTheBody(status: Int, isNew: Bool) async throws {
        struct InTheForm: Authenticator {
            let token: String? = TokenServer.token(1)
            /// Whether it replaces the whole request.
            let isNew: Bool
            func apply(_ token: String, to request: inout OutgoingRequest) {
                let body = RequestBody.string("a=1&token=\(token)", contentType: "application/x-www-form-urlencoded")
                if !isNew { return request.body = body }
                request = OutgoingRequest(
                    method: request.method, url: request.url, headers: request.headers, body: body)
            }
            func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String { throw Oops() }
        }
        let second = try LoopbackServer()
        second.handle("/there") { _ in LoopbackResponse(status: 200) }
        try await withFlow {
            $0.authenticator = InTheForm(isNew: isNew)
        } _: { server, agent in
            server.handle("/start") { _ in
                LoopbackResponse(status: status, headers: ["Location": second.baseURL + "/there"])
            }
            server.handle("/near") { _ in LoopbackResponse(status: status, headers: ["Location": "/end"]) }
            server.handle("/end") { LoopbackResponse(text: $0.text) }
            var call = HTTPRequest(
                .post, "/start", body: .string("a=1", contentType: "application/x-www-form-urlencoded"))
            for result in await agent.resultsOfBothWays(call) {
                #expect(result.error?.code == (status == 303 ? nil : .redirectForbidden(.policy)))
            }
            #expect(second.requestCount == (status == 303 ? 2 : 0))
            for sent in second.requests { expectNoSecret(in: sent) }
            // Within the origin it is sent on.
            call.path = "/near"
            let reply = try await agent.send(call)
            #expect(reply.text.contains("token") == (status != 303))
        }
    }

    @Test("A request without the authenticator is sent without a token, and its 401 is its response")
    func withoutAuthenticator() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            var call = HTTPRequest(.get, "/data")
            call.usesAuthenticator = false
            for result in await agent.resultsOfBothWays(call) {
                #expect(result.error?.code == .invalidStatusCode(401) && result.error?.attempts == 1)
            }
            #expect(tokens.count("/token") == 0)
            #expect(server.requests.allSatisfy { $0.headers["Authorization"] == nil })
        }
    }

    // MARK: Other cases

    @Test("The authenticator decides which responses are refusals", arguments: [403, 419, 200])
    func otherRefusal(status: Int) async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired, refusal: status)
        } _: { server, agent in
            let tokens = TokenServer(on: server, status: status)
            var call = HTTPRequest(.get, "/data")
            call.statusValidation = .any
            if status == 200 {
                // An authenticator that takes every response for a refusal gets the second one.
                let reply = try await agent.send(call)
                #expect(reply.attempts == 2)
            } else {
                #expect(try await agent.sendBothWays(call).map(\.status) == [200, 200])
            }
            #expect(tokens.issued == 1)
            server.handle("/other") { _ in LoopbackResponse(status: 401) }
            #expect(await agent.result(Get("/other")).error?.attempts == 1)
        }
    }

    @Test("A body is sent again with the new token, unless it can be read only once")
    func bodies() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            let file = try TemporaryFile(Array("abc".utf8))
            for body in [.string("abc"), .file(file.path), .stream { Pieces(pieces: [Array("abc".utf8)]) }]
                as [RequestBody]
            {
                tokens.expire()
                let call = HTTPRequest(.post, "/data", body: body)
                #expect(try await agent.send(call).text == "data abc")
            }
            tokens.expire()
            let issued = tokens.issued
            let call = HTTPRequest(.post, "/data", body: .stream(once: Pieces(pieces: [Array("abc".utf8)])))
            #expect(await agent.result(call).error?.code == .invalidStatusCode(401))
            #expect(
                await eventually { tokens.issued == issued + 1 },
                "a run that cannot be sent again has the token refreshed for the next one")
        }
    }

    @Test(
        "A body that can be read once reaches the server in every way of sending", arguments: Way.allCases,
        [true, false])
    func bodyOfOneReading(way: Way, hasAuthenticator: Bool) async throws {
        try await withFlow {
            if hasAuthenticator {
                $0.authenticator = Session(token: TokenServer.token(1))
            } else {
                $0.adapters = [Adapt { request, _ in request.headers["X-Adapted"] = "1" }]
            }
        } _: { server, agent in
            server.handle("/body") { LoopbackResponse(text: $0.text) }
            let call = HTTPRequest(.post, "/body", body: .stream(once: Pieces(pieces: [Array("abc".utf8)])))
            let reply = try await agent.result(call, way).get()
            #expect(reply.text == "abc")
        }
    }

    @Test("Redirect, refresh and retry in one run")
    func allTogether() async throws {
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
            $0.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .milliseconds(1), jitter: .none)
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            server.handle("/start") { _ in LoopbackResponse(status: 302, headers: ["Location": "/data"]) }
            for way in Way.allCases {
                tokens.expire()
                let unavailable: LoopbackScript = [.send(head("503 X", "Content-Length: 0\r\n")), .serve]
                server.script(path: "/data", uses: 1, unavailable)
                let reply = try await agent.result(Get("/start"), way).get()
                #expect(reply.attempts == 4 && reply.redirects.count == 1 && reply.status == 200)
            }
            #expect(tokens.issued == 2)
        }
    }

    @Test(
        "A refresh has helped if the new token leads to a redirect, or to an error of the request",
        arguments: [302, 404]
    )
    func helpedWithoutSuccess(status: Int) async throws {
        let storage = try LoopbackServer()
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
            $0.refreshLimit = RefreshLimit(maxRefreshes: 1, window: .seconds(3600))
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            server.handle("/file") { request in
                if !tokens.isValid(request) { return LoopbackResponse(status: 401) }
                return LoopbackResponse(status: status, headers: ["Location": storage.baseURL + "/hello"])
            }
            for number in 1...3 {
                tokens.expire()
                let error = await agent.result(Get("/file")).error
                #expect(error?.code == (status == 302 ? nil : .invalidStatusCode(404)))
                #expect(tokens.issued == number)
            }
        }
    }

    @Test("The refresh receives the old token")
    func oldToken() async throws {
        let seen = Mutex<[String?]>([])
        try await withFlow {
            $0.authenticator = Session(before: { old in seen.withLock { $0.append(old) } })
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            try await agent.send(Get("/data"))
            tokens.expire()
            try await agent.send(Get("/data"))
        }
        #expect(seen.withLock { $0 } == [nil, TokenServer.token(1)])
    }

    /// Fetches the token with a closure.
    private struct ByClosure: Authenticator {
        func apply(_ token: String, to request: inout OutgoingRequest) {
            request.headers["Authorization"] = "Bearer \(token)"
        }

        func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
            let outcome = Outcome<String>()
            agent.start(Kept(path: "/token", cachePolicy: .none, coalesces: true), completion: outcome.take)
            return try await outcome.result.get().value
        }
    }

    @Test("A run of the refresh that could share its transfer does not wait for the refresh")
    func sharedRunOfTheRefresh() async throws {
        let stub = StubTransport { .response(body: $0.url.hasSuffix("/token") ? "t" : "data") }
        var configuration = NetworkConfiguration.test
        configuration.authenticator = ByClosure()
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let outcome = Outcome<Response>()
        agent.start(Get("/data"), completion: outcome.take)
        #expect(await eventually(within: .seconds(10)) { outcome.count == 1 })
        agent.cancelAll()
        #expect(await outcome.code == nil)
        #expect(stub.requests.map(\.url) == ["http://h/token", "http://h/data"])
        await agent.shutdown(grace: .zero)
    }
}
