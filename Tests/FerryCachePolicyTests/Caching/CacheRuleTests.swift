import FaultTable
import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// What is not stored, and for whom.
@Suite(.faultTable) struct CacheRuleTests {
    private let bench = CacheBench()

    /// Why the first response is not stored; `nil` if it is.
    private func refusal(
        _ headers: Headers, _ request: Kept = Kept(), status: Int = 200,
        _ change: (inout NetworkConfiguration) -> Void = { _ in }
    ) async throws -> CacheRefusal? {
        let bench = CacheBench()
        let agent = bench.agent(counting(headers, status: status), change)
        _ = try await agent.send(request)
        let isKept = try await agent.send(request).isFromCache
        let refusals = await agent.cache.statistics.refusals
        #expect(isKept == refusals.isEmpty)
        await agent.shutdown()
        return refusals.keys.first
    }

    @Test("R104: responses that must not be stored are not") func responsesThatMustNotBeStoredAreNot() async throws {
        #expect(try await refusal(["Cache-Control": "no-store"]) == .noStore)
        #expect(try await refusal(["Cache-Control": "max-age=5, NO-STORE "]) == .noStore)
        #expect(try await refusal([:], Kept(headers: ["Cache-Control": "no-store"])) == .noStore)
        #expect(try await refusal([:], Kept(headers: ["Cache-Control": "max-age=0,\tNo-Store"])) == .noStore)
        #expect(try await refusal([:], Kept()) { $0.headers = ["Cache-Control": "no-store"] } == .noStore)
        let own = Kept(headers: ["Cache-Control": "max-age=0"])
        #expect(try await refusal([:], own) { $0.headers = ["Cache-Control": "no-store"] } == nil)
        #expect(try await refusal(["Vary": "*"]) == .vary)
        #expect(try await refusal([:], status: 206) == .partial)
        #expect(try await refusal([:], Kept(isWanted: false)) == .request)
    }

    @Test func whatTheServerSaysOfFreshnessIsTheApplicationsToKnowBetter() async throws {
        #expect(try await refusal(["Cache-Control": "no-cache, max-age=0", "Expires": "0"]) == nil)
        #expect(try await refusal(["Cache-Control": "public", "Vary": "Accept-Encoding"]) == nil)
    }

    @Test("R104: a user's response is stored only if the user is known")
    func whatIsOneUsersIsKeptOnlyWhereItIsKnownWhose() async throws {
        for headers: Headers in [["Cache-Control": "private"], ["Set-Cookie": "s=1"]] {
            #expect(try await refusal(headers) == .notShared)
            #expect(try await refusal(headers, Kept(authorization: .bearer("a"))) == nil)
            let owned = Kept(cachePolicy: .timeToLive(.seconds(60), sensitiveData: "kim"))
            #expect(try await refusal(headers, owned) == nil)
        }
    }

    @Test("R104: a cookie is set once, not again by hits") func aCookieIsSetOnceAndNotByHits() async throws {
        for memory in [true, false] {
            let bench = CacheBench()
            let agent = bench.agent(counting(["Set-Cookie": "s=1", "X-A": "1"]), memory: memory)
            let request = Kept(authorization: .bearer("a"))
            #expect(try await agent.send(request).headers["Set-Cookie"] == "s=1")
            let hit = try await agent.send(request)
            #expect(hit.isFromCache)
            #expect(hit.headers["Set-Cookie"] == nil)
            #expect(hit.headers["X-A"] == "1")
            await agent.shutdown()
        }
    }

    @Test func onlyWhatPassedValidationIsKept() async throws {
        let stub = StubTransport(responses: [.response(status: 500), .response(body: "good")])
        let agent = bench.agent(stub)
        #expect(await fault { try await agent.send(Kept()) } == .invalidStatusCode(500))
        #expect(try await texts(agent, Kept(), Kept()) == ["good", "cached good"])
        await agent.shutdown()
    }

