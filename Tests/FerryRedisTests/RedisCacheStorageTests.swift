import Dispatch
import FerryCache
import FerryRedis
import Testing

@Suite(.timeLimit(.minutes(2))) struct RedisCacheStorageTests {
    private let server = FakeRedis()

    @Test func writtenEntriesAreFoundByOthersUntilTheyAreRemoved() async {
        let (one, other) = (RedisCacheStorage(patient(server.path)), RedisCacheStorage(patient(server.path)))
        #expect(await one.absence(key(1)) == .notFound)
        #expect(await one.write(entry(7), under: key(1)))
        #expect(await other.byte(key(1)) == 7)
        #expect(await other.byte(key(2)) == nil)
        #expect(await one.remove(key(1)))
        #expect(await other.absence(key(1)) == .notFound)
        #expect(one.counts.written == 1 && one.counts.faults.isEmpty && other.counts.faults.isEmpty)
        await one.close()
        await other.close()
        server.stop()
    }

    @Test func aKeyShowsNothingOfItsRequest() async {
        let storage = RedisCacheStorage(patient(server.path) { $0.prefix = "shop:" })
        await storage.write(entry(7), under: key(1))
        #expect(server.names == ["shop:2:" + key(1).name])
        #expect(!server.commands.joined().contains { $0.contains("canary") })
        await storage.close()
        server.stop()
    }

    @Test func anEntryExpiresWhenItIsUselessAndAtTheMaximumAtLatest() async {
        let storage = RedisCacheStorage(patient(server.path) { $0.timeToLive = .seconds(100) })
        for time in [nil, Duration.seconds(1000), .milliseconds(5500), .zero, .seconds(-1)] {
            await storage.write(entry(7, useful: time), under: key(1))
        }
        let times = server.commands.filter { $0[0] == "PSETEX" }.map { $0[2] }
        #expect(times == ["100000", "100000", "5500", "1", "1"])
        await storage.close()
        server.stop()
    }

    @Test func aConnectionBeginsWithTheLogin() async {
        let storage = RedisCacheStorage(
            patient(server.path) { ($0.user, $0.password, $0.database) = ("kim", "secret", 3) })
        #expect(await storage.absence(key(1)) == .notFound)
        // The other connection, which listens for removals, may start meanwhile.
        let commands = server.commands.prefix { $0[0] != "GETRANGE" }
        #expect(commands.first == ["AUTH", "kim", "secret"] && commands.contains(["SELECT", "3"]))
        await storage.close()
        server.stop()
    }

    @Test func aRefusedLoginIsAMiss() async {
        server.script { $0[0] == "AUTH" ? .text("-WRONGPASS no\r\n") : .honest }
        let storage = RedisCacheStorage(patient(server.path) { $0.password = "wrong" })
        #expect(await storage.absence(key(1)) == .unavailable)
        #expect(storage.counts.faults == [.noPermission: 1])
        await storage.close()
        server.stop()
    }

    @Test func noLimitIsTooLarge() async {
        let storage = RedisCacheStorage(patient(server.path) { $0.maxEntryBytes = .max })
        #expect(await storage.write(entry(7, count: 100), under: key(1)))
        #expect(await storage.byte(key(1)) == 7)
    }

    @Test func tooLargeOrTooManyEntriesAreNotWritten() async {
        // After the first write there is no reply to anything, because replies come in the order of the commands.
        server.script { [weak server] _ in (server?.count("PSETEX") ?? 0) > 0 ? .silence : .honest }
        let storage = RedisCacheStorage(
            patient(server.path) { ($0.maxEntryBytes, $0.maxQueuedBytes) = (2000, 1000) })
        #expect(await !storage.write(entry(7, count: 2000), under: key(1)))
        #expect(storage.counts.refused == 1)
        #expect(await storage.remove(key(2)))
        #expect(server.commands.filter { $0[0] == "UNLINK" }.count == 2)
        // The first uses all of the room, and gets no reply.
        storage.write(entry(7, count: 1500), under: key(1), nil)
        #expect(await !storage.write(entry(7, count: 100), under: key(2)))
        #expect(storage.counts.dropped == 1)
        #expect(storage.counts.queuedBytes > 1500)
        server.stop()
        await storage.close()
        #expect(storage.counts.queuedBytes == 0)
    }

    @Test func whenRedisIsFullNothingIsWrittenAndOldEntriesAreFound() async {
        let storage = RedisCacheStorage(patient(server.path))
        await storage.write(entry(7), under: key(1))
        server.script { $0[0] == "PSETEX" ? .text("-OOM command not allowed\r\n") : .honest }
        for _ in 0..<5 { #expect(await !storage.write(entry(8), under: key(2))) }
        #expect(await storage.byte(key(1)) == 7)
        // The older entry is not found in place of the one that was not stored, and nobody else forgets anything.
        #expect(await !storage.write(entry(9), under: key(1)))
        #expect(await storage.absence(key(1)) == .notFound)
        #expect(storage.counts.failed == 6 && storage.counts.faults == [.noSpace: 6])
        #expect(!server.commands.contains { $0[0] == "PUBLISH" })
        #expect(!storage.counts.isDisabled)
        await storage.close()
        server.stop()
    }

    /// A write that still waits is older than one that was not accepted.
    @Test func anOlderWriteThatWaitsIsRemovedToo() async {
        let gate = DispatchSemaphore(value: 0)
        server.script { words in
            if words[0] == "GETRANGE", words[1].hasSuffix(key(9).name) { gate.wait() }
            return .honest
        }
        let storage = RedisCacheStorage(
            patient(server.path) { ($0.maxQueuedBytes, $0.minCompressedBytes) = (1_200_000, nil) })
        async let held = storage.absence(key(9))
        while !server.commands.contains(where: { $0[0] == "GETRANGE" }) { await Task.yield() }
        // More than is sent ahead.
        storage.write(entry(1, count: 700_000), under: key(1), nil)
        storage.write(entry(2, count: 400_000), under: key(2), nil)
        #expect(await !storage.write(entry(3, count: 200_000), under: key(2)))
        gate.signal()
        #expect(await held == .notFound)
        #expect(await storage.write(entry(4), under: key(4)))
        await storage.close()
        #expect(!server.names.contains { $0.hasSuffix(key(2).name) } && server.names.count == 2)
        server.stop()
    }

    @Test func concurrentLookupsFindTheirOwnEntries() async {
        let storage = RedisCacheStorage(patient(server.path))
        for number in 0..<50 { await storage.write(entry(UInt8(number), count: 3000), under: key(number)) }
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<32 {
                group.addTask {
                    for step in 0..<50 {
                        let number = (task + step) % 50
                        #expect(await storage.byte(key(number)) == UInt8(number))
                        if step % 10 == 0 { await storage.write(entry(UInt8(number), count: 3000), under: key(number)) }
                    }
                }
            }
        }
        #expect(storage.counts.faults.isEmpty)
        await storage.close()
        server.stop()
    }

    @Test func largeEntriesAreComplete() async {
        let storage = RedisCacheStorage(patient(server.path) { $0.maxQueuedBytes = 64 << 20 })
        let count = 4 << 20
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask {
                    #expect(await storage.write(entry(UInt8(number), count: count), under: key(number)))
                    #expect(await storage.byte(key(number)) == UInt8(number))
                }
            }
        }
        await storage.close()
        server.stop()
    }

    @Test func allEntriesOfThePrefixAreRemovedAndCounted() async {
        server["other"] = [1]
        server["axb:1:x"] = [1]
        let storage = RedisCacheStorage(patient(server.path) { $0.prefix = "a*b:" })
        for number in 0..<7 { await storage.write(entry(7), under: key(number)) }
        #expect(await storage.measure() == CacheSize(entries: 7))
        #expect(server.commands.first { $0[0] == "SCAN" }?[3] == "a\\*b:[0-9]*:*")
        await storage.close()
        server.stop()
    }

    @Test func allIsRemoved() async {
        server["other"] = [1]
        let storage = RedisCacheStorage(patient(server.path))
        for number in 0..<7 { await storage.write(entry(7), under: key(number)) }
        #expect(await storage.removeAll())
        #expect(server.names == ["other"])
        #expect(await storage.measure() == CacheSize())
        await storage.close()
        server.stop()
    }

    @Test func othersAreNotifiedOfRemovals() async {
        let (one, other) = (RedisCacheStorage(patient(server.path)), RedisCacheStorage(patient(server.path)))
        for storage in [one, other] {
            _ = await storage.read(key(1))
            // Removals before the subscription are unknown.
            #expect(await storage.hears())
        }
        #expect(await one.remove(key(1)))
        #expect(await other.hears())
        var hearsItself = false
        one.hearRemovals { _ in hearsItself = true }
        #expect(!hearsItself)
        #expect(await other.removeAll())
        #expect(await one.hears())
        await one.close()
        await other.close()
        server.stop()
    }

    @Test func acceptedWritesAreDoneBeforeTheEnd() async {
        let storage = RedisCacheStorage(patient(server.path))
        for number in 0..<50 { storage.write(entry(7), under: key(number), nil) }
        await storage.close()
        #expect(server.names.count == 50)
        #expect(await storage.absence(key(1)) == .unavailable)
        #expect(await !storage.write(entry(7), under: key(1)))
        await storage.close()
        server.stop()
    }

    @Test func extremeTimesDoNotTrap() async {
        for time in [Duration.seconds(Int64.max), .zero, .seconds(Int64.min)] {
            let storage = RedisCacheStorage(
                patient(server.path) { configuration in
                    configuration.connectTimeout = time
                    (configuration.timeToLive, configuration.lease) = (time, time)
                    (configuration.pause, configuration.longestPause) = (time, time)
                    if time > .zero { (configuration.timeout, configuration.writeTimeout) = (time, time) }
                })
            if time > .zero { #expect(await storage.write(entry(7, useful: time), under: key(1))) }
            _ = await storage.read(key(1))
            await storage.close()
        }
        server.stop()
    }

    @Test func anUnusedStorageEndsAtOnce() async {
        let storage = RedisCacheStorage(patient(server.path))
        await storage.close()
        #expect(server.commands.isEmpty)
        server.stop()
    }
}
