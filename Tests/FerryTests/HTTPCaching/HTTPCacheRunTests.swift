import Ferry
import FerryTesting
import Testing

/// Runs with `CachePolicy.http`, on a transport that answers from memory.
@Suite struct HTTPCacheRunTests {
    private let bench = CacheBench()

    private func request(_ headers: Headers = Headers(), path: String = "/x") -> Kept {
        Kept(path: path, headers: headers, cachePolicy: .http(write: .synchronous))
    }

    @Test(arguments: [true, false]) func aFreshResponseIsReused(memory: Bool) async throws {
        let agent = bench.agent(counting(["Cache-Control": "max-age=60"]), memory: memory)
        let first = try await agent.send(request())
        #expect(first.cacheStatus?.description == "Ferry; fwd=uri-miss; stored; ttl=60")
        bench.advance(by: .seconds(10))
        let hit = try await agent.send(request())
        #expect(hit.value == "answer 1" && hit.isFromCache)
        #expect(hit.cacheStatus?.description == "Ferry; hit; ttl=50")
        #expect(hit.headers["Age"] == "10")
        bench.advance(by: .seconds(50))
        #expect(try await agent.send(request()).value == "answer 2")
        await agent.shutdown()
    }
}
