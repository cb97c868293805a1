import Ferry
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Reading, writing and removing entries by hand.
@Suite struct AgentCacheTests {
    private let bench = CacheBench()

    @Test(arguments: [true, false]) func whatIsKeptIsReadWithoutStarting(memory: Bool) async throws {
        let stub = counting()
        let agent = bench.agent(stub, memory: memory)
        #expect(await fault { try await agent.cache.reply(for: Kept()) } == .notCached(.notFound))
        _ = try await agent.send(Kept())
        let reply = try await agent.cache.reply(for: Kept())
        #expect(reply.value == "answer 1")
        #expect(reply.isFromCache)
        #expect(stub.requests.count == 1)
        bench.advance(by: .seconds(61))
        #expect(await fault { try await agent.cache.reply(for: Kept()) } == .notCached(.expired))
        let unkept = Kept(cachePolicy: .none)
        #expect(await fault { try await agent.cache.reply(for: unkept) } == .notCached(.notConfigured))
        #expect(await fault { try await agent.cache.reply(for: Kept(path: "ftp://h")) } == .unsupportedScheme)
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func aResponseIsSavedForAnotherRequest(memory: Bool) async throws {
        let stub = counting(["Cache-Control": "no-store"])
        let agent = bench.agent(stub, memory: memory)
        let response = try await agent.send(Kept()).response
        #expect(await agent.cache.save(response, for: Kept(path: "/other")))
        let hit = try await agent.send(Kept(path: "/other"))
        #expect(hit.isFromCache)
        #expect(hit.value == "answer 1")
        #expect(await agent.cache.save(response, for: Kept(cachePolicy: .none)) == false)
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func oneIsRemovedOrAll(memory: Bool) async throws {
        let agent = bench.agent(counting(), memory: memory)
        for path in ["/a", "/b", "/c"] { _ = try await agent.send(Kept(path: path)) }
        #expect(await agent.cache.remove(Kept(path: "/a")))
        #expect(await fault { try await agent.cache.reply(for: Kept(path: "/a")) } == .notCached(.notFound))
        #expect(try await agent.cache.reply(for: Kept(path: "/b")).value == "answer 2")
        #expect(await agent.cache.removeAll())
        for path in ["/b", "/c"] {
            #expect(await fault { try await agent.cache.reply(for: Kept(path: path)) } == .notCached(.notFound))
        }
        #expect(await agent.cache.statistics.entries == 0)
        await agent.shutdown()
    }

    @Test(arguments: [true, false], [CachePolicy.Writing.synchronous, .asynchronous])
    func aResponseThatWasRequestedBeforeARemovalIsNotStored(all: Bool, writing: CachePolicy.Writing) async throws {
        let stub = StubTransport { _ in .hold }
        let agent = bench.agent(stub)
        func kept(_ path: String) -> Kept {
            Kept(path: path, cachePolicy: .timeToLive(.seconds(60), write: writing))
        }
        let started = Outcome<String>()
        agent.start(kept("/a"), completion: started.take)
        await stub.waitForHeld(1)
        async let awaited = agent.send(kept("/b")).value
        await stub.waitForHeld(2)
        async let other = agent.send(kept("/c")).value
        await stub.waitForHeld(3)
        if all {
            #expect(await agent.cache.removeAll())
        } else {
            for path in ["/a", "/b"] { #expect(await agent.cache.remove(kept(path))) }
        }
        stub.releaseAll(with: .response(body: "old"))
        #expect(try await started.result.get().value == "old")
        #expect(try await [awaited, other] == ["old", "old"])
        for path in ["/a", "/b"] {
            #expect(await fault { try await agent.cache.reply(for: kept(path)) } == .notCached(.notFound))
        }
        let isOtherGone = await fault { try await agent.cache.reply(for: kept("/c")) } == .notCached(.notFound)
        #expect(isOtherGone == all)
        // What is requested afterwards is stored.
        async let later = agent.send(kept("/a")).value
        await stub.waitForHeld(1)
        stub.releaseAll(with: .response(body: "new"))
        #expect(try await later == "new")
        #expect(try await agent.cache.reply(for: kept("/a")).value == "new")
        await agent.shutdown()
    }

    /// Waits until an agent has no entry for a request any more.
    private func waitUntilGone(_ path: String, _ agent: NetworkAgent) async {
        while await fault({ try await agent.cache.reply(for: Kept(path: path)) }) != .notCached(.notFound) {
            await Task.yield()
        }
    }

    @Test(.timeLimit(.minutes(1))) func whatOneAgentRemovesIsGoneFromTheMemoryOfOthers() async throws {
        let (first, second) = (bench.agent(counting()), bench.agent(counting()))
        for path in ["/a", "/b", "/c"] {
            _ = try await first.send(Kept(path: path))
            // In memory from here on.
            #expect(try await second.send(Kept(path: path)).isFromCache)
        }
        #expect(await second.cache.statistics.memoryEntries == 3)
        #expect(await first.cache.remove(Kept(path: "/a")))
        await waitUntilGone("/a", second)
        #expect(try await second.cache.reply(for: Kept(path: "/b")).value == "answer 2")
        #expect(await second.cache.removeAll())
        await waitUntilGone("/c", first)
        await first.shutdown()
        await second.shutdown()
    }

    @Test func whatAnAgentRemovesItselfLeavesTheRestOfItsMemory() async throws {
        let agent = bench.agent(counting())
        for path in ["/a", "/b"] { _ = try await agent.send(Kept(path: path)) }
        #expect(await agent.cache.remove(Kept(path: "/a")))
        #expect(try await agent.send(Kept(path: "/b")).isFromCache)
        #expect(await agent.cache.statistics.memoryEntries == 1)
        await agent.shutdown()
    }

    @Test func withoutACacheThereIsNothing() async throws {
        let agent = NetworkAgent(configuration: .test, stub: counting())
        let response = try await agent.send(Kept()).response
        #expect(await agent.cache.save(response, for: Kept()) == false)
        #expect(await agent.cache.remove(Kept()) == false)
        #expect(await agent.cache.removeAll() == false)
        #expect(await agent.cache.statistics.hits == 0)
        await agent.shutdown()
    }
}
