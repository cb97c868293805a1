import Ferry
import FerryCache
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

@Suite struct MemoryCacheStorageTests {
    private func key(_ number: Int) -> CacheKey { CacheKey(Array("key \(number)".utf8)) }

    private func entry(_ byte: UInt8, count: Int) -> CacheEntry {
        Array(repeating: byte, count: count).withUnsafeBytes { body in
            CacheEntry(
                CacheEntry.Marks(stored: 1), attributes: [], head: UnsafeRawBufferPointer(start: nil, count: 0),
                body: body)
        }
    }

    private func finding(_ key: CacheKey, in storage: MemoryCacheStorage) -> CacheFinding? {
        let found = Mutex<CacheFinding?>(nil)
        storage.read(key) { finding in found.withLock { $0 = finding } }
        return found.withLock { $0 }
    }

    private func byte(_ key: CacheKey, in storage: MemoryCacheStorage) -> UInt8? {
        guard case .found(let entry) = finding(key, in: storage) else { return nil }
        return entry.withBody { $0.first }
    }

    private func size(of storage: MemoryCacheStorage) -> CacheSize {
        let size = Mutex(CacheSize())
        storage.measure { measured in size.withLock { $0 = measured } }
        return size.withLock { $0 }
    }

    @Test func whatIsWrittenIsFoundUntilItIsRemoved() {
        let storage = MemoryCacheStorage(maxBytes: 100_000)
        for number in 0..<3 { storage.write(entry(UInt8(number), count: 100), under: key(number), nil) }
        #expect((0..<3).map { byte(key($0), in: storage) } == [0, 1, 2])
        storage.remove(key(1), nil)
        #expect((0..<3).map { byte(key($0), in: storage) } == [0, nil, 2])
        storage.removeAll(nil)
        #expect((0..<3).allSatisfy { byte(key($0), in: storage) == nil })
        #expect(storage.counts.written == 3)
        #expect(storage.counts.evicted == 0)
    }

    @Test func theBoundHoldsAndTheLeastRecentlyUsedGoesFirst() {
        let storage = MemoryCacheStorage(maxBytes: 10_000)
        for number in 0..<4 { storage.write(entry(UInt8(number), count: 1500), under: key(number), nil) }
        #expect(byte(key(0), in: storage) == 0)
        storage.write(entry(4, count: 1500), under: key(4), nil)
        storage.write(entry(5, count: 1500), under: key(5), nil)
        #expect((0..<6).map { byte(key($0), in: storage) } == [0, nil, 2, 3, 4, 5])
        #expect(storage.counts.evicted == 1)
        for number in 0..<1000 { storage.write(entry(7, count: number), under: key(number), nil) }
        #expect(size(of: storage).bytes <= 10_000)
        #expect(storage.counts.written == 1006)
        // Five replaced an older one.
        #expect(storage.counts.evicted + UInt64(size(of: storage).entries) == 1001)
    }

    @Test func whatIsTooLargeIsRefusedAndTakesTheOldOneAlong() {
        let storage = MemoryCacheStorage(maxBytes: 10_000)
        storage.write(entry(1, count: 100), under: key(1), nil)
        let isStored = Mutex(true)
        storage.write(entry(2, count: 10_000), under: key(1)) { stored in isStored.withLock { $0 = stored } }
        #expect(!isStored.withLock { $0 })
        #expect(byte(key(1), in: storage) == nil)
        #expect(storage.counts.refused == 1)
    }

    @Test func afterItWasClosedEverythingIsUnavailable() {
        let storage = MemoryCacheStorage(maxBytes: 10_000)
        storage.write(entry(1, count: 100), under: key(1), nil)
        storage.close {}
        storage.write(entry(1, count: 100), under: key(1), nil)
        guard case .missing(.unavailable) = finding(key(1), in: storage) else {
            Issue.record("found after the end")
            return
        }
    }

    @Test func manyAtOnceFindWholeEntriesOfTheirKeyOnly() async {
        let storage = MemoryCacheStorage(maxBytes: 200_000)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for step in 0..<2000 {
                        let number = (task &* 31 &+ step &* 7) % 100
                        switch step % 5 {
                        case 0: storage.write(entry(UInt8(number), count: 1000 + number), under: key(number), nil)
                        case 1 where step % 50 == 1: storage.remove(key(number), nil)
                        default:
                            guard case .found(let found)? = finding(key(number), in: storage) else { continue }
                            let isWhole = found.withBody { body in
                                body.count == 1000 + number && body.allSatisfy { $0 == UInt8(number) }
                            }
                            #expect(isWhole)
                        }
                    }
                }
            }
        }
        let size = size(of: storage)
        #expect(size.bytes <= 200_000 && size.entries <= 100)
    }

    // MARK: Behind an agent

    /// Without the agent's memory, so that every hit comes from the storage.
    private func agent(_ stub: StubTransport, _ policy: CachePolicy = .none) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        configuration.cache = CacheConfiguration { MemoryCacheStorage(maxBytes: 1 << 20) }
        configuration.cache?.memoryBytes = 0
        configuration.cachePolicy = policy
        return NetworkAgent(configuration: configuration, stub: stub)
    }

    @Test func itAnswersForATimeThatTheApplicationSays() async throws {
        let stub = counting(["ETag": "\"e\""])
        let agent = agent(stub)
        #expect(try await texts(agent, Kept(), Kept()) == ["answer 1", "cached answer 1"])
        #expect(await agent.cache.remove(Kept()))
        #expect(try await texts(agent, Kept(), Kept()) == ["answer 2", "cached answer 2"])
        let statistics = await agent.cache.statistics
        #expect(statistics.diskHits == 2 && statistics.entries == 1 && statistics.writes == 2)
        await agent.shutdown()
    }

    @Test(arguments: [false, true]) func itAnswersAsTheServerSays(isShared: Bool) async throws {
        let stub = counting(["Cache-Control": "max-age=60"])
        let agent = agent(stub, .http(shared: isShared))
        var request = Kept()
        request.cachePolicy = .configured
        #expect(try await texts(agent, request, request) == ["answer 1", "cached answer 1"])
        var change = request
        change.method = .post
        try await agent.send(change)
        #expect(try await texts(agent, request, request) == ["answer 3", "cached answer 3"])
        await agent.shutdown()
    }

    @Test func aHundredRunsAtOnceEachHaveTheirOwn() async throws {
        let stub = StubTransport { .response(headers: ["Cache-Control": "max-age=60"], body: $0.url) }
        let agent = agent(stub, .http())
        for _ in 0..<2 {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        var request = Kept(path: "/\(number)")
                        request.cachePolicy = .configured
                        let text = try await agent.send(request).value
                        #expect(text.hasSuffix("/\(number)"))
                    }
                }
                try await group.waitForAll()
            }
        }
        #expect(stub.requests.count == 100)
        #expect(await agent.cache.statistics.hits == 100)
        await agent.shutdown()
    }
}
