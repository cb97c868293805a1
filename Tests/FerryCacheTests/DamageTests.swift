import Csqlite3
import FaultTable
import FerryCacheProbe
import FoundationEssentials
import Testing

@testable import FerryCache

/// Whatever is done to the files: an entry is whole or missing, and the store continues.
@Suite(.faultTable) struct DamageTests {
    private let folder: TestFolder
    private static let count = 6

    init() throws { folder = try TestFolder() }

    /// A database of few pages, one of them for the end of a long entry, with an empty log.
    private func makeDatabase() async throws -> [UInt8] {
        let store = SQLiteCacheStore(folder.options())
        for number in 0..<Self.count {
            await store.write(
                Sample.entry(number, generation: 1, count: number == 0 ? 4500 : 300), under: Sample.key(number))
        }
        await store.close()
        return try folder.read(folder.database)
    }

    /// A key as stored in its row.
    private static func row(_ number: Int) -> String {
        Sample.key(number).digest.withBytes { literal(Array($0.prefix(8))) }
    }

    private static func literal(_ bytes: [UInt8]) -> String {
        "x'" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + "'"
    }

    /// Reads everything from a damaged database, writes, and reads that. Returns the number of hits.
    private static func survives(_ bytes: [UInt8], _ what: String, in folder: TestFolder) async throws -> Int {
        try? FileManager.default.removeItem(atPath: folder.store)
        try FileManager.default.createDirectory(atPath: folder.store, withIntermediateDirectories: true)
        try folder.write(bytes, to: folder.database)
        let store = SQLiteCacheStore(folder.options())
        var hits = 0
        for number in 0..<Self.count {
            switch await store.read(Sample.key(number)) {
            case .found(let entry):
                hits += 1
                #expect(Sample.generation(of: entry, number) == 1, "wrong bytes: \(what)")
            case .missing: break
            }
        }
        #expect(await store.write(Sample.entry(1, generation: 9), under: Sample.key(1)), "\(what)")
        let found = await store.read(Sample.key(1)).entry
        #expect(found.flatMap { Sample.generation(of: $0, 1) } == 9, "\(what)")
        await store.close()
        return hits
    }

    /// Does it for all, with as many tasks as processors. Returns the sum of the hits.
    private static func survivesAll(
        _ range: Range<Int>, _ damaged: @escaping @Sendable (Int) -> (bytes: [UInt8], what: String)
    ) async throws -> Int {
        #if FERRY_TSAN || FERRY_ASAN
        let step = 37
        #else
        let step = range.count > 1000 ? LongTests.count(1, share: 16) : 1
        #endif
        let tasks = ProcessInfo.processInfo.activeProcessorCount
        // Another share each time.
        let range = range.lowerBound + Int.random(in: 0..<step)..<range.upperBound
        return try await withThrowingTaskGroup(of: Int.self) { group in
            for first in 0..<tasks {
                group.addTask {
                    let folder = try TestFolder(inMemory: true)
                    var hits = 0
                    for place in stride(from: range.lowerBound + first * step, to: range.upperBound, by: tasks * step) {
                        let (bytes, what) = damaged(place)
                        hits += try await survives(bytes, what, in: folder)
                    }
                    return hits
                }
            }
            return try await group.reduce(0, +)
        }
    }

    @Test("R99: a flipped byte anywhere in the database is a miss at worst", .timeLimit(.minutes(10)))
    func aFlippedByteAnywhereInTheDatabaseIsAMissAtWorst() async throws {
        let whole = try await makeDatabase()
        let hits = try await Self.survivesAll(0..<whole.count) { index in
            var broken = whole
            broken[index] ^= 0xFF
            return (broken, "byte \(index) of \(whole.count)")
        }
        #expect(hits < Self.count * whole.count && hits > 0)
    }

    /// SQLite must not compare bytes beyond a page, which are random: so more than once.
    @Test("R99: an entry written where the index is damaged is found")
    func aDamagedIndexFindsWhatIsWritten() async throws {
        for _ in 0..<25 {
            try? FileManager.default.removeItem(atPath: folder.store)
            let whole = try await makeDatabase()
            // The keys are at the end of the third page.
            _ = try await Self.survivesAll(12_190..<12_288) { index in
                var broken = whole
                broken[index] ^= 0xFF
                return (broken, "byte \(index) of \(whole.count)")
            }
        }
    }

