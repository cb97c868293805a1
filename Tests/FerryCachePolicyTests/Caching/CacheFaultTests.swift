import Dispatch
import FaultTable
import FerryCache
import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// A cache that does not work never fails a request.
@Suite(.faultTable) struct CacheFaultTests {
    private let bench = CacheBench()

    private var database: String { bench.path + "/entries-1.sqlite" }

    @Test("R102: a directory that is a file is a miss, and the response is delivered")
    func aDirectoryThatIsAFileIsAMissAndTheAnswerIsDelivered() async throws {
        try Data([1]).write(to: URL(filePath: bench.path))
        let agent = bench.agent(counting(), memory: false)
        #expect(try await texts(agent, Kept(), Kept()) == ["answer 1", "answer 2"])
        let statistics = await agent.cache.statistics
        #expect(statistics.isDisabled)
        #expect(statistics.misses[.unavailable] == 2)
        #expect(statistics.failedWrites == 2)
        #expect(statistics.faults["io"] ?? 0 > 0)
        await agent.shutdown()
    }

    /// Its disk hangs: it never says that it is closed, or blocks the caller.
    private final class Endless: SampleStorage, @unchecked Sendable {
        private let gate: DispatchSemaphore?
        init(blocking gate: DispatchSemaphore? = nil) { self.gate = gate }
        override func close(_ done: @escaping @Sendable () -> Void) { gate?.wait() }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func aStoreThatDoesNotCloseDoesNotHoldUpAShutdown(blocks: Bool) async throws {
        let gate = DispatchSemaphore(value: 0)
        let cache = ResponseCache(CacheConfiguration(storage: { Endless(blocking: blocks ? gate : nil) }))
        await cache.close(patience: .milliseconds(10))
        gate.signal()
    }

    @Test func memoryServesWhereTheDiskFails() async throws {
        try Data([1]).write(to: URL(filePath: bench.path))
        let agent = bench.agent(counting())
        #expect(try await texts(agent, Kept(), Kept()) == ["answer 1", "cached answer 1"])
        await agent.shutdown()
    }

    @Test func memoryStandsInForAServerThatFailsWhereTheDiskFailsToo() async throws {
        try Data([1]).write(to: URL(filePath: bench.path))
        let agent = bench.agent(StubTransport(responses: [.response(body: "answer 1"), .response(status: 503)]))
        _ = try await agent.send(Kept())
        bench.advance(by: .seconds(61))
        let reply = try await agent.send(Kept(), cache: .cacheElseNetwork(staleIfError: .seconds(60)))
        #expect(reply.response.isStale && reply.value == "answer 1")
        let statistics = await agent.cache.statistics
        #expect((statistics.memoryHits, statistics.diskHits, statistics.staleHits) == (1, 0, 1))
        #expect(await fault { try await agent.send(Kept(), cache: .cacheOnly) } == .notCached(.expired))
        await agent.shutdown()
    }

    @Test("R99: a damaged database is a miss, and then stores again") func aDamagedDatabaseIsAMissAndKeepsAgain()
        async throws
    {
        let first = bench.agent(counting())
        _ = try await first.send(Kept())
        await first.shutdown()
        var bytes = Array(try Data(contentsOf: URL(filePath: database)))
        for index in bytes.indices where index % 3 == 0 { bytes[index] ^= 0x5A }
        try Data(bytes).write(to: URL(filePath: database))
        let second = bench.agent(counting(), memory: false)
        #expect(try await texts(second, Kept(), Kept()) == ["answer 1", "cached answer 1"])
        #expect(await second.cache.statistics.replacedDatabases == 1)
        await second.shutdown()
    }

    @Test("R99: a body with a flipped byte is a miss and is removed") func aBodyWithAFlippedByteIsAMissAndGoes()
        async throws
    {
        let first = bench.agent(counting())
        _ = try await first.send(Kept())
        await first.shutdown()
        var bytes = try Data(contentsOf: URL(filePath: database))
        let place = try #require(bytes.firstRange(of: Data("answer 1".utf8)))
        bytes[place.lowerBound] ^= 1
        try bytes.write(to: URL(filePath: database))
        let second = bench.agent(counting(), memory: false)
        let reply = try await second.send(Kept())
        #expect(reply.cacheMiss == .corrupt)
        #expect(reply.value == "answer 1")
        #expect(try await second.send(Kept()).isFromCache)
        await second.shutdown()
    }

    @Test(
        "R98: a body that was cut short fails, and nothing of it is stored",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        ])
    func aBodyThatIsCutShortIsNotKept(bytes: String) async throws {
        let server = try LoopbackServer()
        server.script(path: "/cut", [.send(bytes), .close])
        let agent = NetworkAgent(configuration: real(server))
        #expect(await fault { try await agent.send(Kept(path: "/cut")) }?.name == "incompleteBody")
        #expect(await fault { try await agent.send(Kept(path: "/cut"), cache: .cacheOnly) } == .notCached(.notFound))
        await agent.shutdown()
    }

    @Test("R17: a body that ends with its connection is not stored, as it may be incomplete")
    func aBodyThatEndsWithItsConnectionIsNotKept() async throws {
        let server = try LoopbackServer()
        server.script(path: "/close", [.send("HTTP/1.1 200 OK\r\n\r\nabc"), .close])
        let agent = NetworkAgent(configuration: real(server))
        let request = Kept(path: "/close")
        #expect(try await texts(agent, request, request) == ["abc", "abc"])
        #expect(await agent.cache.statistics.refusals == [.untilClose: 2])
        await agent.shutdown()
    }

    private func real(_ server: LoopbackServer) -> NetworkConfiguration {
        var configuration = NetworkConfiguration(baseURL: "http://127.0.0.1:\(server.port)")
        configuration.cache = CacheConfiguration(directory: bench.path)
        return configuration
    }
}
