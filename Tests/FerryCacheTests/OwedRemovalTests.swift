import Csqlite3
import FerryCacheProbe
import Testing

@testable import FerryCache

/// Removals that cannot be written at once, because another process holds the database.
@Suite(.timeLimit(.minutes(2))) struct OwedRemovalTests {
    private let folder: TestFolder
    private let now = CacheClock()

    init() throws { folder = try TestFolder() }

    /// Another connection that holds the database until it is released.
    private final class Holder {
        private var database: OpaquePointer?

        init(_ path: String) throws {
            try #require(sqlite3_open(path, &database) == SQLITE_OK)
            try #require(sqlite3_exec(database, "BEGIN IMMEDIATE", nil, nil, nil) == SQLITE_OK)
        }

        func release() {
            sqlite3_close(database)
            database = nil
        }

        deinit { release() }
    }

    /// A store with two entries, which waits for nobody.
    private func filledStore(disabledTime: Int64 = 30_000_000, realClock: Bool = false) async -> SQLiteCacheStore {
        let store = SQLiteCacheStore(
            folder.options {
                $0.patience = 1000
                $0.disabledTime = disabledTime
                if !realClock { $0.clock = { [now] in now.value } }
            })
        for number in 1...2 { await store.write(Sample.entry(number, generation: 1), under: Sample.key(number)) }
        return store
    }

    private func generation(_ number: Int, in store: SQLiteCacheStore) async -> UInt64? {
        await store.read(Sample.key(number)).entry.flatMap { Sample.generation(of: $0, number) }
    }

    /// The generations of both entries for a process that starts now.
    private func generationsForOthers() async -> [UInt64?] {
        let store = SQLiteCacheStore(folder.options())
        let found = [await generation(1, in: store), await generation(2, in: store)]
        let counts = store.counts
        #expect(counts.faults.isEmpty && !counts.isDisabled, "\(counts)")
        await store.close()
        return found
    }

    @Test("A removal that fails hides the entry, and is repeated when the disk is used again")
    func aRemovalThatFailsIsRepeated() async throws {
        let store = await filledStore()
        let holder = try Holder(folder.database)
        #expect(await store.remove(Sample.key(1)) == false)
        #expect(store.counts.isDisabled)
        #expect(await generation(1, in: store) == nil, "removed, but still found")
        // While the disk is not used, removals are not even tried.
        #expect(await store.remove(Sample.key(2)) == false)
        #expect(await generation(2, in: store) == nil, "removed, but still found")
        holder.release()
        #expect(await generationsForOthers() == [1, 1])
        now.advance(by: 31_000_000)
        // The removal is written first, so a newer entry stays.
        #expect(await store.write(Sample.entry(2, generation: 2), under: Sample.key(2)))
        #expect(await generation(1, in: store) == nil)
        #expect(await generation(2, in: store) == 2)
        #expect(await generationsForOthers() == [nil, 2])
        await store.close()
    }

    @Test("An entry whose replacement is not written is no longer found")
    func whatIsNotReplacedIsRemoved() async throws {
        let store = await filledStore()
        let holder = try Holder(folder.database)
        #expect(await store.write(Sample.entry(1, generation: 2), under: Sample.key(1)) == false)
        #expect(await generation(1, in: store) == nil, "older, but still found")
        #expect(await generation(2, in: store) == 1)
        // Most of those are new. If they are too many, the other entries stay.
        for number in 0..<OwedRemovals.most + 10 {
            store.write(Sample.entry(number, generation: 1, count: 10), under: Sample.key(10 + number), nil)
        }
        #expect(await store.write(Sample.entry(3, generation: 1), under: Sample.key(3)) == false)
        #expect(await generation(2, in: store) == 1)
        holder.release()
        now.advance(by: 31_000_000)
        #expect(await store.write(Sample.entry(3, generation: 1), under: Sample.key(3)))
        let found = await generationsForOthers()
        #expect(found == [nil, 1], "\(store.counts)")
        await store.close()
    }

    @Test("Removals that have failed are repeated before the store is closed")
    func removalsAreRepeatedAtTheEnd() async throws {
        let store = await filledStore()
        let holder = try Holder(folder.database)
        #expect(await store.remove(Sample.key(1)) == false)
        holder.release()
        await store.close()
        #expect(await generationsForOthers() == [nil, 1])
    }

    @Test("The removal of all entries that fails hides all, and is repeated")
    func theRemovalOfAllIsRepeated() async throws {
        let store = await filledStore()
        let holder = try Holder(folder.database)
        #expect(await store.removeAll() == false)
        #expect(await generation(2, in: store) == nil, "removed, but still found")
        holder.release()
        now.advance(by: 31_000_000)
        #expect(await store.write(Sample.entry(1, generation: 2), under: Sample.key(1)))
        #expect(await generationsForOthers() == [2, nil])
        await store.close()
    }

    @Test("A failed removal is repeated although nothing else is written")
    func removalsAreRepeatedWithoutOtherWork() async throws {
        let store = await filledStore(disabledTime: 20_000, realClock: true)
        let holder = try Holder(folder.database)
        #expect(await store.remove(Sample.key(1)) == false)
        holder.release()
        while await generationsForOthers() != [nil, 1] { await Task.yield() }
        await store.close()
    }

    @Test("If too many removals have failed, all entries are removed")
    func tooManyRemovalsRemoveAll() async throws {
        let store = await filledStore()
        let holder = try Holder(folder.database)
        #expect(await store.remove(Sample.key(1)) == false)
        for number in 0..<OwedRemovals.most { store.remove(Sample.key(10 + number), nil) }
        #expect(await store.remove(Sample.key(9)) == false)
        #expect(await generation(2, in: store) == nil)
        holder.release()
        await store.close()
        #expect(await generationsForOthers() == [nil, nil])
    }
}