    @Test("R99: a database truncated at any length is a miss at worst", .timeLimit(.minutes(10)))
    func aDatabaseCutAtAnyLengthIsAMissAtWorst() async throws {
        let whole = try await makeDatabase()
        let hits = try await Self.survivesAll(0..<whole.count) { count in (Array(whole[..<count]), "cut at \(count)") }
        #expect(hits < Self.count * whole.count)
        #expect(try await Self.survives(whole, "whole", in: folder) == Self.count)
    }

    @Test("R99: a damaged log is a miss at worst") func aDamagedLogIsAMissAtWorst() async throws {
        let store = SQLiteCacheStore(folder.options())
        for number in 0..<Self.count {
            await store.write(Sample.entry(number, generation: 1), under: Sample.key(number))
        }
        let (database, log) = (try folder.read(folder.database), try folder.read(folder.database + "-wal"))
        await store.close()
        for index in stride(from: 0, to: log.count, by: 3001) {
            try FileManager.default.removeItem(atPath: folder.store)
            try FileManager.default.createDirectory(atPath: folder.store, withIntermediateDirectories: true)
            var broken = log
            broken[index] ^= 0x55
            try folder.write(database, to: folder.database)
            try folder.write(broken, to: folder.database + "-wal")
            let store = SQLiteCacheStore(folder.options())
            for number in 0..<Self.count {
                if let entry = await store.read(Sample.key(number)).entry {
                    #expect(Sample.generation(of: entry, number) == 1)
                }
            }
            #expect(await store.write(Sample.entry(1, generation: 9), under: Sample.key(1)))
            await store.close()
        }
    }

    @Test("R99: swapped entries are misses and are removed") func swappedEntriesAreMissesAndAreRemoved() async throws {
        _ = try await makeDatabase()
        let (first, second) = (Self.row(1), Self.row(2))
        try change(
            """
            CREATE TEMP TABLE old AS SELECT key, record FROM entries;
            UPDATE entries SET record=(SELECT record FROM old WHERE old.key=\(second)) WHERE key=\(first);
            UPDATE entries SET record=(SELECT record FROM old WHERE old.key=\(first)) WHERE key=\(second);
            """)
        let store = SQLiteCacheStore(folder.options())
        #expect(await store.read(Sample.key(1)).reason == .corrupt)
        #expect(await store.read(Sample.key(2)).reason == .corrupt)
        #expect(await store.read(Sample.key(3)).entry != nil)
        await store.write(Sample.entry(5, generation: 2), under: Sample.key(5))
        #expect(await store.read(Sample.key(1)).reason == .notFound)
        #expect(store.counts.corrupt >= 2)
        await store.close()
    }

    @Test func aKeyThatSharesItsNumberWithAnotherIsAMiss() async throws {
        _ = try await makeDatabase()
        let key = Sample.key(1).digest
        // The same first eight bytes, followed by others.
        var other = key.withBytes { Array($0) }
        other[31] ^= 1
        let twin = other.withUnsafeBytes { CacheDigest(bytes: $0) }
        let record = Sample.entry(1, generation: 1).sealed(under: twin)
        try change("UPDATE entries SET record=\(Self.literal(record)) WHERE key=\(Self.row(1))")
        let store = SQLiteCacheStore(folder.options())
        #expect(await store.read(Sample.key(1)).reason == .notFound)
        #expect(store.counts.corrupt == 0)
        await store.close()
    }

    @Test("R99: an impossible time of use does no harm", arguments: [Int64.max, .min, .max - 1, -1])
    func aTimeOfUseThatCannotBeIsSurvived(used: Int64) async throws {
        _ = try await makeDatabase()
        try change("UPDATE entries SET used=\(used) WHERE key=\(Self.row(1))")
        let store = SQLiteCacheStore(folder.options())
        #expect(await store.read(Sample.key(1)).entry != nil)
        #expect(await store.write(Sample.entry(2, generation: 2), under: Sample.key(2)))
        #expect(await store.read(Sample.key(2)).entry.flatMap { Sample.generation(of: $0, 2) } == 2)
        #expect(store.counts.putAside == (used > 0 ? 1 : 0))
        await store.close()
    }

