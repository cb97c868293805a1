import CAllocations
import FerryCache
import FerryJSON
import FerrySynchronization
import FerryTesting
import FerryTransport
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The owners of responses: one user's response is never served to another.
@Suite(.timeLimit(.minutes(1))) struct CacheOwnerTests {
    private let bench = CacheBench()

    /// An agent with a jar and a cache, before a server.
    private func agent(_ server: LoopbackServer) -> NetworkAgent {
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.keepsCookies = true
        configuration.cache = CacheConfiguration(directory: bench.path)
        return NetworkAgent(configuration: configuration)
    }

    private let session = Cookie(name: "session", value: "a", domain: "127.0.0.1")

    @Test func whatWasKeptForNobodyAnswersNoneWhoIsLoggedIn() async throws {
        let server = try LoopbackServer()
        server.handle("/x") { _ in LoopbackResponse(body: Array("hello".utf8)) }
        let agent = agent(server)
        #expect(try await texts(agent, Kept(), Kept()) == ["hello", "cached hello"])
        agent.cookies.set(session)
        let error = await fault { try await agent.send(Kept(), cache: .cacheOnly) }
        #expect(error == .notCached(.unknownCredentials))
        #expect(try await agent.send(Kept()).cacheMiss == .unknownCredentials && server.requestCount == 2)
        // A user who has logged out finds it again; if the policy names an owner, that owner does.
        agent.cookies.removeAll()
        #expect(try await texts(agent, Kept()) == ["cached hello"])
        agent.cookies.set(session)
        let owned = Kept(cachePolicy: .timeToLive(.seconds(60), sensitiveData: "a"))
        #expect(try await texts(agent, owned, owned) == ["hello", "cached hello"])
        await agent.shutdown()
        server.stop()
    }

    @Test func whoLogsOutMeanwhileLeavesNothingBehind() async throws {
        let server = try LoopbackServer()
        let agent = agent(server)
        server.handle("/x") { request in
            // It is in progress with the cookie.
            agent.cookies.removeAll()
            return LoopbackResponse(body: Array((request.headers["Cookie"] ?? "nobody").utf8))
        }
        agent.cookies.set(session)
        #expect(try await texts(agent, Kept(), Kept(), Kept()) == ["session=a", "nobody", "cached nobody"])
        #expect(await agent.cache.statistics.refusals[.unknownCredentials] == 1)
        await agent.shutdown()
        server.stop()
    }

    @Test func aFullJarCostsALookUpNoMoreThanAnEmptyOne() async throws {
        let server = try LoopbackServer()
        server.handle("/set") { _ in LoopbackResponse(headers: ["Set-Cookie": "other=1; Path=/"]) }
        let agent = agent(server)
        let transport = agent.core.transport
        func blocks() -> Int {
            let before = allocations_of_thread()
            for _ in 0..<100 { _ = agent.core.hasCookies }
            return Int(allocations_of_thread() - before)
        }
        #expect(blocks() == 0 && !agent.core.hasCookies)
        for index in 0..<1000 {
            agent.cookies.set(Cookie(name: "n", value: "\(index)", domain: "h\(index).example"))
        }
        #expect(agent.core.hasCookies)
        #expect(blocks() == 0 && transport.cookies.count == 1000)
        // A response that sets another cookie does not make the next lookup more expensive, either.
        _ = try await agent.send(Get("/set"))
        #expect(blocks() == 0 && transport.cookies.count == 1001)
        agent.cookies.removeAll()
        #expect(!agent.core.hasCookies && blocks() == 0)
        await agent.shutdown()
        server.stop()
    }

    @Test func whatAnAdapterSendsElsewhereIsNobodys() async throws {
        struct Changing: RequestAdapter {
            let change: @Sendable (inout OutgoingRequest) -> Void
            func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws { change(&request) }
        }
        let changes: [@Sendable (inout OutgoingRequest) -> Void] = [
            { $0.url += "?user=a" }, { $0.method = .post }, { $0.body = .string("a") },
        ]
        for change in changes {
            let stub = counting()
            let bench = CacheBench()
            let agent = bench.agent(stub) { $0.adapters = [Changing(change: change)] }
            #expect(try await texts(agent, Kept(), Kept()) == ["answer 1", "answer 2"])
            #expect(await agent.cache.statistics.refusals[.unknownCredentials] == 2)
            let owned = Kept(cachePolicy: .timeToLive(.seconds(60), sensitiveData: "a"))
            #expect(try await texts(agent, owned, owned) == ["answer 3", "cached answer 3"])
            await agent.shutdown()
        }
        // A response that changes none of these does no harm.
        let agent = bench.agent(counting()) { $0.adapters = [Changing { $0.headers["X"] = "1" }] }
        #expect(try await texts(agent, Kept(), Kept()) == ["answer 1", "cached answer 1"])
        await agent.shutdown()
    }

    /// Its user changes with every reading, as if the application switched users at that moment.
    private struct Switching: Request {
        final class Session: Sendable {
            private let readings = Mutex<[String: Int]>([:])

            /// The number of the reading.
            func user(_ member: String) -> String {
                readings.withLock { readings in
                    readings[member, default: 0] += 1
                    return "user\(readings[member] ?? 0)"
                }
            }
        }

        typealias Value = String
        let session = Session()
        var isPrebuilt = false
        var path: String { "/" + session.user("path") }
        let method = HTTPMethod.put
        var headers: Headers { ["X-Token": session.user("headers")] }
        var authorization: Authorization? { .bearer(session.user("authorization")) }
        var body: RequestBody? { .string(session.user("body")) }
        let cachePolicy = CachePolicy.timeToLive(.seconds(60), write: .synchronous)
        var prebuiltRequest: OutgoingRequest? {
            guard isPrebuilt else { return nil }
            let user = session.user("prebuilt")
            let headers: Headers = ["X-Token": user, "Authorization": "Bearer " + user]
            return OutgoingRequest(method: .put, url: "http://h/" + user, headers: headers, body: .string(user))
        }
    }

    /// Otherwise a response for one user could be stored under the key of another.
    @Test(arguments: Way.allCases, [false, true])
    func theKeyAndTheTransferAreOfOneReading(way: Way, isPrebuilt: Bool) async throws {
        let bench = CacheBench()
        let stub = StubTransport { request in
            let fields = [request.headers["X-Token"], request.headers["Authorization"], request.text]
            return .response(body: ([request.url] + fields.map { $0 ?? "none" }).joined(separator: " "))
        }
        let agent = bench.agent(stub)
        let reply = try await agent.result(Switching(isPrebuilt: isPrebuilt), way).get()
        #expect(reply.value == "http://h/user1 user1 Bearer user1 user1")
        var stored = Kept(path: "/user1", method: .put, headers: ["X-Token": "user1"], body: .string("user1"))
        stored.authorization = .bearer("user1")
        if isPrebuilt {
            let headers: Headers = ["X-Token": "user1", "Authorization": "Bearer user1"]
            stored.prebuiltRequest = OutgoingRequest(
                method: .put, url: "http://h/user1", headers: headers, body: .string("user1"))
        }
        let found = try await agent.cache.reply(for: stored).value
        #expect(found == reply.value)
        await agent.shutdown()
    }

    /// The application switches users between two readings of the arguments: the key would have those of the other.
    @Test func argumentsThatChangeMeanwhileHaveNoKey() async throws {
        struct Changing: Request {
            typealias Value = String
            let path = "/x"
            let session = Switching.Session()
            let cachePolicy = CachePolicy.timeToLive(.seconds(60), write: .synchronous)
            var arguments: Arguments { ["user": .string(session.user("arguments"))] }
        }
        let agent = bench.agent(counting())
        #expect(try await agent.send(Changing()).value == "answer 1")
        #expect(await agent.cache.statistics.entries == 0)
        await agent.shutdown()
    }

    /// Who switches users while a run waits: the response varies by what was sent, not by what the request says now.
    @Test(
        arguments: [CachePolicy.timeToLive(.seconds(60), write: .synchronous), .http(write: .synchronous)],
        ["X-Tenant", "Accept"])
    func aResponseVariesByWhatWasSent(policy: CachePolicy, field: String) async throws {
        final class Tenant: Sendable {
            let name = Mutex("a")
        }
        struct Owned: Request {
            typealias Value = String
            let path = "/x"
            let tenant: Tenant
            let cachePolicy: CachePolicy
            let field: String
            private var name: String { tenant.name.withLock { $0 } }
            var headers: Headers { field == "X-Tenant" ? [field: name] : Headers() }
            var acceptedContentTypes: [String]? { field == "Accept" ? ["text/" + name, "text/any"] : nil }
        }
        let stub = StubTransport { request in
            if request.number == 1 { return .hold }
            return .response(headers: ["Vary": field, "Content-Type": "text/any"], body: "of b")
        }
        let agent = bench.agent(stub)
        let request = Owned(tenant: Tenant(), cachePolicy: policy, field: field)
        let first = Task { try await agent.send(request).value }
        await stub.waitForHeld(1)
        request.tenant.name.withLock { $0 = "b" }
        let kept: Headers = ["Vary": field, "Cache-Control": "max-age=60", "Content-Type": "text/any"]
        stub.releaseAll(with: .response(headers: kept, body: "of a"))
        #expect(try await first.value == "of a")
        request.tenant.name.withLock { $0 = "a" }
        let hit = try await agent.send(request)
        #expect(hit.value == "of a" && hit.isFromCache)
        request.tenant.name.withLock { $0 = "b" }
        #expect(try await agent.send(request).value == "of b")
        await agent.shutdown()
    }

    /// Without a jar there are no other cookies than those that the request shows.
    @Test func aTokenDoesNotMakeAVariantByCookiesUnknown() async throws {
        struct Fixed: Authenticator {
            let token: String? = "t"
            func apply(_ token: String, to request: inout OutgoingRequest) { request.headers["Authorization"] = token }
            func refresh(_ old: String?, with agent: NetworkAgent) async throws -> String { "t" }
        }
        let agent = bench.agent(counting(["Vary": "Cookie"])) { $0.authenticator = Fixed() }
        let owned = Kept(cachePolicy: .timeToLive(.seconds(60), sensitiveData: "kim", write: .synchronous))
        #expect(try await texts(agent, owned, owned) == ["answer 1", "cached answer 1"])
        await agent.shutdown()
    }

    @Test func runsOfOtherOwnersShareNoTransfer() async throws {
        let stub = StubTransport { _ in .hold }
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let outcomes = ["a", "b", "a"].map { owner in
            let outcome = Outcome<String>()
            let policy = CachePolicy.timeToLive(.seconds(60), sensitiveData: owner)
            agent.start(Kept(cachePolicy: policy, coalesces: true), completion: outcome.take)
            return outcome
        }
        await stub.waitForHeld(2)
        stub.releaseAll()
        await stub.answersAll("") { for outcome in outcomes { _ = try? await outcome.result.get() } }
        #expect(stub.requests.count >= 2)
        await agent.shutdown()
    }

    @Test func withCookiesNothingIsShared() async throws {
        let server = try LoopbackServer()
        let agent = agent(server)
        let arrived = Mutex(0)
        let both = OneShot<Void>()
        server.handle("/x") { _ in
            // The first waits for the second, which comes only if they do not share.
            let count = arrived.withLock { count in
                count += 1
                return count
            }
            if count == 2 { both.finish(()) } else { await both.value() }
            return LoopbackResponse(body: Array("hello".utf8))
        }
        agent.cookies.set(session)
        let request = Kept(cachePolicy: .none, coalesces: true)
        async let first = agent.send(request).value
        async let second = agent.send(request).value
        #expect(try await [first, second] == ["hello", "hello"] && server.requestCount == 2)
        await agent.shutdown()
        server.stop()
    }

    @Test func aCertificateIsKnownByWhatStandsInItsFile() throws {
        try FileManager.default.createDirectory(atPath: bench.path, withIntermediateDirectories: true)
        let file = bench.path + "/client.pem"
        let certificate = ClientCertificate(certificateFile: file, keyFile: file)
        #expect(certificate.identity == file, "it is not there")
        try Data("a".utf8).write(to: URL(filePath: file))
        let first = certificate.identity
        try Data("b".utf8).write(to: URL(filePath: file))
        #expect(first != certificate.identity && first != file)
    }
}

