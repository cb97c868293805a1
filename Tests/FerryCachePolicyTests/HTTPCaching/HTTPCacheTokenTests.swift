import Ferry
import FerryTesting
import FoundationEssentials
import Testing

@testable import FerryTestSupport

/// Runs with `CachePolicy.http` that use only the cache, or whose token is refused.
@Suite(.timeLimit(.minutes(1))) struct HTTPCacheTokenTests {
    private let bench = CacheBench()
    private let tagged: Headers = ["Cache-Control": "max-age=60", "ETag": "\"a\""]

    private func kept(_ owner: String? = nil) -> Kept { http(sensitiveData: owner) }

    /// A token that has expired, and the next one.
    private struct Expiring: Authenticator {
        var token: String? { "old" }
        let refreshes: Tally
        func apply(_ token: String, to request: inout OutgoingRequest) { request.headers["Authorization"] = token }
        func expiration(of token: String) -> Date? { token == "old" ? .distantPast : nil }
        func refresh(_ old: String?, with agent: NetworkAgent) -> String {
            refreshes.add()
            return "new"
        }
        func isRefused(_ response: Response) -> Bool { response.status == 401 || response.status == 302 }
    }

    @Test func aRunThatUsesOnlyTheCacheRefreshesNoToken() async throws {
        let (stub, refreshes) = (counting(tagged), Tally())
        let agent = bench.agent(stub) { $0.authenticator = Expiring(refreshes: refreshes) }
        #expect(await fault { try await agent.send(kept("kim"), cache: .cacheOnly) } == .notCached(.notFound))
        #expect(await fault { try await agent.cache.reply(for: kept("kim")) } == .notCached(.notFound))
        #expect(refreshes.value == 0 && stub.requests.isEmpty)
        #expect(try await texts(agent, kept("kim")) == ["answer 1"])
        #expect(refreshes.value == 1)
        let only = try await agent.send(kept("kim"), cache: .cacheOnly)
        #expect(only.value == "answer 1" && refreshes.value == 1)
        await agent.shutdown()
    }

    /// The server of the other run may never respond.
    @Test(arguments: [false, true]) func aRunThatUsesOnlyTheCacheWaitsForNoOther(isDirective: Bool) async throws {
        let stub = StubTransport { [tagged] request in
            request.number == 1 ? .response(headers: tagged, body: "answer 1") : .hold
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(kept())
        bench.advance(by: .seconds(100))
        let other = Task { [request = kept()] in try await agent.send(request) }
        await stub.waitForHeld(1)
        var request = kept()
        if isDirective {
            request.headers = ["Cache-Control": "only-if-cached"]
            #expect(try await agent.send(request).response.status == 504)
        } else {
            #expect(await fault { try await agent.send(request, cache: .cacheOnly) } == .notCached(.expired))
        }
        other.cancel()
        _ = await other.result
        await agent.shutdown()
    }

    /// A redirect to a page for signing in is neither stored, nor does it take the stored response of the same user.
    @Test func aRedirectThatRefusesTheTokenChangesNothing() async throws {
        let refreshes = Tally()
        func stub() -> StubTransport {
            StubTransport { [tagged] request in
                if request.headers["Authorization"] == "old" {
                    return .response(status: 302, headers: ["Location": "/login", "Cache-Control": "max-age=60"])
                }
                if request.headers["If-None-Match"] != nil { return .response(status: 304, headers: tagged) }
                return .response(headers: tagged, body: "answer \(request.number)")
            }
        }
        let first = bench.agent(stub())
        #expect(try await texts(first, kept("kim")) == ["answer 1"])
        await first.shutdown()
        bench.advance(by: .seconds(100))
        // Its expiration is unknown, so the old token is sent.
        let agent = bench.agent(stub()) { $0.authenticator = Refused(refreshes: refreshes) }
        let reply = try await agent.send(kept("kim"))
        #expect(reply.value == "answer 1" && reply.cacheStatus?.forwardStatus == 304 && refreshes.value == 1)
        #expect(try await texts(agent, kept("kim")) == ["cached answer 1"])
        await agent.shutdown()
    }

    private struct Refused: Authenticator {
        var token: String? { "old" }
        let refreshes: Tally
        func apply(_ token: String, to request: inout OutgoingRequest) { request.headers["Authorization"] = token }
        func refresh(_ old: String?, with agent: NetworkAgent) -> String {
            refreshes.add()
            return "new"
        }
        func isRefused(_ response: Response) -> Bool { response.status == 302 }
    }

    /// The stored response first: also if it is found only by what an adapter or a token adds, or by a directive.
    @Test(arguments: ["adapter", "token", "directive"])
    func theStoredResponseComesFirstWhateverDecidesItsKey(way: String) async throws {
        let (stub, refreshes) = (counting(tagged), Tally())
        let agent = bench.agent(stub) { configuration in
            if way == "adapter" {
                configuration.adapters = [Adapt { request, _ in request.headers["X-Session"] = "1" }]
            }
            if way == "token" { configuration.authenticator = Refused(refreshes: refreshes) }
        }
        var request = kept(way == "token" ? "kim" : nil)
        if way == "directive" { request.headers = ["Cache-Control": "max-age=30"] }
        #expect(try await texts(agent, request) == ["answer 1"])
        let found = KeptResult<String>()
        let reply = try await agent.send(request, cached: { found.take(.success($0.value)) })
        #expect(reply.value == "answer 2" && stub.requests.count == 2)
        let first = try await found.result.get()
        #expect(first == "answer 1")
        await agent.shutdown()
    }

    /// A refusal that is stored asks for no token either.
    @Test func aStoredRefusalRefreshesNoTokenForACacheOnlyRun() async throws {
        let refreshes = Tally()
        let stub = StubTransport { _ in .response(status: 401, headers: ["Cache-Control": "max-age=60"]) }
        let agent = bench.agent(stub) { $0.authenticator = Unknown(refreshes: refreshes) }
        _ = try? await agent.send(kept())
        let (before, sent) = (refreshes.value, stub.requests.count)
        let end = await fault { try await agent.send(kept(), cache: .cacheOnly) }
        // It has been found, and asks for nothing.
        #expect(before > 0 && end != .notCached(.notFound))
        #expect(refreshes.value == before && stub.requests.count == sent)
        await agent.shutdown()
    }

    private struct Unknown: Authenticator {
        var token: String? { "old" }
        let refreshes: Tally
        func apply(_ token: String, to request: inout OutgoingRequest) { request.headers["Authorization"] = token }
        func refresh(_ old: String?, with agent: NetworkAgent) throws -> String {
            refreshes.add()
            throw CancellationError()
        }
    }

    /// Puts the token into a field that nobody has declared as secret.
    private struct Session: Authenticator {
        let token: String?
        func apply(_ token: String, to request: inout OutgoingRequest) { request.headers["X-Session"] = token }
        func refresh(_ old: String?, with agent: NetworkAgent) -> String { "new" }
    }

    /// What an adapter adds to the same requests does not tell them apart.
    @Test func aTokenInAnyFieldTellsUsersApart() async throws {
        let traces = Tally()
        func agent(_ user: String) -> NetworkAgent {
            let stub = StubTransport { request in
                let user = request.headers["X-Session"] ?? "nobody"
                return .response(headers: ["Cache-Control": "private, max-age=60"], body: "for \(user)")
            }
            return bench.agent(stub) { configuration in
                configuration.authenticator = Session(token: user)
                configuration.adapters = [
                    Adapt { request, _ in
                        traces.add()
                        request.headers["X-Trace"] = "\(traces.value)"
                    }
                ]
            }
        }
        let (first, second) = (agent("a"), agent("b"))
        #expect(try await texts(first, kept(), kept()) == ["for a", "cached for a"])
        #expect(try await texts(second, kept(), kept()) == ["for b", "cached for b"])
        // Unless the policy names the owner.
        #expect(try await texts(first, kept("kim")) == ["for a"])
        #expect(try await texts(second, kept("kim")) == ["cached for a"])
        #expect(await second.cache.remove(kept()))
        #expect(try await texts(second, kept()) == ["for b"])
        #expect(try await texts(first, kept()) == ["cached for a"])
        await first.shutdown()
        await second.shutdown()
    }

    @Test func theStoredRefusalOfATokenInAnyFieldIsNotThatOfTheNext() async throws {
        let stub = StubTransport { request in
            let headers: Headers = ["Cache-Control": "max-age=60"]
            if request.headers["X-Session"] != "new" { return .response(status: 401, headers: headers) }
            return .response(headers: headers, body: "content")
        }
        let agent = bench.agent(stub) { $0.authenticator = Session(token: "old") }
        #expect(try await texts(agent, kept(), kept()) == ["content", "cached content"])
        #expect(stub.requests.count == 2)
        await agent.shutdown()
    }
}
