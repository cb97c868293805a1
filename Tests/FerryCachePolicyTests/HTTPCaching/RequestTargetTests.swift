import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Requests with the same URL that ask for different things: the response to one is not that to the other.
@Suite(.timeLimit(.minutes(1))) struct RequestTargetTests {
    private let bench = CacheBench()

    private func agent(_ directive: String = "max-age=60") -> NetworkAgent {
        bench.agent(
            StubTransport {
                .response(headers: ["Cache-Control": directive, "ETag": "\"a\""], body: "answer \($0.number)")
            })
    }

    private func request(_ policy: CachePolicy, _ change: (inout Kept) -> Void = { _ in }) -> Kept {
        var request = Kept(cachePolicy: policy)
        change(&request)
        return request
    }

    private static let policies = [CachePolicy.http(), .timeToLive(.seconds(60), write: .synchronous)]

    @Test(arguments: policies, [ArgumentEncoding.json, .form])
    func aGETWithArgumentsInItsBodyIsAnother(policy: CachePolicy, encoding: ArgumentEncoding) async throws {
        let agent = agent()
        let search = request(policy) { ($0.arguments, $0.argumentEncoding) = (["q": "x"], encoding) }
        #expect(try await texts(agent, request(policy), search) == ["answer 1", "answer 2"])
        #expect(try await texts(agent, request(policy)) == ["cached answer 1"])
        await agent.shutdown()
    }

    /// Neither a hit nor a condition from the response without a body.
    @Test func anExpiredResponseDoesNotValidateAGETWithABody() async throws {
        let agent = agent("max-age=0")
        let search = request(.http()) { ($0.arguments, $0.argumentEncoding) = (["q": "x"], .json) }
        #expect(try await texts(agent, request(.http()), search) == ["answer 1", "answer 2"])
        var cached = search
        cached.cacheMode = .cacheOnly
        let code = await fault { [cached] in try await agent.send(cached).value }
        #expect(code == .notCached(.notFound))
        await agent.shutdown()
    }

    @Test(arguments: policies) func aHostOfItsOwnIsAnotherTarget(policy: CachePolicy) async throws {
        let agent = agent()
        let (first, second) = (
            request(policy) { $0.headers["Host"] = "a.example" }, request(policy) { $0.headers["Host"] = "b.example" }
        )
        #expect(try await texts(agent, request(policy), first, second) == ["answer 1", "answer 2", "answer 3"])
        #expect(
            try await texts(agent, request(policy), first, second)
                == ["cached answer 1", "cached answer 2", "cached answer 3"])
        #expect(await agent.cache.remove(first))
        #expect(try await texts(agent, first, second) == ["answer 4", "cached answer 3"])
        await agent.shutdown()
    }

    /// A host says nothing about who asks.
    @Test func aPersonalResponseToNobodyIsNotStoredBecauseOfAHost() async throws {
        let agent = agent("private")
        let asked = request(.timeToLive(.seconds(60), write: .synchronous)) { $0.headers["Host"] = "a.example" }
        #expect(try await texts(agent, asked, asked) == ["answer 1", "answer 2"])
        await agent.shutdown()
    }

    /// The host of the first server is not that of the target, whose URL says everything.
    @Test func theTargetOfARedirectIsStoredWithoutTheHostOfTheFirstServer() async throws {
        let agent = bench.agent(
            StubTransport { sent in
                if sent.url.hasSuffix("/x") { return .redirect(to: "http://b.test/y") }
                return .response(headers: ["Cache-Control": "max-age=60"], body: "answer \(sent.number)")
            })
        let asked = request(.http()) { $0.headers["Host"] = "a.example" }
        #expect(try await texts(agent, asked) == ["answer 2"])
        let target = request(.http()) { $0.path = "http://b.test/y" }
        #expect(try await texts(agent, target) == ["cached answer 2"])
        await agent.shutdown()
    }

    /// RFC 9111, 4.4.
    @Test func anUnsafeRequestInvalidatesTheResponsesOfItsHost() async throws {
        let agent = agent()
        func asked(_ host: String, _ method: HTTPMethod = .get) -> Kept {
            request(.http()) { ($0.headers["Host"], $0.method) = (host, method) }
        }
        #expect(try await texts(agent, asked("a.example"), asked("b.example")) == ["answer 1", "answer 2"])
        #expect(try await texts(agent, asked("b.example", .post)) == ["answer 3"])
        #expect(try await texts(agent, asked("a.example"), asked("b.example")) == ["cached answer 1", "answer 4"])
        await agent.shutdown()
    }
}
