import FerryCache
import FerrySynchronization
import FerryTesting
import FerryTransport
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs with `CachePolicy.http`: attacks and mistakes of runs, servers and users that the cache has to withstand.
@Suite(.timeLimit(.minutes(1))) struct HTTPCacheTrapTests {
    private let bench = CacheBench()

    /// An agent with a jar and a cache, before a server.
    private func agent(_ server: LoopbackServer) -> NetworkAgent {
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.keepsCookies = true
        configuration.cache = CacheConfiguration(directory: bench.path)
        return NetworkAgent(configuration: configuration)
    }

    private let session = Cookie(name: "session", value: "a", domain: "127.0.0.1")

    // MARK: Owners

    @Test func whatIsStoredForNobodyIsNotGivenFirstToWhoIsLoggedIn() async throws {
        let server = try LoopbackServer()
        server.handle("/x") { _ in
            LoopbackResponse(headers: ["Cache-Control": "max-age=60"], body: Array("hello".utf8))
        }
        let agent = agent(server)
        _ = try await agent.send(http())
        agent.cookies.set(session)
        let seen = Mutex(0)
        _ = try await agent.send(http(), cached: { _ in seen.withLock { $0 += 1 } })
        #expect(seen.withLock { $0 } == 0)
        agent.cookies.removeAll()
        _ = try await agent.send(http(), cached: { _ in seen.withLock { $0 += 1 } })
        #expect(seen.withLock { $0 } == 1)
        await agent.shutdown()
        server.stop()
    }

    @Test func whoLogsOutBetweenTwoHopsLeavesNothingBehind() async throws {
        let server = try LoopbackServer()
        let agent = agent(server)
        server.handle("/x") { _ in
            agent.cookies.removeAll()
            return LoopbackResponse(status: 302, headers: ["Location": "/y"])
        }
        server.handle("/y") { _ in
            LoopbackResponse(headers: ["Cache-Control": "max-age=60"], body: Array("mine".utf8))
        }
        agent.cookies.set(session)
        _ = try await agent.send(http())
        #expect(try await !agent.send(http(path: "/y")).isFromCache)
        await agent.shutdown()
        server.stop()
    }

    @Test func aResponseThatVariesByTheCookieIsNotReusedForAnotherCookieOfTheJar() async throws {
        let server = try LoopbackServer()
        server.handle("/x") { request in
            LoopbackResponse(
                headers: ["Cache-Control": "max-age=60", "Vary": "Cookie"],
                body: Array((request.headers["Cookie"] ?? "nobody").utf8))
        }
        let agent = agent(server)
        let kim = http(sensitiveData: "kim")
        #expect(try await texts(agent, kim, kim) == ["nobody", "cached nobody"])
        agent.cookies.set(session)
        #expect(try await texts(agent, kim) == ["session=a"])
        agent.cookies.set(Cookie(name: "session", value: "b", domain: "127.0.0.1"))
        #expect(try await texts(agent, kim) == ["session=b"])
        await agent.shutdown()
        server.stop()
    }

    /// Another token of the same owner may be accepted: the refusal of one is not stored for all of them.
    @Test func aRefusedTokenIsNotStoredForTheNextOne() async throws {
        let stub = StubTransport { request in
            if request.headers["Authorization"] == "new" { return .response(body: "welcome") }
            return .response(status: 401, headers: ["Cache-Control": "max-age=60"])
        }
        let token = Mutex("old")
        let signing = TokenOf { token.withLock { $0 } }
        let agent = bench.agent(stub) { $0.adapters = [signing] }
        #expect(try await agent.send(http(sensitiveData: "kim")).status == 401)
        token.withLock { $0 = "new" }
        #expect(try await texts(agent, http(sensitiveData: "kim")) == ["welcome"])
        await agent.shutdown()
    }

    private struct TokenOf: RequestAdapter {
        let token: @Sendable () -> String
        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
            request.headers["Authorization"] = token()
        }
    }

    // MARK: Requests

    @Test func aStaleResponseBehindAnUnsafeRequestIsNotRevalidatedByRepeatingIt() async throws {
        let stub = StubTransport { request in
            // With another origin, so that the POST does not invalidate it.
            if request.method == .post { return .redirect(to: "http://other.test/y", status: 303) }
            return .response(
                headers: ["Cache-Control": "max-age=60, stale-while-revalidate=60"], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, http(method: .post)) == ["answer 2"])
        bench.advance(by: .seconds(70))
        #expect(try await texts(agent, http(method: .post)) == ["answer 4"])
        await agent.shutdown()
        #expect(stub.requests.map(\.method) == [.post, .get, .post, .get])
    }

    @Test func aRetryAsksTheServerAndNotTheStoredFailure() async throws {
        let stub = StubTransport { request in
            request.number == 1
                ? .response(status: 503, headers: ["Cache-Control": "max-age=60"])
                : .response(body: "answer \(request.number)")
        }
        let agent = bench.agent(stub) { $0.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero) }
        #expect(try await texts(agent, http()) == ["answer 2"])
        await agent.shutdown()
    }

    @Test func whatTheCacheItselfAnswersIsNotRetried() async throws {
        let stub = counting()
        let agent = bench.agent(stub) { $0.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .seconds(600)) }
        #expect(try await agent.send(http(["Cache-Control": "only-if-cached"])).status == 504)
        #expect(stub.requests.isEmpty)
        await agent.shutdown()
    }

    // MARK: Freshness

    /// RFC 9111, 4.3.5: a new `Expires` counts from its arrival, not from the old `Date`.
    @Test func aResponseToHeadWithoutADateIsNoFresherThanItSays() async throws {
        let start = bench.now
        let stub = StubTransport { request in
            let isHead = request.method == .head
            let now = start + (isHead ? 3600 : 0)
            var headers: Headers = [
                "ETag": "\"a\"", "Expires": HTTPDate(secondsSince1970: now + 60).description,
            ]
            if !isHead { headers.append("Date", HTTPDate(secondsSince1970: now).description) }
            return .response(headers: headers, body: isHead ? "" : "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(http())
        bench.advance(by: .seconds(3600))
        _ = try await agent.send(http(["Cache-Control": "no-cache"], method: .head))
        #expect(try await texts(agent, http()) == ["cached answer 1"])
        bench.advance(by: .seconds(120))
        #expect(try await texts(agent, http()) == ["answer 3"])
        await agent.shutdown()
    }

    @Test func aResponseToHeadThatForbidsStoringTakesTheStoredOneAway() async throws {
        let stub = StubTransport { request in
            let isHead = request.method == .head
            let control = isHead ? "no-store, max-age=60" : "max-age=60"
            return .response(
                headers: ["Cache-Control": control, "ETag": "\"a\""], body: isHead ? "" : "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await agent.send(http())
        _ = try await agent.send(http(["Cache-Control": "no-cache"], method: .head))
        #expect(try await texts(agent, http()) == ["answer 3"])
        await agent.shutdown()
    }

    /// RFC 9111, 5.2.2.4
    @Test func aValidationThatForbidsToReuseAFieldTakesItOutOfTheStoredResponse() async throws {
        let stub = StubTransport { request in
            if request.headers.contains("If-None-Match") {
                return .response(
                    status: 304, headers: ["Cache-Control": "max-age=60, no-cache=\"X-Secret\"", "ETag": "\"a\""])
            }
            return .response(
                headers: ["Cache-Control": "max-age=60", "ETag": "\"a\"", "X-Secret": "1"], body: "answer")
        }
        let agent = bench.agent(stub)
        #expect(try await agent.send(http()).headers["X-Secret"] == "1")
        bench.advance(by: .seconds(60))
        _ = try await agent.send(http())
        let hit = try await agent.send(http())
        #expect(hit.isFromCache && hit.headers["X-Secret"] == nil)
        await agent.shutdown()
    }

    // MARK: Invalidation

    /// RFC 9111, 4.4, however the request is sent.
    @Test(arguments: ["progress", "stream", "download"])
    func anUnsafeRequestInvalidatesHoweverItIsSent(way: String) async throws {
        let stub = StubTransport { request in
            if request.method == .post { return .response(headers: ["Content-Location": "/y"], body: "done") }
            return .response(headers: ["Cache-Control": "max-age=60"], body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        _ = try await texts(agent, http(), http(path: "/y"))
        let post = http(method: .post)
        switch way {
        case "progress": _ = try await agent.send(post, uploadProgress: { _ in })
        case "stream": for try await _ in try await agent.stream(post).body {}
        default: _ = try await agent.download(post, to: .file(bench.path + ".download"))
        }
        try? FileManager.default.removeItem(atPath: bench.path + ".download")
        #expect(try await texts(agent, http(), http(path: "/y")) == ["answer 4", "answer 5"])
        await agent.shutdown()
    }

    @Test func aChangeIsRememberedThoughManyFollowAndTheClockIsSetBack() {
        let invalidations = Invalidations()
        let mark = invalidations.mark
        let (first, other) = (CacheKey(Array("first".utf8)), CacheKey(Array("other".utf8)))
        invalidations.note(first.digest)
        #expect(invalidations.isNoted(first, since: mark) && !invalidations.isNoted(other, since: mark))
        for index in 0..<10_000 { invalidations.note(CacheKey(Array("\(index)".utf8)).digest) }
        #expect(invalidations.isNoted(first, since: mark))
        let later = invalidations.mark
        #expect(!invalidations.isNoted(first, since: later) && !invalidations.isNoted(other, since: later))
        #expect(invalidations.count <= 4096)
    }

    // MARK: Hostile fields

    @Test func aVaryWithThousandsOfNamesIsNotStored() async throws {
        let names = (0..<20_000).map { "x\($0)" }.joined(separator: ",")
        #expect(VaryRules.names(["Vary": names]) == nil)
        let agent = bench.agent(counting(["Cache-Control": "max-age=60", "Vary": "Accept, \(names.prefix(2000))"]))
        #expect(try await texts(agent, http(), http()) == ["answer 1", "answer 2"])
        #expect(await agent.cache.statistics.refusals[.vary] == 2)
        await agent.shutdown()
    }

    /// Read naively, each of these takes time quadratic in its length.
    @Test func longFieldsAreReadInATimeThatGoesWithTheirLength() {
        let quotes = "\"" + String(repeating: "\\\"", count: 200_000)
        #expect(ResponseDirectives(CacheDirectiveList([quotes + ", no-store"])).noStore)
        let names = (0..<40_000).map { "x\($0)" }
        let list = ResponseDirectives(CacheDirectiveList(["no-cache=\"\(names.joined(separator: ","))\""]))
        let headers = Headers(names.map { Headers.Field(name: $0, value: "") })
        #expect(StoringRules.storedFields(headers, list, isShared: false).isEmpty)
        #expect(ValidationRules.updated(headers, by: Array(headers)).count == names.count)
    }

    /// A request with the tags of all variants must not become too long for the server.
    @Test func theTagsThatAreAskedForAreBounded() {
        let all = (0..<16).map { Validators(["ETag": "\"\(String(repeating: "\($0)", count: 2000))\""]) }
        let fields = ValidationRules.conditions(selected: all[3], all: all)
        #expect(fields.count == 1 && fields[0].value.hasPrefix(all[3].tag?.text ?? "none"))
        #expect(fields[0].value.utf8.count < 8000)
    }

    // MARK: By hand

    @Test(arguments: [true, false]) func aResponseIsSavedByHandAsTheServerWouldHaveIt(memory: Bool) async throws {
        let stub = StubTransport { request in
            var headers: Headers = ["ETag": "\"\(request.number)\"", "Vary": "Accept"]
            headers["Cache-Control"] = request.url.hasSuffix("/never") ? "no-store" : "max-age=60"
            return .response(headers: headers, body: "answer \(request.number)")
        }
        let agent = bench.agent(stub, memory: memory)
        let response = try await agent.send(Kept(path: "/z", cachePolicy: .none)).response
        let (a, b) = (http(["Accept": "a"]), http(["Accept": "b"]))
        #expect(await agent.cache.save(response, for: a))
        #expect(await agent.cache.save(response, for: b))
        #expect(try await texts(agent, a, b, http()) == ["cached answer 1", "cached answer 1", "answer 2"])
        bench.advance(by: .seconds(60))
        #expect(try await texts(agent, a) == ["answer 3"])
        let never = try await agent.send(Kept(path: "/never", cachePolicy: .none)).response
        #expect(await agent.cache.save(never, for: http(path: "/never")) == false)
        #expect(await agent.cache.save(response, for: http(method: .post)) == false)
        await agent.shutdown()
    }
}
