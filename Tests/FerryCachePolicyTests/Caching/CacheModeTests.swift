import Dispatch
import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

@Suite struct CacheModeTests {
    private let bench = CacheBench()

    @Test func reloadSkipsReadingAndWritesAllTheSame() async throws {
        let agent = bench.agent(counting())
        #expect(try await texts(agent, Kept()) == ["answer 1"])
        let reply = try await agent.send(Kept(), cache: .reload)
        #expect(reply.value == "answer 2")
        #expect(reply.cacheMiss == .reload)
        #expect(try await texts(agent, Kept()) == ["cached answer 2"])
        #expect(try await texts(agent, Kept(cacheMode: .reload), Kept()) == ["answer 3", "cached answer 3"])
        let outcome = Outcome<String>()
        agent.start(Kept(), cache: .reload, completion: outcome.take)
        #expect(try await outcome.result.get().value == "answer 4")
        await agent.shutdown()
    }

    @Test func cacheOnlyNeverAsksTheNetwork() async throws {
        let stub = counting()
        let agent = bench.agent(stub)
        #expect(await fault { try await agent.send(Kept(), cache: .cacheOnly) } == .notCached(.notFound))
        let outcome = Outcome<String>()
        agent.start(Kept(), cache: .cacheOnly, completion: outcome.take)
        #expect(await outcome.code == .notCached(.notFound))
        #expect(stub.requests.isEmpty)
        _ = try await agent.send(Kept())
        #expect(try await agent.send(Kept(), cache: .cacheOnly).isFromCache)
        bench.advance(by: .seconds(61))
        #expect(await fault { try await agent.send(Kept(), cache: .cacheOnly) } == .notCached(.expired))
        #expect(stub.requests.count == 1)
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func theKeptAnswerAndThenTheNetworksInOrder(memory: Bool) async throws {
        let agent = bench.agent(counting(), memory: memory)
        let seen = Mutex([String]())
        let note: @Sendable (Reply<String>) -> Void = { reply in
            seen.withLock { $0.append((reply.isFromCache ? "cached " : "") + reply.value) }
        }
        // Nothing is stored yet: only the network's response comes.
        note(try await agent.send(Kept(), cached: note))
        note(try await agent.send(Kept(), cached: note))
        #expect(seen.withLock { $0 } == ["answer 1", "cached answer 1", "answer 2"])
        let outcome = Outcome<String>()
        let queue = DispatchQueue(label: "test")
        agent.start(
            Kept(), on: queue,
            cached: {
                dispatchPrecondition(condition: .onQueue(queue))
                note($0)
            },
            completion: { result in
                if case .success(let reply) = result { note(reply) }
                outcome.take(result)
            })
        _ = await outcome.result
        #expect(seen.withLock { $0.suffix(2) } == ["cached answer 2", "answer 3"])
        #expect(outcome.count == 1)
        #expect(try await texts(agent, Kept()) == ["cached answer 3"])
        await agent.shutdown()
    }

    private func failing(_ later: StubTransport.Response) -> StubTransport {
        StubTransport { $0.number == 1 ? .response(body: "answer 1") : later }
    }

    @Test(arguments: [500, 502, 503, 504, 0]) func anOldAnswerStandsInForAFailure(status: Int) async throws {
        let stub = failing(status == 0 ? .failure(.connectionReset) : .response(status: status))
        let agent = bench.agent(stub)
        _ = try await agent.send(Kept())
        bench.advance(by: .seconds(100))
        let mode = CacheMode.cacheElseNetwork(staleIfError: .seconds(40))
        let reply = try await agent.send(Kept(), cache: mode)
        #expect(reply.isFromCache)
        #expect(reply.response.isStale)
        #expect(reply.response.age == .seconds(100))
        #expect(reply.metrics.cache == .stale)
        // A failure of the stub is no attempt, as it has no connection.
        #expect(stub.requests.count == 2 && reply.metrics.attempts == (status == 0 ? 0 : 1))
        let outcome = Outcome<String>()
        agent.start(Kept(cacheMode: mode), completion: outcome.take)
        #expect(try await outcome.result.get().response.isStale)
        // After the window it is a failure like any other.
        bench.advance(by: .seconds(1))
        #expect(await fault { try await agent.send(Kept(), cache: mode) } != nil)
        #expect(await agent.cache.statistics.staleHits == 2)
        await agent.shutdown()
    }

    @Test func anOldAnswerDoesNotStandInForARefusal() async throws {
        let agent = bench.agent(failing(.response(status: 404)))
        _ = try await agent.send(Kept())
        bench.advance(by: .seconds(61))
        let mode = CacheMode.cacheElseNetwork(staleIfError: .seconds(40))
        #expect(await fault { try await agent.send(Kept(), cache: mode) } == .invalidStatusCode(404))
        await agent.shutdown()
    }

    @Test func anOldAnswerOfAnotherVersionNeverStandsIn() async throws {
        let agent = bench.agent(failing(.failure(.connectionReset)))
        _ = try await agent.send(Kept())
        bench.advance(by: .seconds(61))
        let other = Kept(cachePolicy: .timeToLive(.seconds(60), version: 9))
        let mode = CacheMode.cacheElseNetwork(staleIfError: .seconds(40), staleWhileRevalidate: .seconds(40))
        #expect(await fault { try await agent.send(other, cache: mode) } == .connectionReset)
        await agent.shutdown()
    }

    @Test func anOldAnswerIsDeliveredWhileAnotherIsFetchedOnce() async throws {
        let stub = StubTransport { $0.number == 1 ? .response(body: "answer 1") : .hold }
        let agent = bench.agent(stub)
        _ = try await agent.send(Kept())
        bench.advance(by: .seconds(70))
        let mode = CacheMode.cacheElseNetwork(staleWhileRevalidate: .seconds(30))
        for _ in 0..<5 {
            let reply = try await agent.send(Kept(), cache: mode)
            #expect(reply.value == "answer 1")
            #expect(reply.response.isStale)
        }
        await stub.waitForHeld(1)
        #expect(stub.requests.count == 2)
        stub.releaseAll(with: .response(body: "answer 2"))
        // The run that fetches it has no owner: it is done when the agent says so.
        await agent.shutdown()
        let next = bench.agent(counting())
        #expect(try await texts(next, Kept()) == ["cached answer 2"])
        await next.shutdown()
    }
}