    @Test func aValueThatCannotBeMadeIsNotKept() async throws {
        var number = HTTPRequest(.get, "/n", as: Int.self)
        number.cachePolicy = .timeToLive(.seconds(60), write: .synchronous)
        let stub = StubTransport(responses: [.response(body: "[]"), .response(body: "7")])
        let agent = bench.agent(stub)
        #expect(await fault { try await agent.send(number) } == .decoding)
        #expect(try await agent.send(number).value == 7)
        #expect(try await agent.send(number).isFromCache)
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func theFieldsThatAnAnswerVariesByTellRequestsApart(memory: Bool) async throws {
        let agent = bench.agent(counting(["Vary": "Accept-Language, X-B"]), memory: memory)
        let german = Kept(headers: ["Accept-Language": "de"])
        let english = Kept(headers: ["accept-language": "en"])
        #expect(try await texts(agent, german, german) == ["answer 1", "cached answer 1"])
        #expect(try await agent.send(english).cacheMiss == .varyMismatch)
        #expect(try await agent.send(Kept()).cacheMiss == .varyMismatch)
        #expect(try await agent.send(Kept(headers: ["X-B": ""])).cacheMiss == .varyMismatch)
        await agent.shutdown()
    }

    /// A coded response is not served to a request that did not accept the coding.
    @Test(arguments: [true, false], [["Vary": "Accept-Encoding"], Headers()])
    func aCodingThatIsNotUndoneIsForThoseWhoAskForIt(memory: Bool, fields: Headers) async throws {
        let stub = StubTransport { request in
            guard request.headers["Accept-Encoding"] == "br" else { return .response(headers: fields, body: "plain") }
            var fields = fields
            fields.append("Content-Encoding", "br")
            return .response(headers: fields, body: "coded")
        }
        let agent = bench.agent(stub, memory: memory)
        let brotli = Kept(headers: ["Accept-Encoding": "br"])
        #expect(try await texts(agent, brotli, brotli) == ["coded", "cached coded"])
        #expect(try await agent.send(Kept()).cacheMiss == .varyMismatch)
        #expect(try await texts(agent, Kept()) == ["cached plain"])
        await agent.shutdown()
    }

    @Test func whatARequestAcceptsByItsSettingTellsItApartToo() async throws {
        let agent = bench.agent(counting(["Content-Encoding": "br"]))
        let zipped = Kept(acceptedEncodings: [.gzip])
        #expect(try await texts(agent, zipped, zipped) == ["answer 1", "cached answer 1"])
        #expect(try await agent.send(Kept()).cacheMiss == .varyMismatch)
        #expect(try await agent.send(Kept(acceptedEncodings: [])).cacheMiss == .varyMismatch)
        await agent.shutdown()
    }

    @Test func aCodingThatIsUndoneTellsNobodyApart() async throws {
        try await withLoopbackServer { server in
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.cache = CacheConfiguration(directory: bench.path)
            let agent = NetworkAgent(configuration: configuration)
            let path = "/gzip/100"
            let first = try await agent.send(Kept(path: path))
            #expect(first.response.headers["Content-Encoding"] == "gzip" && !first.isFromCache)
            let other = try await agent.send(Kept(path: path, headers: ["Accept-Encoding": "br"]))
            #expect(other.isFromCache && other.value == first.value)
            await agent.shutdown()
        }
    }

    @Test("R104: one user's entries are never served to others") func entriesOfOneUserNeverServeOthers() async throws {
        let stub = StubTransport { request in
            .response(headers: ["Vary": "Authorization"], body: "of \(request.headers["Authorization"] ?? "nobody")")
        }
        let agent = bench.agent(stub)
        let (a, b) = (Kept(authorization: .bearer("a")), Kept(authorization: .bearer("b")))
        #expect(try await texts(agent, a, b, Kept()) == ["of Bearer a", "of Bearer b", "of nobody"])
        #expect(
            try await texts(agent, a, b, Kept())
                == ["cached of Bearer a", "cached of Bearer b", "cached of nobody"])
        await agent.shutdown()
    }

    private struct Signing: RequestAdapter {
        let name: String
        /// Whether it makes a new request.
        var isNew = false
        func adapt(_ request: inout OutgoingRequest, of run: RunInfo) async throws {
            if isNew {
                request = OutgoingRequest(method: request.method, url: request.url, headers: request.headers)
            }
            request.headers[name] = run.userInfo["user"] as? String ?? "x"
        }
    }

    @Test func credentialsThatAnAdapterAddsAreNotTheKeysToKnow() async throws {
        let adapters: (inout NetworkConfiguration) -> Void = { $0.adapters = [Signing(name: "Authorization")] }
        #expect(try await refusal([:], Kept(), adapters) == .unknownCredentials)
        let owned = Kept(cachePolicy: .timeToLive(.seconds(60), sensitiveData: "kim"))
        #expect(try await refusal([:], owned, adapters) == nil)
        // A field that is no secret does no harm, unless the response varies by it.
        #expect(try await refusal([:], Kept()) { $0.adapters = [Signing(name: "X-Trace")] } == nil)
        #expect(
            try await refusal([:], Kept()) { $0.adapters = [Signing(name: "X-Trace", isNew: true)] } == nil,
            "neither request has a body")
        #expect(try await refusal(["Vary": "x-trace"], Kept()) { $0.adapters = [Signing(name: "X-Trace")] } == .vary)
        #expect(
            try await refusal([:], Kept()) {
                $0.adapters = [Signing(name: "X-Key")]
                $0.sensitiveHeaders = ["x-key"]
            } == .unknownCredentials)
    }

    @Test func anAnswerThatIsTooLargeIsNotKept() async throws {
        #expect(try await refusal([:]) { $0.cache?.maxEntryBytes = 10 } == .tooLarge)
    }

    @Test func streamsHaveNoPartInIt() async throws {
        try await withLoopbackServer { server in
            var configuration = NetworkConfiguration(baseURL: server.baseURL)
            configuration.cache = CacheConfiguration(directory: bench.path)
            let agent = NetworkAgent(configuration: configuration)
            let request = Kept(path: "/hello")
            for try await _ in try await agent.stream(request).body {}
            #expect(await fault { try await agent.send(request, cache: .cacheOnly) } == .notCached(.notFound))
            _ = try await agent.send(request)
            let again = try await agent.stream(request)
            #expect(!again.isFromCache)
            for try await _ in again.body {}
            #expect(server.requests.count == 3)
            await agent.shutdown()
        }
    }
}
