import FerryCache
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The HTTP cache where other features meet it: forms of its policy, shared transfers, the jar, the authenticator, and
/// a store that is slow.
@Suite(.timeLimit(.minutes(1))) struct HTTPCacheMeetingTests {
    private let bench = CacheBench()
    private let lasting: Headers = ["Cache-Control": "max-age=3600"]

    private func kept(_ policy: CachePolicy, _ change: (inout Kept) -> Void = { _ in }) -> Kept {
        var request = Kept(cachePolicy: policy, statusValidation: .any)
        change(&request)
        return request
    }

    /// An agent with a jar and a cache, before a server.
    private func keepingCookies(_ server: LoopbackServer) -> NetworkAgent {
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.keepsCookies = true
        configuration.cache = CacheConfiguration(directory: bench.path)
        return NetworkAgent(configuration: configuration)
    }

    private func isOwned(_ policy: CachePolicy) -> Bool { policy.http.map { $0.sensitiveData != .none } ?? false }

    /// RFC 9111, 4.4: also what was stored in another form of the policy, for the same user or for nobody.
    @Test func anUnsafeRequestInvalidatesAllFormsOfThePolicy() async throws {
        let agent = bench.agent(counting(["Cache-Control": "public, max-age=3600"]))
        let forms: [CachePolicy] = [
            .http(write: .synchronous), .http(shared: true, write: .synchronous),
            .http(sensitiveData: "kim", write: .synchronous),
        ]
        for own in forms {
            for other in forms {
                let (get, post) = (kept(other), kept(own) { $0.method = .post })
                _ = try await agent.send(get)
                let isHit = try await agent.send(get).isFromCache
                #expect(isHit)
                _ = try await agent.send(post)
                let isHitAgain = try await agent.send(get).isFromCache
                // What belongs to another user stays.
                #expect(isHitAgain == (isOwned(other) && !isOwned(own)))
            }
        }
        await agent.shutdown()
    }

    /// Also if an adapter adds what identifies the user, which the key leaves out because the policy names the user.
    @Test func anUnsafeRequestInvalidatesWhatAnAdapterIdentifies() async throws {
        let agent = bench.agent(counting(lasting)) {
            $0.adapters = [Adapt { request, _ in request.headers["Cookie"] = "s=1" }]
        }
        let get = kept(.http(write: .synchronous))
        #expect(try await texts(agent, get, get) == ["answer 1", "cached answer 1"])
        _ = try await agent.send(kept(.http(sensitiveData: "kim")) { $0.method = .post })
        #expect(try await texts(agent, get) == ["answer 3"])
        await agent.shutdown()
    }

    /// It was not sent with the request that it answers, and leaves nothing for others.
    @Test(arguments: [
        ("Max-Age=0", true), ("max-age = -1; Path=/", true), ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", true),
        ("Expires=Wed, 31 Dec 1969 23:00:00 GMT", false), ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9", false),
    ]) func aResponseThatOnlyRemovesCookiesIsStored(attribute: String, isRemoval: Bool) async throws {
        let server = try LoopbackServer()
        let agent = keepingCookies(server)
        server.handle("/x") { request in
            let isValidated = request.headers["If-None-Match"] != nil
            return LoopbackResponse(
                status: isValidated ? 304 : 200,
                headers: ["Cache-Control": "max-age=60", "ETag": "\"a\"", "Set-Cookie": "a=; \(attribute)"],
                text: isValidated ? "" : "page")
        }
        let request = kept(.http(write: .synchronous))
        if !isRemoval {
            #expect(try await texts(agent, request) == ["page"])
            #expect(await agent.cache.statistics.entries == 0)
            await agent.shutdown()
            return server.stop()
        }
        #expect(try await texts(agent, request, request) == ["page", "cached page"])
        let validating = kept(.http(write: .synchronous)) { $0.cacheMode = .revalidate }
        #expect(try await agent.send(validating).cacheStatus?.forwardStatus == 304)
        #expect(try await texts(agent, request) == ["cached page"])
        #expect(server.requestCount == 2)
        await agent.shutdown()
        server.stop()
    }

    /// Its response is not for everybody, but it says nothing against what is stored.
    @Test(arguments: [CacheMode.revalidate, .cacheElseNetwork])
    func aValidationThatBringsACookieRemovesNothing(mode: CacheMode) async throws {
        let server = try LoopbackServer()
        let agent = keepingCookies(server)
        server.handle("/x") { request in
            let isValidated = request.headers["If-None-Match"] != nil
            // One that is never fresh is validated in any mode.
            let directive = mode == .revalidate ? "max-age=60" : "no-cache"
            var headers: LoopbackHeaders = ["Cache-Control": directive, "ETag": "\"a\""]
            if isValidated { headers["Set-Cookie"] = "a=1" }
            return LoopbackResponse(status: isValidated ? 304 : 200, headers: headers, text: isValidated ? "" : "page")
        }
        #expect(try await texts(agent, kept(.http(write: .synchronous))) == ["page"])
        let validating = kept(.http(write: .synchronous)) { $0.cacheMode = mode }
        #expect(try await agent.send(validating).value == "page")
        agent.cookies.removeAll()
        #expect(await agent.cache.statistics.entries == 1)
        await agent.shutdown()
        server.stop()
    }

    /// The key of a request needs no body, which may have been read already.
    @Test func aRequestWhoseBodyIsGoneIsRemoved() async throws {
        let agent = bench.agent(counting(lasting))
        let (get, policy) = (kept(.http(write: .synchronous)), CachePolicy.http(write: .synchronous))
        #expect(try await texts(agent, get) == ["answer 1"])
        let missing = RequestBody.file("/nowhere/at-all")
        #expect(await agent.cache.remove(Kept(method: .put, body: missing, cachePolicy: policy)))
        #expect(try await texts(agent, get) == ["answer 2"])
        await agent.shutdown()
    }

    /// The transfer in progress would return what was there before the change.
    @Test func aGETAfterAChangeDoesNotJoinATransferFromBeforeIt() async throws {
        let stub = StubTransport { request in
            if request.method == .post { return .response() }
            return request.number == 1 ? .hold : .response(headers: ["Cache-Control": "max-age=60"], body: "new")
        }
        let agent = bench.agent(stub)
        let request = kept(.http(write: .synchronous)) { $0.coalesces = true }
        let first = Task { try await agent.send(request).value }
        await stub.waitForHeld(1)
        _ = try await agent.send(kept(.http()) { $0.method = .post })
        #expect(try await agent.send(request).value == "new")
        stub.releaseAll(with: .response(headers: lasting, body: "old"))
        #expect(try await first.value == "old")
        #expect(try await texts(agent, request) == ["cached new"])
        await agent.shutdown()
    }

    /// It gets the cookie when it leaves the queue, and by the time of the response the user has logged out.
    @Test(arguments: [CachePolicy.http(write: .synchronous), .timeToLive(.seconds(60), write: .synchronous)])
    func whoLogsInWhileARequestWaitsIsNotTakenForNobody(policy: CachePolicy) async throws {
        let server = try LoopbackServer()
        let agent = keepingCookies(server)
        server.handle("/x") { _ in
            agent.cookies.set(Cookie(name: "session", value: "a", domain: "127.0.0.1"))
            agent.cookies.removeAll()
            return LoopbackResponse(headers: ["Cache-Control": "max-age=3600"], text: "page")
        }
        #expect(try await agent.send(kept(policy)).value == "page")
        #expect(await agent.cache.statistics.refusals[.unknownCredentials] == 1)
        await agent.shutdown()
        server.stop()
    }

    /// With a time to live, too, a response that varies by cookies is not reused: only the transport knows them.
    @Test func whatVariesByCookiesOfTheJarIsNotKept() async throws {
        let server = try LoopbackServer()
        let agent = keepingCookies(server)
        server.handle("/x") { request in
            LoopbackResponse(headers: ["Vary": "Cookie"], text: request.headers["Cookie"] ?? "none")
        }
        let request = kept(.timeToLive(.seconds(60), sensitiveData: "kim", write: .synchronous))
        for language in ["de", "en"] {
            agent.cookies.set(Cookie(name: "lang", value: language, domain: "127.0.0.1"))
            #expect(try await texts(agent, request) == ["lang=\(language)"])
        }
        await agent.shutdown()
        server.stop()
    }

    /// In a shared cache they are in no key, but they are the request's `Authorization`.
    @Test func userAndPasswordInAURLSelectAVariant() async throws {
        let agent = bench.agent(counting(["Cache-Control": "public, max-age=600", "Vary": "Authorization"]))
        let policy = CachePolicy.http(shared: true, write: .synchronous)
        let anonymous = kept(policy) { $0.path = "http://h.test/x" }
        let known = kept(policy) { $0.path = "http://u:p@h.test/x" }
        #expect(try await texts(agent, anonymous, known) == ["answer 1", "answer 2"])
        #expect(try await texts(agent, anonymous, known) == ["cached answer 1", "cached answer 2"])
        await agent.shutdown()
    }

    private struct Custom: Request {
        typealias Value = String
        var cachePolicy: CachePolicy { .http(write: .synchronous) }
        var path: String { "" }
        var prebuiltRequest: OutgoingRequest? { OutgoingRequest(method: .get, url: "http://h.test/b") }
    }

    @Test func aPrebuiltRequestIsRemovedByItsOwnKey() async throws {
        let agent = bench.agent(counting(lasting)) { $0.baseURL = "http://h.test" }
        let base = kept(.http(write: .synchronous)) { $0.path = "" }
        #expect(try await texts(agent, base) == ["answer 1"])
        #expect(try await agent.send(Custom()).value == "answer 2")
        #expect(await agent.cache.remove(Custom()))
        #expect(try await agent.send(Custom()).value == "answer 3")
        #expect(try await texts(agent, base) == ["cached answer 1"])
        await agent.shutdown()
    }

    /// Says that its token has expired, and cannot get another.
    private struct Expired: Authenticator {
        let token: String?
        let refreshes: Tally
        func apply(_ token: String, to request: inout OutgoingRequest) { request.headers["Authorization"] = token }
        func expiration(of token: String) -> Date? { token == "old" ? .distantPast : nil }
        func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String {
            refreshes.add()
            throw CancellationError()
        }
    }

    /// No token is fetched to forget what belongs to a user, or to store something under the user's key.
    @Test(arguments: [nil, "old"]) func whatIsRemovedAndSavedByHandStartsNoRefresh(token: String?) async throws {
        let refreshes = Tally()
        func agent(_ token: String?) -> NetworkAgent {
            bench.agent(counting(lasting)) { $0.authenticator = Expired(token: token, refreshes: refreshes) }
        }
        let (owned, own) = (kept(.http(sensitiveData: "kim", write: .synchronous)), kept(.http(write: .synchronous)))
        let first = agent("new")
        let response = try await first.send(owned).response
        #expect(try await texts(first, owned) == ["cached answer 1"])
        await first.shutdown()
        let second = agent(token)
        #expect(await second.cache.remove(owned))
        #expect(await second.cache.statistics.entries == 0)
        #expect(await second.cache.save(response, for: owned))
        // Without a token its owner is unknown.
        #expect(await second.cache.save(response, for: own) == (token != nil))
        #expect(refreshes.value == 0)
        await second.shutdown()
    }

    @Test func whatAnAdapterTellsApartIsRemovedAndSavedByHand() async throws {
        let user = Mutex("a")
        let agent = bench.agent(counting(lasting)) {
            $0.adapters = [Adapt { request, _ in request.headers["Authorization"] = user.withLock { $0 } }]
        }
        let request = kept(.http(write: .synchronous))
        #expect(try await texts(agent, request, request) == ["answer 1", "cached answer 1"])
        let response = try await agent.send(request).response
        #expect(await agent.cache.remove(request))
        #expect(try await texts(agent, request) == ["answer 2"])
        user.withLock { $0 = "b" }
        #expect(await agent.cache.save(response, for: request))
        #expect(try await texts(agent, request) == ["cached answer 1"])
        user.withLock { $0 = "a" }
        #expect(try await texts(agent, request) == ["cached answer 2"])
        await agent.shutdown()
    }

    @Test func whatAnAdapterCannotTellIsNotSaidToBeRemoved() async throws {
        let isLocked = Mutex(false)
        let agent = bench.agent(counting(lasting)) {
            $0.adapters = [
                Adapt { request, _ in
                    if isLocked.withLock({ $0 }) { throw CancellationError() }
                    request.headers["Authorization"] = "a"
                }
            ]
        }
        let request = kept(.http(write: .synchronous))
        _ = try await agent.send(request)
        isLocked.withLock { $0 = true }
        #expect(await !agent.cache.remove(request))
        isLocked.withLock { $0 = false }
        #expect(try await texts(agent, request) == ["cached answer 1"])
        await agent.shutdown()
    }

    /// The credential is in no field, but it tells users apart: also if a validation is answered with a new version.
    @Test func whatAUserOfDigestGetsIsForThatUser() async throws {
        let stub = StubTransport { request in
            .response(
                headers: ["Cache-Control": "max-age=10", "ETag": "\"\(request.number)\""],
                body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        let anonymous = kept(.http(write: .synchronous))
        let known = kept(.http(write: .synchronous)) { $0.authorization = .digest("kim", "pw") }
        #expect(try await texts(agent, known) == ["answer 1"])
        bench.advance(by: .seconds(10))
        #expect(try await texts(agent, known, known) == ["answer 2", "cached answer 2"])
        #expect(try await texts(agent, anonymous) == ["answer 3"])
        let response = try await agent.send(known).response
        #expect(await agent.cache.remove(anonymous))
        #expect(await agent.cache.save(response, for: known))
        #expect(try await texts(agent, known, anonymous) == ["cached answer 2", "answer 4"])
        await agent.shutdown()
    }

    // MARK: Stores that are slow

    /// A run sees what was stored last, also while that waits to be written.
    @Test(arguments: [CachePolicy.http(), .timeToLive(.seconds(60))])
    func whatWaitsToBeWrittenIsFound(policy: CachePolicy) async throws {
        let store = HeldWrites()
        let agent = bench.agent(counting(lasting), memory: false) { $0.cache?.storage = { store } }
        let request = kept(policy)
        #expect(try await texts(agent, request) == ["answer 1"])
        store.holds()
        #expect(try await agent.send(request, cache: .reload).value == "answer 2")
        #expect(try await texts(agent, request) == ["cached answer 2"])
        store.release()
        #expect(try await texts(agent, request) == ["cached answer 2"])
        // And a removal counts, too.
        store.holds()
        #expect(try await agent.send(request, cache: .reload).value == "answer 3")
        let removal = Task { await agent.cache.remove(request) }
        #expect(await eventually { store.hasRemoved })
        #expect(try await texts(agent, request) == ["answer 4"])
        store.release()
        #expect(await removal.value)
        await agent.shutdown()
    }
}

/// A store that keeps writes to itself until it is released.
private final class HeldWrites: SampleStorage, @unchecked Sendable {
    private struct State {
        var isHolding = false
        var hasRemoved = false
        var held: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    func holds() { state.withLock { $0.isHolding = true } }
    var hasRemoved: Bool { state.withLock { $0.hasRemoved } }

    func release() {
        let held = state.withLock { state in
            defer { (state.held, state.isHolding) = ([], false) }
            return state.held
        }
        for one in held { one() }
    }

    override func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
        hold { [memory] in memory.write(entry, under: key, done) }
    }

    override func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
        hold { [memory] in memory.remove(key, done) }
        state.withLock { $0.hasRemoved = true }
    }

    private func hold(_ work: @escaping @Sendable () -> Void) {
        let isHeld = state.withLock { state in
            if state.isHolding { state.held.append(work) }
            return state.isHolding
        }
        if !isHeld { work() }
    }
}
