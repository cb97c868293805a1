import Csqlite3
import Dispatch
import FerryCacheProbe
import Glibc
import Testing

@testable import FerryCache

/// Other processes hold what the store needs, or it is held up: it waits for a while, but never for ever.
@Suite(.timeLimit(.minutes(2))) struct BusyTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    /// Holds the lock of the directory, like a process that is stopped while it opens the database.
    private func holdLock() throws -> Int32 {
        let file = open(folder.store + "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
        return file
    }

    private func makeDatabase() async {
        let store = SQLiteCacheStore(folder.options())
        await store.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        await store.close()
    }

    @Test func aProcessThatIsStoppedWithTheLockIsNotWaitedForForEver() async throws {
        await makeDatabase()
        let lock = try holdLock()
        let now = CacheClock()
        let store = SQLiteCacheStore(
            folder.options {
                $0.patience = 20_000
                $0.clock = { now.value }
            })
        #expect(await store.read(Sample.key(1)).reason == .unavailable)
        #expect(store.counts.faults == [.busy: 1])
        // It is not waited for each time.
        #expect(store.counts.isDisabled)
        #expect(await store.read(Sample.key(1)).reason == .unavailable)
        #expect(store.counts.faults == [.busy: 1])
        #expect(await store.write(Sample.entry(2, generation: 1), under: Sample.key(2)) == false)
        #expect(store.counts.faults == [.busy: 2])
        close(lock)
        now.advance(by: 31_000_000)
        #expect(await store.read(Sample.key(1)).entry != nil)
        #expect(await store.write(Sample.entry(2, generation: 1), under: Sample.key(2)))
        await store.close()
    }

    @Test func whatWasBusyIsWrittenWithTheNextTry() async throws {
        let store = SQLiteCacheStore(folder.options { $0.patience = 1_000_000 })
        await store.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        var other: OpaquePointer?
        try #require(sqlite3_open(folder.database, &other) == SQLITE_OK)
        try #require(sqlite3_exec(other, "BEGIN IMMEDIATE", nil, nil, nil) == SQLITE_OK)
        async let isWritten = store.write(Sample.entry(1, generation: 2), under: Sample.key(1))
        while store.counts.faults[.busy] == nil { await Task.yield() }
        try #require(sqlite3_exec(other, "COMMIT", nil, nil, nil) == SQLITE_OK)
        #expect(await isWritten)
        #expect(store.counts.failed == 0 && !store.counts.isDisabled)
        let found = await store.read(Sample.key(1)).entry
        #expect(found.flatMap { Sample.generation(of: $0, 1) } == 2)
        sqlite3_close(other)
        await store.close()
    }

    @Test func oneReaderThatIsHeldUpHoldsUpNobodyElse() async throws {
        let store = SQLiteCacheStore(folder.options())
        await store.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        let gate = DispatchSemaphore(value: 0)
        let (entered, enter) = AsyncStream<Void>.makeStream()
        store.read(Sample.key(1)) { _ in
            enter.finish()
            gate.wait()
        }
        for await _ in entered {}
        // The other connection finds it.
        #expect(await store.read(Sample.key(1)).entry != nil)
        gate.signal()
        await store.close()
    }

    @Test func whatIsCountedAfterTheEndOpensNothing() async throws {
        let store = SQLiteCacheStore(folder.options())
        await store.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        await store.close()
        #expect(try folder.files() == ["entries-1.sqlite", "lock"])
        #expect(await store.measure() == CacheSize())
        // Otherwise a connection would have left its log.
        #expect(try folder.files() == ["entries-1.sqlite", "lock"])
    }
}