/// The contents of memory, and what stays there.
@Suite(.timeLimit(.minutes(1))) struct CacheMemoryTests {
    private let bench = CacheBench()

    @Test func noDocumentStaysWithAnAnswerInMemory() async throws {
        let agent = bench.agent(StubTransport(always: .response(body: #"{"a": 1}"#)))
        var request = HTTPRequest(.get, "/x", as: JSON.self)
        request.cachePolicy = .timeToLive(.seconds(60))
        let first = try await agent.send(request)
        let second = try await agent.send(request)
        #expect(second.isFromCache && second.value["a"]?.int == 1 && first.value["a"]?.int == 1)
        #expect(second.response.result === first.response.result && second.response.result.reading == nil)
        await agent.shutdown()
    }

    /// A reader of a response as JSON holds its document; the entry in memory does not.
    @Test func noDocumentStaysThatIsReadLater() async throws {
        var request = HTTPRequest(.get, "/x")
        request.cachePolicy = .timeToLive(.seconds(60))
        let agent = bench.agent(StubTransport(always: .response(body: #"{"a": [1, 2, 3]}"#)))
        for isHit in [false, true, true] {
            weak var document: JSONDocument?
            do {
                let reply = try await agent.send(request)
                #expect(reply.isFromCache == isHit)
                let copy = reply.response
                #expect(try reply.json?["a"]?[1]?.int == 2)
                document = copy.reading as? JSONDocument
                #expect(document != nil, "it is parsed once for all copies")
                #expect(try reply.json?.document === document && copy.json?.document === document)
                #expect(reply.response.result.reading == nil)
            }
            #expect(document == nil)
            #expect(await agent.cache.statistics.memoryEntries == 1)
        }
        // An entry that is saved by hand is the caller's, too.
        let other = NetworkAgent.with(StubTransport(always: .response(body: #"{"b": 4}"#)))
        let foreign = try await other.send(Get()).response
        #expect(await agent.cache.save(foreign, for: request))
        #expect(try foreign.json?["b"]?.int == 4)
        let hit = try await agent.send(request)
        #expect(hit.isFromCache && hit.response.result === foreign.result && foreign.result.reading == nil)
        await other.shutdown()
        await agent.shutdown()
    }

    @Test func aNewerAnswerThatIsNotKeptTakesTheOlderAway() async throws {
        let stub = StubTransport {
            .response(headers: $0.number == 2 ? ["Cache-Control": "no-store"] : [:], body: "answer \($0.number)")
        }
        let agent = bench.agent(stub)
        #expect(try await texts(agent, Kept(), Kept()) == ["answer 1", "cached answer 1"])
        #expect(try await agent.send(Kept(), cache: .reload).value == "answer 2")
        #expect(try await texts(agent, Kept()) == ["answer 3"])
        await agent.shutdown()
    }

    @Test func whatHasNoBodyInMemoryIsNotSaved() async throws {
        let agent = bench.agent(StubTransport(always: .response(body: "hello")))
        try FileManager.default.createDirectory(atPath: bench.path, withIntermediateDirectories: true)
        let server = try LoopbackServer()
        let loader = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
        let file = try await loader.download(Get("/bytes/100"), to: .file(bench.path + "/f"))
        #expect(await agent.cache.save(file.response, for: Kept()) == false)
        #expect(await fault { try await agent.cache.reply(for: Kept()) } == .notCached(.notFound))
        await loader.shutdown()
        await agent.shutdown()
        server.stop()
    }

    @Test func noTimeOfARecordIsTooFarAway() throws {
        let result = try TransferResult(id: 1, head: Array("HTTP/1.1 200 OK\r\n\r\n".utf8), body: [])
        for time in [Int64.min, 0, .max] {
            let stored = StoredResponse(result, .init(stored: time), CacheAttributes())
            #expect(stored.isUsed(at: 1_000_000_000_000))
        }
    }
}
