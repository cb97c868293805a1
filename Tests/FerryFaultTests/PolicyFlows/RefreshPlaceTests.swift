import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// What a run waits for, such as a new token, finds a place among the transfers although all places are taken.
@Suite(.timeLimit(.minutes(2))) struct RefreshPlaceTests {
    @Test("A refresh is admitted although the runs that wait for it fill the agent", arguments: [true, false])
    func aRefreshOfAFullAgent(usesAuthenticator: Bool) async throws {
        try await withFlow {
            $0.authenticator = Refreshing(usesAuthenticator: usesAuthenticator)
            ($0.limits.maxConcurrentTransfers, $0.limits.queueLength) = (8, 0)
        } _: { server, agent in
            let all = Gate()
            let tokens = TokenServer(on: server, refuses: { await all.pass(openingAt: 8) })
            let replies = await withTaskGroup(of: Result<Reply<Response>, RequestError>.self) { group in
                for index in 0..<8 {
                    group.addTask { await agent.result(Get("/data"), index.isMultiple(of: 2) ? .awaited : .closure) }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            for result in replies {
                let reply = try result.get()
                #expect(reply.status == 200 && reply.attempts == 2)
            }
            #expect(tokens.issued == 1)
        }
    }

    /// What the request for a token uses besides the network.
    enum Way: CaseIterable {
        case timeToLive, http, sharing
    }

    @Test("A refresh needs no free place, also by the cache and if it is shared", arguments: Way.allCases)
    func aRefreshByCacheOrSharing(way: Way) async throws {
        let folder = try Folder()
        try await withFlow {
            $0.authenticator = SigningIn(way: way)
            $0.cache = CacheConfiguration(directory: folder.file("cache"))
            $0.limits.transfersPerHost = 1
        } _: { server, agent in
            _ = TokenServer(on: server)
            let stream = try await stream(from: server, by: agent)
            let waiting = Task { try await agent.send(Get("/data")) }
            try await server.waitForRequests(2)
            #expect(server.requests.map(\.path) == ["/held", "/token"])
            server.signal("token")
            for try await _ in stream.body {}
            #expect(try await waiting.value.status == 200)
        }
    }

    @Test("A refresh does not wait for the validation of a run that waits for a place")
    func aRefreshBesideAValidation() async throws {
        let folder = try Folder()
        try await withFlow {
            $0.authenticator = SigningIn(way: .http)
            $0.cache = CacheConfiguration(directory: folder.file("cache"))
            $0.limits.transfersPerHost = 1
        } _: { server, agent in
            server.handle("/token") { _ in
                LoopbackResponse(headers: ["Cache-Control": "max-age=0", "ETag": "\"1\""], text: "token")
            }
            var asking = HTTPRequest(.get, "/token")
            (asking.usesAuthenticator, asking.cachePolicy) = (false, .http())
            try await agent.send(asking)
            let stream = try await stream(from: server, by: agent)
            let validating = Task { [asking] in try await agent.send(asking).status }
            #expect(await eventually { agent.statistics.waiting == 1 })
            let waiting = Task { try await agent.send(Get("/hello")).status }
            try await server.waitForRequests(3)
            #expect(server.requests.map(\.path) == ["/token", "/held", "/token"])
            server.signal("token")
            for try await _ in stream.body {}
            #expect(try await waiting.value == 200)
            #expect(try await validating.value == 200)
        }
    }

    /// Holds its place until the server gets the signal `token`.
    private func stream(from server: LoopbackServer, by agent: NetworkAgent) async throws -> StreamedResponse {
        server.script(path: "/held", uses: 1, [.send("HTTP/1.1 200 OK\r\n\r\na"), .wait("token"), .close])
        var request = HTTPRequest(.get, "/held")
        request.usesAuthenticator = false
        return try await agent.stream(request)
    }

    /// Has no token, and asks for it without its own token.
    private struct SigningIn: Authenticator {
        let way: Way
        var token: String? { nil }

        func apply(_ token: String, to request: inout OutgoingRequest) {
            request.headers["Authorization"] = "Bearer \(token)"
        }

        func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
            var request = HTTPRequest(.get, "/token")
            request.usesAuthenticator = false
            switch way {
            case .timeToLive: request.cachePolicy = .timeToLive(.seconds(60))
            case .http: request.cachePolicy = .http()
            case .sharing: request.coalesces = true
            }
            return try await agent.send(request).value.text
        }
    }

    @Test("A task that outlives the refresh that started it is not part of the refresh")
    func aTaskOfARefreshIsOrdinaryAfterIt() async throws {
        let later = Later()
        try await withFlow {
            $0.authenticator = later
            ($0.limits.maxConcurrentTransfers, $0.limits.queueLength) = (1, 0)
        } _: { server, agent in
            let (held, hold) = (Gate(), Gate())
            _ = TokenServer(on: server)
            server.handle("/hold") { _ in
                held.open()
                await hold.pass()
                return LoopbackResponse()
            }
            _ = try await agent.send(Get("/data"))
            let blocking = Task { try await agent.send(Get("/hold")) }
            await held.pass()
            later.gate.open()
            #expect(await later.code.value() == .queueFull)
            hold.open()
            _ = try await blocking.value
        }
    }

    private final class Later: Authenticator {
        let gate = Gate()
        let code = OneShot<RequestError.Code?>()

        func apply(_ token: String, to request: inout OutgoingRequest) {
            request.headers["Authorization"] = "Bearer \(token)"
        }

        func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
            Task {
                await gate.pass()
                code.finish(await agent.result(Get("/token"), .awaited).error?.code)
            }
            return try await agent.get("/token", as: String.self)
        }
    }

    /// Fetches the token with or without the authenticator's own token.
    private struct Refreshing: Authenticator {
        var usesAuthenticator: Bool
        var token: String? { TokenServer.expired }

        func apply(_ token: String, to request: inout OutgoingRequest) {
            request.headers["Authorization"] = "Bearer \(token)"
        }

        func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
            var request = HTTPRequest(.get, "/token")
            request.usesAuthenticator = usesAuthenticator
            return try await agent.send(request).value.text
        }
    }

    @Test("A download that was refused leaves its place to the refresh it waits for", arguments: [9, 600_000])
    func aRefusedDownloadMakesRoom(length: Int) async throws {
        let folder = try Folder()
        try await withFlow(memoryBound: 4_000_000) {
            $0.authenticator = Session(token: TokenServer.expired)
            $0.limits.transfersPerHost = 1
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            server.handle("/file") { request in
                if tokens.isValid(request) { return LoopbackResponse(text: "content") }
                return LoopbackResponse(status: 401, body: [UInt8](repeating: 0x61, count: length))
            }
            let file = try await agent.download(Get("/file"), to: .file(folder.file("f")))
            #expect(file.length == 7 && folder.bytes("f") == Array("content".utf8))
            // If the refresh does not help, the error shows the first bytes.
            tokens.expire()
            tokens.refuseTokens(with: 403)
            let error = await fault { () throws(RequestError) in
                _ = try await agent.download(Get("/file"), to: .file(folder.file("g")))
            }
            #expect(error?.code == .invalidStatusCode(401) && error?.response?.body.count == min(length, 4096))
            #expect(folder.names == ["f"])
        }
    }

    @Test("A stream that was refused leaves its place to the refresh it waits for", arguments: [9, 600_000])
    func aRefusedStreamMakesRoom(length: Int) async throws {
        try await withFlow(memoryBound: 8_000_000) {
            $0.authenticator = Session(token: TokenServer.expired)
            $0.limits.transfersPerHost = 1
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            server.handle("/file") { request in
                if tokens.isValid(request) { return LoopbackResponse(text: "data: content\n\n") }
                return LoopbackResponse(status: 401, body: [UInt8](repeating: 0x61, count: length))
            }
            let streamed = try await agent.stream(Get("/file"))
            #expect(try await streamed.body.reduce(into: [UInt8]()) { $0 += $1 }.count == 15)
            // A refusal that the request accepts stays whole.
            tokens.expire()
            tokens.refuseTokens(with: 403)
            var request = HTTPRequest(.get, "/file")
            request.statusValidation = .any
            request.deadline = .seconds(20)
            let refused = try await agent.stream(request)
            #expect(refused.head.status == 401)
            #expect(try await refused.body.reduce(into: [UInt8]()) { $0 += $1 }.count == length)
        }
    }

    @Test("An exchange that was refused leaves its place to the refresh it waits for", arguments: [9, 600_000])
    func aRefusedExchangeMakesRoom(length: Int) async throws {
        try await withFlow(memoryBound: 8_000_000) {
            $0.authenticator = Session(token: TokenServer.expired)
            $0.limits.transfersPerHost = 1
        } _: { server, agent in
            let tokens = TokenServer(on: server)
            // Before they have read anything.
            server.script(
                path: "/file", uses: 1,
                [
                    .expectHead, .send("HTTP/1.1 401 No\r\nContent-Length: \(length)\r\n\r\n"),
                    .sendBytes([UInt8](repeating: 0x61, count: length)), .close,
                ])
            server.script(
                path: "/file", [.expectHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ncontent"), .close])
            let text = try await agent.exchange(HTTPRequest(.post, "/file")) { response, body in
                let head = try await response.head
                #expect(head.status == 200)
                try body.finish()
                return try await response.body.collect(upTo: 10)
            }
            #expect(Array(text) == Array("content".utf8) && tokens.issued == 1)
        }
    }

    @Test("The error of a download shows a late body, if there was nothing to wait for")
    func aLateRefusalIsShown() async throws {
        let folder = try Folder()
        try await withFlow {
            $0.authenticator = Session(token: TokenServer.expired)
        } _: { server, agent in
            _ = TokenServer(on: server)
            server.script(path: "/file", uses: 1, [.send("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"), .serve])
            server.script(
                path: "/file",
                [
                    .send("HTTP/1.1 401 No\r\nContent-Length: 20\r\n\r\n"), .pause(.milliseconds(1500)),
                    .send(String(repeating: "a", count: 20)), .serve,
                ])
            let error = await fault { () throws(RequestError) in
                _ = try await agent.download(Get("/file"), to: .file(folder.file("f")))
            }
            #expect(error?.code == .invalidStatusCode(401) && error?.response?.body.count == 20)
        }
    }

    @Test("A download that was challenged leaves its place to what its provider sends")
    func aChallengedDownloadMakesRoom() async throws {
        let folder = try Folder()
        let provider = Asking()
        try await withFlow {
            $0.credentialProvider = provider
            $0.limits.transfersPerHost = 1
        } _: { server, agent in
            provider.agent.withLock { $0 = agent }
            server.handle("/password") { _ in LoopbackResponse(text: Canary.body) }
            server.handle("/file") { request in
                if request.headers["Authorization"] != nil { return LoopbackResponse(text: "content") }
                return LoopbackResponse(
                    status: 401, headers: ["WWW-Authenticate": "Basic realm=\"r\""],
                    body: [UInt8](repeating: 0x61, count: 100))
            }
            let file = try await agent.download(Get("/file"), to: .file(folder.file("f")))
            #expect(file.length == 7)
            provider.agent.withLock { $0 = nil }
        }
    }

    /// Asks the server itself for the password.
    private final class Asking: CredentialProvider {
        let agent = Mutex<NetworkAgent?>(nil)

        func credential(for challenge: CredentialChallenge, of run: RunInfo) async throws -> Credential? {
            let password = try await agent.withLock { $0 }?.get("/password", as: String.self)
            return Credential(user: "u", password: password ?? "")
        }
    }
}
