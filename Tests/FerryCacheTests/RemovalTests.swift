import FerryCacheProbe
import Foundation
import Testing

@testable import FerryCache

/// Removals are noticed by all processes that share a directory.
@Suite struct RemovalTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private func store() async -> SQLiteCacheStore {
        let store = SQLiteCacheStore(folder.options())
        // It notices removals from its first use on.
        _ = await store.read(Sample.key(0))
        return store
    }

    private func hears(_ store: SQLiteCacheStore) -> Bool {
        var hears = false
        store.hearRemovals { _ in hears = true }
        return hears
    }

    @Test func everyoneHearsOfItOnceButWhoDidIt() async throws {
        let (first, second, third) = (await store(), await store(), await store())
        await first.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        #expect([first, second, third].map(hears) == [false, false, false], "what is written is no news")
        await first.remove(Sample.key(1))
        #expect([first, second, third].map(hears) == [false, true, true])
        #expect([first, second, third].map(hears) == [false, false, false])
        await third.removeAll()
        #expect([first, second, third].map(hears) == [true, true, false])
        for store in [first, second, third] { await store.close() }
    }

    @Test func ownRemovalsHideNobodyElses() async throws {
        let (first, second) = (await store(), await store())
        await first.remove(Sample.key(1))
        await second.remove(Sample.key(2))
        #expect([first, second].map(hears) == [true, true])
        #expect([first, second].map(hears) == [false, false])
        await first.close()
        await second.close()
        #expect([first, second].map(hears) == [false, false])
    }

    @Test func aStoreThatComesLaterHasMissedNothing() async throws {
        let first = await store()
        await first.remove(Sample.key(1))
        let second = await store()
        #expect(!hears(second))
        await first.remove(Sample.key(1))
        #expect(hears(second))
        await first.close()
        await second.close()
    }

    @Test func manyAtOnceAreAllHeard() async throws {
        let stores = [await store(), await store()]
        for round in 0..<50 {
            await withTaskGroup(of: Void.self) { group in
                for store in stores { group.addTask { await store.remove(Sample.key(round)) } }
            }
            #expect(stores.map(hears).contains(true), "one of them was the second")
            #expect(stores.map(hears) == [false, false])
        }
        for store in stores { await store.close() }
    }

    private func names(_ store: SQLiteCacheStore) -> [String?] {
        var names: [String?] = []
        store.hearRemovals { names.append($0) }
        return names
    }

    @Test func theNamesOfTheKeysAreHeard() async throws {
        let (first, second) = (await store(), await store())
        for number in 1...3 { await first.remove(Sample.key(number)) }
        #expect(names(second) == (1...3).map { Sample.key($0).name })
        #expect(names(second).isEmpty && second.removalsHeard == 0)
        await first.remove(Sample.key(4))
        await first.removeAll()
        #expect(names(second) == [nil] && second.removalsHeard == 1)
        await second.remove(Sample.key(5))
        #expect(names(first) == [Sample.key(5).name])
        await first.close()
        await second.close()
    }

    /// More than the file has room for, and a slot that another version of the program has not written.
    @Test func anyEntryMayBeMeantIfTheNamesAreNotKnown() async throws {
        let (first, second) = (await store(), await store())
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<4200 { group.addTask { await first.remove(Sample.key(number)) } }
        }
        #expect(names(second) == [nil])
        // What an earlier version does: it only counts.
        let file = try FileHandle(forUpdating: URL(filePath: folder.store + "/lock"))
        let old = try #require(try file.read(upToCount: 8)).withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
        try file.seek(toOffset: 0)
        try file.write(contentsOf: withUnsafeBytes(of: old + 1) { Data($0) })
        try file.close()
        #expect(names(second) == [nil])
        await first.close()
        await second.close()
    }

    /// A new lock file begins to count again: whoever knows the old one has missed everything in it.
    @Test func aDirectoryThatWasReplacedMayHaveLostAnything() async throws {
        let first = await store()
        for number in 1...3 { await first.remove(Sample.key(number)) }
        let second = await store()
        await first.close()
        try FileManager.default.removeItem(atPath: folder.store)
        let third = await store()
        for number in 1...5 { await third.remove(Sample.key(number)) }
        // It opens the new directory with its next write.
        await second.write(Sample.entry(9, generation: 1), under: Sample.key(9))
        #expect(names(second) == [nil])
        await third.remove(Sample.key(6))
        #expect(names(second) == [Sample.key(6).name])
        await second.close()
        await third.close()
    }

    /// A thread that looks during a removal by its own process may hear its name, but never that all may be gone.
    @Test func ownRemovalsAreNeverHeardAsThoseOfUnknownEntries() async throws {
        let own = await store()
        let looking = Task.detached {
            var isAny = false
            while !Task.isCancelled {
                own.hearRemovals { if $0 == nil { isAny = true } }
                await Task.yield()
            }
            return isAny
        }
        for number in 0..<200 { await own.remove(Sample.key(number)) }
        looking.cancel()
        #expect(await looking.value == false)
        #expect(own.removalsHeard == 0)
        await own.close()
    }
}
