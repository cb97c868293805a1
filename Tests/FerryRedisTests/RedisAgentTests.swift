import Ferry
import FerryRedis
import FerryTesting
import Testing

/// Agents that share a Redis.
@Suite(.timeLimit(.minutes(2))) struct RedisAgentTests {
    private let server = FakeRedis()

    private func page(
        _ path: String = "/page", _ policy: CachePolicy = .timeToLive(.seconds(60), write: .synchronous),
        headers: Headers = Headers()
    ) -> HTTPRequest<String> {
        var request = HTTPRequest(.get, path, headers: headers, as: String.self)
        request.cachePolicy = policy
        return request
    }

    /// Without memory in front: every hit is one of Redis.
    private func agent(
        _ stub: StubTransport, _ change: (inout RedisConfiguration) -> Void = { _ in }
    ) -> NetworkAgent {
        let redis = patient(server.path, change)
        var configuration = NetworkConfiguration(baseURL: "http://127.0.0.1")
        configuration.cache = CacheConfiguration { RedisCacheStorage(redis) }
        configuration.cache?.memoryBytes = 0
        return NetworkAgent(configuration: configuration, stub: stub)
    }

    private func counting(_ headers: Headers = Headers()) -> StubTransport {
        StubTransport { .response(headers: headers, body: "answer \($0.number)") }
    }

    @Test func whatOneHasFetchedAnswersTheOther() async throws {
        let (first, second) = (counting(), counting())
        let (one, other) = (agent(first), agent(second))
        #expect(try await one.send(page()).value == "answer 1")
        let reply = try await other.send(page())
        #expect(reply.isFromCache && reply.value == "answer 1" && second.requests.isEmpty)
        #expect(await other.cache.statistics.diskHits == 1)
        #expect(await one.cache.remove(page()))
        #expect(try await other.send(page()).isFromCache == false)
        await one.shutdown()
        await other.shutdown()
        server.stop()
    }

    @Test(arguments: [false, true]) func itStoresAsTheServerSays(isShared: Bool) async throws {
        let headers: Headers = ["Cache-Control": "max-age=60"]
        let (one, other) = (agent(counting(headers)), agent(counting(headers)))
        let page = self.page("/page", .http(shared: isShared, write: .synchronous))
        #expect(try await one.send(page).value == "answer 1")
        #expect(try await other.send(page).value == "answer 1")
        var change = page
        change.method = .post
        try await one.send(change)
        #expect(try await one.send(page).value == "answer 3")
        await one.shutdown()
        await other.shutdown()
        server.stop()
    }

    @Test func whatIsOfOneUserIsNotFoundByAnother() async throws {
        let stub = counting(["Cache-Control": "max-age=60"])
        let agent = agent(stub)
        for policy in [CachePolicy.timeToLive(.seconds(60), write: .synchronous), .http(write: .synchronous)] {
            let kim = page("/page", policy, headers: ["Authorization": "Bearer canary-kim"])
            let lee = page("/page", policy, headers: ["Authorization": "Bearer canary-lee"])
            try await agent.send(kim)
            #expect(try await agent.send(lee).isFromCache == false)
            #expect(try await agent.send(kim).isFromCache)
        }
        #expect(!server.commands.joined().contains { $0.contains("canary") })
        await agent.shutdown()
        server.stop()
    }

    @Test func withoutRedisEveryRunAsksTheServerAndNoneFails() async throws {
        server.stop()
        let stub = counting()
        let agent = agent(stub)
        for number in 1...20 { #expect(try await agent.send(page()).value == "answer \(number)") }
        let statistics = await agent.cache.statistics
        #expect(statistics.misses == [.unavailable: 20] && statistics.isDisabled && statistics.failedWrites > 0)
        #expect((statistics.faults["io"] ?? 0) >= 1)
        await agent.shutdown()
    }

    // MARK: Leases

    @Test func oneFetchesAndTheOthersWait() async throws {
        let (first, second) = (counting(), counting())
        let agents = [first, second].map { stub in agent(stub) { $0.lease = .seconds(1000) } }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    let reply = try await agents[number % 2].send(page("/\(number % 5)"))
                    #expect(reply.status == 200)
                }
            }
            try await group.waitForAll()
        }
        #expect(first.requests.count + second.requests.count == 5)
        for agent in agents { await agent.shutdown() }
        server.stop()
    }

    @Test func aFetchThatFailsOrIsNotStoredLetsTheNextOneFetch() async throws {
        let stub = StubTransport { request in
            request.number == 1
                ? .response(status: 500, headers: Headers(), body: "")
                : .response(headers: request.number == 2 ? ["Cache-Control": "no-store"] : Headers(), body: "x")
        }
        let agent = agent(stub) { $0.lease = .seconds(1000) }
        await #expect(throws: RequestError.self) { try await agent.send(page()) }
        for _ in 0..<2 { #expect(try await agent.send(page()).isFromCache == false) }
        #expect(try await agent.send(page()).isFromCache)
        await agent.shutdown()
        server.stop()
    }

    @Test func aRunThatWaitsKeepsToItsDeadline() async throws {
        struct Urgent: Request {
            typealias Value = String
            var path: String { "/page" }
            var deadline: Duration? { .milliseconds(200) }
            var cachePolicy: CachePolicy { .timeToLive(.seconds(60)) }
        }
        // Somebody has it for ever.
        server.script { $0.contains("NX") ? .text("$-1\r\n") : .honest }
        let agent = agent(counting()) { $0.lease = .seconds(1000) }
        let error = await #expect(throws: RequestError.self) { try await agent.send(Urgent()) }
        #expect(error?.code == .timeout(.deadline))
        await agent.shutdown()
        server.stop()
    }
}