    @Test func aForeignDatabaseIsPutAside() async throws {
        _ = try await makeDatabase()
        try change("PRAGMA application_id=17; CREATE TABLE notes(text); INSERT INTO notes VALUES('precious')")
        let store = SQLiteCacheStore(folder.options())
        #expect(await store.read(Sample.key(1)).reason == .notFound)
        #expect(await store.write(Sample.entry(1, generation: 2), under: Sample.key(1)))
        #expect(store.counts.putAside == 1)
        await store.close()
        let aside = String(decoding: try folder.read(folder.database + ".aside"), as: UTF8.self)
        #expect(aside.contains("precious"))
    }

    @Test("R99: a file that is no database is moved aside") func aFileThatIsNoDatabaseIsMovedAside() async throws {
        for bytes in [Array("this is a letter to my aunt".utf8), [UInt8](repeating: 0, count: 100_000)] {
            _ = try await makeDatabase()
            #expect(try await Self.survives(bytes, "no database", in: folder) == 0)
        }
    }

    @Test func aDirectoryWhereTheDatabaseShouldBeIsPutAside() async throws {
        try FileManager.default.createDirectory(atPath: folder.database + "/x", withIntermediateDirectories: true)
        let store = SQLiteCacheStore(folder.options())
        #expect(await store.write(Sample.entry(1, generation: 2), under: Sample.key(1)))
        await store.close()
    }

    @Test func aLinkIsNotFollowed() async throws {
        let victim = folder.path + "/victim"
        try folder.write([1, 2, 3], to: victim)
        try FileManager.default.createDirectory(atPath: folder.store, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: folder.database, withDestinationPath: victim)
        let store = SQLiteCacheStore(folder.options())
        #expect(await store.write(Sample.entry(1, generation: 2), under: Sample.key(1)))
        await store.close()
        #expect(try folder.read(victim) == [1, 2, 3])
    }

    @Test("R102: if the directory cannot be created, every lookup misses and the disk is left alone")
    func aDirectoryThatIsAFileLeavesEverythingMissing() async throws {
        try FileManager.default.createDirectory(atPath: folder.path + "/a", withIntermediateDirectories: true)
        try folder.write([1], to: folder.store)
        let store = SQLiteCacheStore(folder.options())
        #expect(await store.read(Sample.key(1)).reason == .unavailable)
        #expect(await store.write(Sample.entry(1, generation: 1), under: Sample.key(1)) == false)
        #expect(store.counts.failed == 1)
        #expect(store.counts.faults[.io] == 2)
        #expect(store.counts.isDisabled)
        // Left alone for a while: no more faults.
        #expect(await store.read(Sample.key(1)).reason == .unavailable)
        #expect(store.counts.faults[.io] == 2)
        await store.close()
    }

    @Test func aDiskThatIsWellAgainIsUsedAgain() async throws {
        try FileManager.default.createDirectory(atPath: folder.path + "/a", withIntermediateDirectories: true)
        try folder.write([1], to: folder.store)
        let store = SQLiteCacheStore(folder.options { $0.disabledTime = 0 })
        #expect(await store.write(Sample.entry(1, generation: 1), under: Sample.key(1)) == false)
        try FileManager.default.removeItem(atPath: folder.store)
        #expect(await store.write(Sample.entry(1, generation: 1), under: Sample.key(1)))
        #expect(await store.read(Sample.key(1)).entry != nil)
        await store.close()
    }

    @Test func filesThatAreRemovedUnderItAreMadeAnew() async throws {
        let now = CacheClock()
        let store = SQLiteCacheStore(folder.options { $0.clock = { now.value } })
        await store.write(Sample.entry(1, generation: 1), under: Sample.key(1))
        try FileManager.default.removeItem(atPath: folder.store)
        now.advance(by: 2_000_000)
        #expect(await store.write(Sample.entry(2, generation: 1), under: Sample.key(2)))
        #expect(await store.read(Sample.key(1)).reason == .notFound)
        #expect(await store.read(Sample.key(2)).entry != nil)
        #expect(try folder.files().contains("entries-1.sqlite"))
        await store.close()
    }

    /// By another connection.
    private func change(_ sql: String) throws {
        var database: OpaquePointer?
        try #require(sqlite3_open(folder.database, &database) == SQLITE_OK)
        defer { sqlite3_close(database) }
        let code = sqlite3_exec(database, sql, nil, nil, nil)
        try #require(code == SQLITE_OK, "\(String(cString: sqlite3_errmsg(database)))")
    }
}
