import Ferry
import FerryCache
import FerryTesting
import Synchronization
import Testing

/// Leases of a storage that several processes share.
@Suite(.timeLimit(.minutes(1))) struct LeaseTests {
    /// One lease for all keys, which expires when the test says so.
    private final class LeasingStorage: CacheStorage {
        private let memory = MemoryCacheStorage(maxBytes: 1 << 20)
        private let state = Mutex((isHeld: false, ended: 0))

        var ended: Int { state.withLock { $0.ended } }

        func expire() { state.withLock { $0.isHeld = false } }

        var leaseTime: Duration? { .seconds(1000) }

        func lease(_ key: CacheKey, _ answer: @escaping @Sendable (Bool) -> Void) {
            answer(
                state.withLock { state in
                    defer { state.isHeld = true }
                    return !state.isHeld
                })
        }

        func endLease(_ key: CacheKey) {
            state.withLock { state in
                state.isHeld = false
                state.ended += 1
            }
        }

        func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void) { memory.read(key, answer) }

        func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
            memory.write(entry, under: key, done)
        }

        func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) { memory.remove(key, done) }
        func removeAll(_ done: (@Sendable (Bool) -> Void)?) { memory.removeAll(done) }
        func measure(_ answer: @escaping @Sendable (CacheSize) -> Void) { memory.measure(answer) }
        var counts: CacheCounts { memory.counts }
        func close(_ done: @escaping @Sendable () -> Void) { memory.close(done) }
    }

    @Test func anExpiredLeaseDoesNotEndTheNextOne() async throws {
        let storage = LeasingStorage()
        let stub = StubTransport { _ in .hold }
        var configuration = NetworkConfiguration.test
        configuration.cache = CacheConfiguration { storage }
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let first = Task { try await agent.send(Kept()) }
        await stub.waitForHeld(1)
        storage.expire()
        let second = Task { try await agent.send(Kept()) }
        await stub.waitForHeld(2)
        first.cancel()
        _ = await first.result
        #expect(storage.ended == 0, "the second run has the lease now")
        second.cancel()
        _ = await second.result
        #expect(await eventually { storage.ended == 1 })
        await agent.shutdown(grace: .zero)
    }
}
