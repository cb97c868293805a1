import FerryCache
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs with `CachePolicy.http` of two agents that share a directory, like two processes: what one changes, and what
/// the other knows of it.
@Suite(.timeLimit(.minutes(1))) struct CacheFleetTests {
    private let bench = CacheBench()
    private let lasting: Headers = ["Cache-Control": "max-age=3600"]

    private func kept(_ path: String = "/x", _ method: HTTPMethod = .get) -> Kept {
        var request = http(method: method)
        request.path = path
        return request
    }

    /// Waits until the agent has noticed the removals by others: it looks once in each tick of the system's clock.
    private func hears(_ agent: NetworkAgent, _ path: String, since mark: ResponseCache.InvalidationMark) async -> Bool
    {
        guard let cache = agent.core.cache, let terms = agent.core.cachePolicy(of: kept(path)).http,
            let target = try? agent.core.httpTarget(of: kept(path), terms, at: agent.core.builder.servers, in: cache),
            let key = target.key
        else { return false }
        return await eventually { cache.isInvalidated(key, since: mark) }
    }

    /// RFC 9111, 4.4: only what was removed leaves the memory of the others.
    @Test func anUnsafeRequestOfAnotherRemovesNothingElse() async throws {
        let (one, other) = (bench.agent(counting(lasting)), bench.agent(counting(lasting)))
        #expect(try await texts(other, kept("/x"), kept("/y")) == ["answer 1", "answer 2"])
        let mark = try #require(other.core.cache?.invalidationMark)
        _ = try await one.send(kept("/x", .post))
        #expect(await hears(other, "/x", since: mark))
        #expect(await other.cache.statistics.memoryEntries == 1)
        #expect(try await texts(other, kept("/y"), kept("/x")) == ["cached answer 2", "answer 3"])
        await one.shutdown()
        await other.shutdown()
    }

    /// The response to a request for something else is stored, and that for the same URL is not.
    @Test(arguments: [("/x", ["answer 3"]), ("/y", ["cached answer 2"])])
    func aResponseOnItsWayIsStoredUnlessItsURLWasInvalidated(path: String, texts expected: [String]) async throws {
        let stub = StubTransport { [lasting] request in
            request.number == 2 ? .hold : .response(headers: lasting, body: "answer \(request.number)")
        }
        let (one, other) = (bench.agent(counting(lasting)), bench.agent(stub))
        // The store is open from here on.
        _ = try await other.send(kept("/first"))
        let first = Task { [request = kept(path)] in try await other.send(request).value }
        await stub.waitForHeld(1)
        let mark = try #require(other.core.cache?.invalidationMark)
        _ = try await one.send(kept("/x", .post))
        #expect(await hears(other, "/x", since: mark))
        stub.releaseAll(with: .response(headers: lasting, body: "answer 2"))
        #expect(try await first.value == "answer 2")
        #expect(try await texts(other, kept(path)) == expected)
        await one.shutdown()
        await other.shutdown()
    }

    /// Another process has fetched it again since this one has it in memory.
    @Test(arguments: ["cacheOnly", "only-if-cached", "stale-if-error"])
    func aNewerResponseInTheStoreServesWhereTheServerDoesNot(way: String) async throws {
        let short: Headers = ["Cache-Control": "max-age=60, stale-if-error=600", "ETag": "\"a\""]
        let (one, failing) = (bench.agent(counting(short)), StubTransport(always: .response(status: 500)))
        let other = bench.agent(failing)
        #expect(try await texts(one, kept()) == ["answer 1"])
        #expect(try await texts(other, kept()) == ["cached answer 1"])
        bench.advance(by: .seconds(100))
        #expect(try await texts(one, kept()) == ["answer 2"])
        var request = kept()
        if way == "only-if-cached" { request.headers = ["Cache-Control": "only-if-cached"] }
        // Any other run validates what it has in memory.
        request.coalesces = way == "stale-if-error"
        let reply = try await other.send(request, cache: way == "cacheOnly" ? .cacheOnly : .cacheElseNetwork)
        #expect(reply.value == "answer 2" && reply.isFromCache)
        #expect(failing.requests.isEmpty)
        await one.shutdown()
        await other.shutdown()
    }

    /// A store that nobody else uses has nothing newer than the memory.
    @Test func aStoreInMemoryIsNotAskedBeforeAValidation() async throws {
        let headers: Headers = ["Cache-Control": "max-age=60, stale-if-error=600"]
        for isShared in [false, true] {
            let store = CountedReads(isShared: isShared)
            let agent = bench.agent(counting(headers)) { $0.cache?.storage = { store } }
            var request = kept()
            // Any other run validates what it has in memory.
            request.coalesces = true
            #expect(try await texts(agent, request) == ["answer 1"])
            let before = store.reads.value
            bench.advance(by: .seconds(100))
            #expect(try await texts(agent, request) == ["answer 2"])
            #expect(store.reads.value - before == (isShared ? 1 : 0))
            await agent.shutdown()
        }
    }

    private final class CountedReads: SampleStorage, @unchecked Sendable {
        let reads = Tally()
        private let isOfMany: Bool

        init(isShared: Bool) { isOfMany = isShared }

        override var isShared: Bool { isOfMany }
        override func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void) {
            reads.add()
            super.read(key, answer)
        }
    }
}
