import Dispatch
import FerryCacheProbe
import FerrySynchronization
import FoundationEssentials
import Glibc
import Testing

@testable import FerryCache

@Suite struct SQLiteCacheStoreTests {
    private let folder: TestFolder

    init() throws { folder = try TestFolder() }

    private func makeStore(_ change: (inout CacheStoreOptions) -> Void = { _ in }) -> SQLiteCacheStore {
        SQLiteCacheStore(folder.options(change))
    }

    private func generation(_ number: Int, in store: SQLiteCacheStore) async -> UInt64? {
        await store.read(Sample.key(number)).entry.flatMap { Sample.generation(of: $0, number) }
    }

    @Test func whatWasWrittenIsReadAgain() async {
        let store = makeStore()
        #expect(await store.read(Sample.key(1)).reason == .notFound)
        #expect(await store.write(Sample.entry(1, generation: 4), under: Sample.key(1)))
        #expect(await generation(1, in: store) == 4)
        #expect(await store.write(Sample.entry(1, generation: 5), under: Sample.key(1)))
        #expect(await generation(1, in: store) == 5)
        #expect(await store.read(Sample.key(2)).reason == .notFound)
        #expect(store.counts.written == 2)
        await store.close()
    }

    @Test func whatWasWrittenIsThereForTheNextStore() async {
        let first = makeStore()
        for number in 0..<100 { first.write(Sample.entry(number, generation: 1), under: Sample.key(number), nil) }
        await first.close()
        let second = makeStore()
        for number in 0..<100 { #expect(await generation(number, in: second) == 1) }
        #expect(await second.measure().entries == 100)
        await second.close()
    }

    @Test func readersFollowADatabaseThatIsAnotherOneNow() async throws {
        let store = makeStore()
        // Only read so far: no writer checks the file.
        #expect(await store.read(Sample.key(1)).reason == .notFound)
        try FileManager.default.removeItem(atPath: folder.options().directory)
        #expect(await store.write(Sample.entry(1, generation: 1), under: Sample.key(1)))
        #expect(await generation(1, in: store) == 1)
        await store.close()
    }

    @Test func anEntryLargerThanTheQueueHasItToItself() async {
        let store = makeStore { $0.maxQueuedBytes = 100 }
        #expect(await store.write(Sample.entry(1, generation: 1), under: Sample.key(1)))
        #expect(await generation(1, in: store) == 1)
        await store.close()
    }

    @Test func twoStoresShareADirectory() async {
        let (first, second) = (makeStore(), makeStore())
        await first.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        #expect(await generation(1, in: second) == 1)
        await second.write(Sample.entry(1, generation: 2), under: Sample.key(1))
        #expect(await generation(1, in: first) == 2)
        await first.close()
        #expect(await generation(1, in: second) == 2)
        await second.close()
    }

    @Test func whatWasRemovedIsGone() async {
        let store = makeStore()
        for number in 0..<10 { store.write(Sample.entry(number, generation: 1), under: Sample.key(number), nil) }
        #expect(await store.remove(Sample.key(3)))
        #expect(await store.read(Sample.key(3)).reason == .notFound)
        #expect(await generation(4, in: store) == 1)
        #expect(await store.removeAll())
        #expect(await store.read(Sample.key(4)).reason == .notFound)
        #expect(await store.measure().entries == 0)
        await store.close()
    }

    @Test func removingAllGivesTheDiskBack() async throws {
        let store = makeStore()
        for number in 0..<500 { store.write(Sample.entry(number, generation: 1), under: Sample.key(number), nil) }
        await store.removeAll()
        await store.close()
        #expect(try folder.read(folder.database).count < 64_000)
    }

    @Test func directoryAndFilesAreTheOwnersOnly() async throws {
        let store = makeStore()
        await store.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        #expect(try folder.mode(folder.store) == 0o700)
        let files = try folder.files()
        #expect(files == ["entries-1.sqlite", "entries-1.sqlite-shm", "entries-1.sqlite-wal", "lock"])
        for file in files { #expect(try folder.mode(folder.store + "/" + file) == 0o600, "\(file)") }
        await store.close()
    }

    @Test("A new database does not share the log of one that was removed while it was open")
    func aRemovedDatabaseLeavesNoLog() async throws {
        func inode(_ suffix: String) -> UInt64? {
            var status = stat()
            return lstat(folder.database + suffix, &status) == 0 ? UInt64(status.st_ino) : nil
        }
        let old = SQLiteCacheStore(folder.options())
        #expect(await old.write(Sample.entry(1, generation: 1), under: Sample.key(1)))
        let before = try [#require(inode("-shm")), #require(inode("-wal"))]
        #expect(unlink(folder.database) == 0)
        let new = SQLiteCacheStore(folder.options())
        #expect(await new.write(Sample.entry(2, generation: 1), under: Sample.key(2)))
        #expect(inode("-shm") != before[0] && inode("-wal") != before[1])
        #expect(await new.read(Sample.key(1)).entry == nil)
        #expect(await new.read(Sample.key(2)).entry != nil)
        await new.close()
        await old.close()
    }

    @Test func keysAreKeptAsDigestsOnly() async throws {
        let store = makeStore()
        let key = CacheKey(Array("GET http://h/?token=canary-of-the-key".utf8))
        await store.write(Sample.entry(1, generation: 1), under: key)
        for file in try folder.files() {
            let text = String(decoding: try folder.read(folder.store + "/" + file), as: UTF8.self)
            #expect(!text.contains("canary"), "\(file)")
        }
        await store.close()
    }

    @Test func itStaysWithinItsBoundAndTheLeastRecentlyUsedGoFirst() async {
        let store = makeStore {
            $0.maxBytes = 1 << 20
            $0.touchTime = 0
        }
        for number in 0..<100 {
            await store.write(Sample.entry(number, generation: 1, count: 3000), under: Sample.key(number))
        }
        // Number 7 is used again and again, the others are not.
        for number in 100..<600 {
            store.write(Sample.entry(number, generation: 1, count: 3000), under: Sample.key(number), nil)
            if number % 20 == 0 {
                #expect(await generation(7, in: store) == 1, "at \(number)")
                await store.write(Sample.entry(number, generation: 1, count: 3000), under: Sample.key(number))
            }
        }
        // Entries are written in their order.
        await store.write(Sample.entry(599, generation: 1, count: 3000), under: Sample.key(599))
        #expect(await store.read(Sample.key(6)).reason == .notFound)
        #expect(await store.read(Sample.key(50)).reason == .notFound)
        for number in 500..<600 { #expect(await generation(number, in: store) == 1, "\(number)") }
        let size = await store.measure()
        #expect(size.bytes <= 1 << 20)
        #expect(size.entries > 150)
        #expect(
            store.counts.evicted == UInt64(601 - size.entries) || store.counts.evicted == UInt64(600 - size.entries))
        await store.close()
    }

    @Test func largeEntriesAreNotAllEvictedForOne() async {
        let store = makeStore { $0.maxBytes = 8 << 20 }
        for number in 0..<12 {
            await store.write(Sample.entry(number, generation: 1, count: 1 << 20), under: Sample.key(number))
            #expect(await generation(number, in: store) == 1, "\(number)")
        }
        let size = await store.measure()
        #expect(size.bytes <= 8 << 20 && size.entries > 5, "\(size)")
        for number in (12 - size.entries)..<12 { #expect(await generation(number, in: store) == 1, "\(number)") }
        await store.close()
    }

    @Test func whatIsWrittenAfterTheClockWasSetBackIsNotTheFirstToGo() async {
        let now = CacheClock()
        let full = makeStore {
            $0.maxBytes = 1 << 20
            $0.clock = { now.value }
        }
        for number in 0..<400 {
            full.write(Sample.entry(number, generation: 1, count: 3000), under: Sample.key(number), nil)
        }
        await full.close()
        now.advance(by: -86_400_000_000)
        let store = makeStore {
            $0.maxBytes = 1 << 20
            $0.clock = { now.value }
        }
        for number in 400..<440 {
            await store.write(Sample.entry(number, generation: 1, count: 3000), under: Sample.key(number))
        }
        for number in 400..<440 { #expect(await generation(number, in: store) == 1, "\(number)") }
        await store.close()
    }

    @Test func twoStoresThatCountUsesTakeNothingFromEachOther() async {
        // Both always have the same time.
        let time = currentCacheTime()
        let stores = (0..<2).map { _ in makeStore { $0.clock = { time } } }
        for number in 0..<100 {
            await stores[number % 2].write(Sample.entry(number, generation: 1), under: Sample.key(number))
        }
        #expect(await stores[0].measure().entries == 100)
        for store in stores { await store.close() }
    }

    @Test func largeAndSmallEntriesLiveTogether() async {
        let store = makeStore { $0.maxBytes = 2 << 20 }
        for round in 0..<60 {
            let count = [50, 700, 3000, 20_000, 300_000][round % 5]
            await store.write(Sample.entry(round, generation: 1, count: count), under: Sample.key(round))
            #expect(await generation(round, in: store) == 1)
        }
        #expect(await store.measure().bytes <= 2 << 20)
        await store.close()
    }

    @Test func anEntryThatIsTooLargeIsNotTaken() async {
        let store = makeStore { $0.maxEntryBytes = 1000 }
        #expect(await store.write(Sample.entry(1, generation: 1, count: 1000), under: Sample.key(1)) == false)
        #expect(await store.write(Sample.entry(2, generation: 1, count: 100), under: Sample.key(2)))
        #expect(store.counts.refused == 1)
        // The older entry is not found in its place, not even by others.
        #expect(await store.write(Sample.entry(2, generation: 2, count: 1000), under: Sample.key(2)) == false)
        #expect(await generation(2, in: store) == nil)
        #expect(await store.write(Sample.entry(3, generation: 1, count: 100), under: Sample.key(3)))
        let other = makeStore()
        #expect(await generation(2, in: other) == nil)
        #expect(await store.write(Sample.entry(2, generation: 3, count: 100), under: Sample.key(2)))
        #expect(await generation(2, in: store) == 3)
        await store.close()
        #expect(await generation(2, in: other) == 3)
        await other.close()
    }

    @Test func aFullQueueDropsTheWriteAndCountsIt() async {
        let store = makeStore { $0.maxQueuedBytes = 20_000 }
        let answers = Mutex([Bool]())
        let (isHeld, goOn) = (AsyncStream<Void>.makeStream(), DispatchSemaphore(value: 0))
        for number in 49...51 { await store.write(Sample.entry(number, generation: 0), under: Sample.key(number)) }
        // The callback of the queue's first write blocks it, so that later jobs stay in it.
        store.write(Sample.entry(0, generation: 1), under: Sample.key(0)) { _ in
            isHeld.continuation.finish()
            goOn.wait()
        }
        for await _ in isHeld.stream {}
        for number in 1...50 {
            let entry = Sample.entry(number, generation: 1, count: number % 10 == 9 ? 30_000 : 4000)
            store.write(entry, under: Sample.key(number)) { done in answers.withLock { $0.append(done) } }
        }
        let taken = 20_000 / Sample.entry(1, generation: 1, count: 4000).count
        #expect(answers.withLock { $0 } == Array(repeating: false, count: 50 - taken))
        #expect(store.counts.dropped == UInt64(50 - taken))
        #expect(await generation(50, in: store) == nil, "an older entry in place of the dropped one")
        #expect(await generation(51, in: store) == 0)
        goOn.signal()
        await store.close()
        let other = makeStore()
        #expect(await generation(49, in: other) == nil)
        #expect(await generation(50, in: other) == nil)
        #expect(await generation(51, in: other) == 0)
        await other.close()
        #expect(answers.withLock { $0.count { $0 } } == taken)
        #expect(store.counts.written == UInt64(taken + 4))
        #expect(store.counts.queuedBytes == 0)
    }

    @Test func closingWritesWhatWasTaken() async {
        let store = makeStore { $0.gatheringTime = 60_000_000 }
        for number in 0..<20 { store.write(Sample.entry(number, generation: 1), under: Sample.key(number), nil) }
        await store.close()
        await store.close()
        #expect(await store.read(Sample.key(1)).reason == .unavailable)
        #expect(await store.write(Sample.entry(1, generation: 2), under: Sample.key(1)) == false)
        let next = makeStore()
        for number in 0..<20 { #expect(await generation(number, in: next) == 1) }
        await next.close()
    }

    @Test func aStoreThatIsLetGoWritesWhatItTook() async throws {
        for number in 0..<20 {
            makeStore().write(Sample.entry(number, generation: 1), under: Sample.key(number), nil)
        }
        let store = makeStore()
        for number in 0..<20 {
            var found: UInt64?
            for _ in 0..<6000 where found == nil {
                found = await generation(number, in: store)
                if found == nil { try await Task.sleep(for: .milliseconds(10)) }
            }
            #expect(found == 1)
        }
        await store.close()
    }

    @Test func manyReadAtOnce() async {
        let store = makeStore()
        for number in 0..<200 { store.write(Sample.entry(number, generation: 1), under: Sample.key(number), nil) }
        await store.write(Sample.entry(0, generation: 1), under: Sample.key(0))
        let right = await withTaskGroup(of: Int.self) { group in
            for task in 0..<32 {
                group.addTask {
                    var right = 0
                    for number in 0..<200 {
                        if await generation((number + task * 7) % 200, in: store) == 1 { right += 1 }
                    }
                    return right
                }
            }
            return await group.reduce(0, +)
        }
        #expect(right == 6400)
        await store.close()
    }

    @Test func readersThatAreClosedAnswerWhatWaits() async {
        let store = makeStore()
        await store.write(Sample.entry(0, generation: 1), under: Sample.key(0))
        let answers = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<200 {
                group.addTask {
                    _ = await store.read(Sample.key(0))
                    return 1
                }
            }
            group.addTask {
                await store.close()
                return 0
            }
            return await group.reduce(0, +)
        }
        #expect(answers == 200)
    }
}
