import Dispatch
import FerryCache
import FerryRedis
import FerrySynchronization
import Testing

/// Redis down, slow or lying: a miss, which is counted.
@Suite(.timeLimit(.minutes(2))) struct RedisFaultTests {
    private let server = FakeRedis()

    static let record = entry(7).record(for: key(1))

    private static func changed(_ index: Int) -> [UInt8] {
        var record = record
        record[index] ^= 1
        return FakeRedis.bulk(record)
    }

    /// Replies to a lookup that are invalid.
    static let lies: [(name: String, answer: FakeRedis.Answer)] = [
        ("a number", .text(":1\r\n")), ("a status", .text("+OK\r\n")), ("an empty array", .text("*0\r\n")),
        ("an array", .text("*2\r\n$1\r\na\r\n$1\r\nb\r\n")),
        ("other text", .text("$5\r\nhello\r\n")), ("another type", .text("-WRONGTYPE no\r\n")),
        ("an error", .text("-ERR no\r\n")), ("loading", .text("-LOADING wait\r\n")),
        ("HTTP", .text("HTTP/1.1 400 Bad Request\r\n\r\n")), ("a negative length", .text("$-5\r\n")),
        ("no length", .text("$x\r\n")), ("many elements", .text("*2147483647\r\n$1\r\na\r\n")),
        ("too many elements", .text("*99999999999999999999\r\n")),
        ("deep arrays", .text(String(repeating: "*1\r\n", count: 20))),
        ("a short entry", .bytes(FakeRedis.bulk(Array(record.dropLast())))),
        ("the head of an entry", .bytes(FakeRedis.bulk(Array(record.prefix(100))))),
        ("a longer entry", .bytes(FakeRedis.bulk(record + [0]))),
        ("an entry of another key", .bytes(FakeRedis.bulk(entry(7).record(for: key(2))))),
        ("a changed digest", .bytes(changed(0))), ("a changed key", .bytes(changed(40))),
        ("a changed length", .bytes(changed(152))), ("a changed body", .bytes(changed(record.count - 1))),
        ("the end", .close), ("half an entry", .bytes(Array(FakeRedis.bulk(record).prefix(60)))),
        ("a giant entry", .endless(Array("$1000000000000\r\n".utf8), 0)),
        ("an endless line", .endless(Array("+".utf8), 0x61)),
        ("endless arrays", .endless(Array("*90000\r\n".utf8), 0x0A)),
    ]

    @Test(arguments: lies.indices) func aLieIsAMiss(index: Int) async {
        let lie = Self.lies[index]
        server["ferry:2:" + key(2).name] = entry(8).record(for: key(2))
        let isHalf = lie.name == "half an entry"
        server.script { words in
            guard words[0] == "GETRANGE", words[1].hasSuffix(key(1).name) else { return .honest }
            return lie.answer
        }
        let storage = RedisCacheStorage(
            patient(server.path) { configuration in
                configuration.maxEntryBytes = 100_000
                if isHalf {
                    (configuration.timeout, configuration.writeTimeout) = (.milliseconds(50), .milliseconds(50))
                }
            })
        #expect(await storage.byte(key(1)) == nil, "\(lie.name)")
        let counts = storage.counts
        #expect(counts.corrupt == 1 || !counts.faults.isEmpty, "\(lie.name): \(counts)")
        if isHalf { return server.stop() }
        // The rest of a reply is not taken for that of the next lookup.
        #expect(await storage.byte(key(2)) == 8, "\(lie.name)")
        await storage.close()
        server.stop()
    }

    @Test func aDamagedEntryIsRemoved() async {
        server["ferry:2:" + key(1).name] = [1, 2, 3]
        let storage = RedisCacheStorage(patient(server.path))
        #expect(await storage.absence(key(1)) == .corrupt)
        while await storage.absence(key(1)) == .corrupt {}
        #expect(await storage.absence(key(1)) == .notFound)
        #expect(server.names.isEmpty)
        #expect(storage.counts.corrupt >= 1)
        await storage.close()
        server.stop()
    }

    @Test func anUnexpectedReplyEndsTheConnection() async {
        server.script { $0[0] == "GETRANGE" ? .text("$-1\r\n$5\r\nhello\r\n") : .honest }
        let storage = RedisCacheStorage(patient(server.path))
        for number in 0..<3 { #expect(await storage.byte(key(number)) == nil) }
        await storage.close()
        server.stop()
    }

    @Test func aSlowRedisIsNotUsed() async {
        server.script { _ in .silence }
        let storage = RedisCacheStorage(patient(server.path) { $0.timeout = .milliseconds(50) })
        let start = ContinuousClock.now
        for _ in 0..<3 { #expect(await storage.absence(key(1)) == .unavailable) }
        #expect(ContinuousClock.now - start >= .milliseconds(150))
        #expect(storage.counts.faults == [.timeout: 3] && storage.counts.isDisabled)
        // By now every lookup ends at once, without a command to Redis.
        for _ in 0..<1000 { #expect(await storage.absence(key(1)) == .unavailable) }
        #expect(await !storage.write(entry(7), under: key(1)))
        #expect(server.count("GETRANGE") <= 3 && server.count("PSETEX") == 0)
        #expect(storage.counts.faults == [.timeout: 3] && storage.counts.failed == 1)
        await storage.close()
        server.stop()
    }

    @Test func aLateReplyIsNotTakenForThatOfTheNextLookup() async {
        let storage = RedisCacheStorage(
            patient(server.path) { ($0.timeout, $0.maxFailures) = (.milliseconds(100), 1000) })
        for number in 0..<3 { server["ferry:2:" + key(number).name] = entry(UInt8(number)).record(for: key(number)) }
        // The first gets its reply together with the second.
        server.script { words in
            guard words[0] == "GETRANGE" else { return .honest }
            if words[1].hasSuffix(key(0).name) { return .silence }
            let both = (0..<2).flatMap { FakeRedis.bulk(entry(UInt8($0)).record(for: key($0))) }
            return words[1].hasSuffix(key(1).name) ? .bytes(both) : .honest
        }
        #expect(await storage.absence(key(0)) == .unavailable)
        // A busy machine may be late with the second, too.
        let second = await storage.byte(key(1))
        #expect(second == 1 || second == nil)
        let third = await storage.byte(key(2))
        #expect(third == 2 || third == nil)
        await storage.close()
        server.stop()
    }

    @Test func aConnectionWithoutRepliesIsReplaced() async {
        server.script { $0[0] == "GETRANGE" ? .silence : .honest }
        let storage = RedisCacheStorage(
            patient(server.path) {
                ($0.timeout, $0.writeTimeout, $0.maxFailures) = (.milliseconds(20), .milliseconds(200), 1000)
                ($0.pause, $0.longestPause) = (.milliseconds(1), .milliseconds(20))
            })
        var looks = 0
        while server.commands.isEmpty || looks < 100 {
            #expect(await storage.absence(key(1)) == .unavailable)
            looks += 1
        }
        server.script { _ in .honest }
        while await storage.absence(key(1)) != .notFound {}
        await storage.close()
        server.stop()
    }

    @Test func oneMissingReplyDoesNotDelayTheOthers() async {
        let first = Mutex(true)
        server.script { words in
            guard words[0] == "GETRANGE" else { return .honest }
            let isFirst = first.withLock { first in
                defer { first = false }
                return first
            }
            return isFirst ? .silence : .honest
        }
        let storage = RedisCacheStorage(
            patient(server.path) {
                ($0.timeout, $0.writeTimeout, $0.maxFailures) = (.milliseconds(50), .milliseconds(400), 1000)
                ($0.pause, $0.longestPause) = (.milliseconds(1), .milliseconds(20))
            })
        var looks = 0
        repeat { looks += 1 } while await storage.absence(key(1)) != .notFound
        #expect(looks > 1)
        await storage.close()
        server.stop()
    }

    @Test func whileRedisIsDownLookupsMissAndLaterTheyHit() async {
        let path = server.path
        server.stop()
        let storage = RedisCacheStorage(
            patient(path) { ($0.pause, $0.longestPause) = (.milliseconds(1), .milliseconds(20)) })
        for _ in 0..<10 { #expect(await storage.absence(key(1)) == .unavailable) }
        #expect(await !storage.write(entry(7), under: key(1)))
        #expect((storage.counts.faults[.io] ?? 0) >= 1)
        let next = FakeRedis(at: path)
        while await !storage.write(entry(7), under: key(1)) {}
        #expect(await storage.byte(key(1)) == 7)
        #expect(!storage.counts.isDisabled)
        await storage.close()
        next.stop()
    }

    @Test func aRemovalThatDidNotReachRedisIsRepeated() async {
        let storage = RedisCacheStorage(
            patient(server.path) { ($0.pause, $0.longestPause) = (.milliseconds(1), .milliseconds(20)) })
        for number in 0..<2 { #expect(await storage.write(entry(7), under: key(number))) }
        let kept = server["ferry:2:" + key(0).name]
        server.stop()
        while await storage.remove(key(0)) {}
        #expect(await storage.absence(key(0)) == .notFound)
        let next = FakeRedis(at: server.path)
        for number in 0..<2 { next["ferry:2:" + key(number).name] = kept }
        while await storage.absence(key(2)) != .notFound { #expect(await storage.byte(key(0)) == nil) }
        #expect(await storage.absence(key(0)) == .notFound)
        #expect(next.names == ["ferry:2:" + key(1).name])
        // Entries written from then on are found.
        #expect(await storage.write(entry(9), under: key(0)))
        #expect(await storage.byte(key(0)) == 9)
        await storage.close()
        next.stop()
    }

    /// Redis hangs for a while, and takes the same connections up again.
    @Test func aRemovalThatWasNotSentIsRepeatedOnTheSameConnection() async {
        let (storage, other) = (
            RedisCacheStorage(
                patient(server.path) { ($0.timeout, $0.maxFailures, $0.pause) = (.milliseconds(500), 1, .seconds(3)) }),
            RedisCacheStorage(patient(server.path))
        )
        #expect(await storage.write(entry(7), under: key(0)))
        #expect(await other.byte(key(0)) == 7)
        // Of its own subscription.
        #expect(await other.hears())
        let gate = DispatchSemaphore(value: 0)
        server.script { words in
            if words[0] == "GETRANGE", words[1].hasSuffix(key(9).name) { gate.wait() }
            return .honest
        }
        #expect(await storage.absence(key(9)) == .unavailable)
        #expect(await !storage.remove(key(0)))
        #expect(server.count("UNLINK") == 0)
        gate.signal()
        while await storage.absence(key(2)) != .notFound {}
        #expect(await other.hears())
        #expect(server.names.isEmpty)
        #expect(server.count("SUBSCRIBE") == 2)
        // It is paid.
        #expect(await storage.write(entry(9), under: key(0)))
        #expect(await storage.byte(key(0)) == 9)
        await storage.close()
        await other.close()
        server.stop()
    }

    @Test func aRemovalIsRepeatedForTheLastTimeAtTheEnd() async {
        let storage = RedisCacheStorage(patient(server.path))
        #expect(await storage.write(entry(7), under: key(0)))
        server.script { $0[0] == "UNLINK" ? .text("-BUSY try later\r\n") : .honest }
        #expect(await !storage.remove(key(0)))
        // It is repeated at once, and then not before a second has passed.
        while server.count("UNLINK") < 2 { await Task.yield() }
        server.script { _ in .honest }
        await storage.close()
        #expect(server.names.isEmpty)
        server.stop()
    }

    // MARK: Idle processes

    /// An agent that finds everything in its memory sends no commands.
    @Test func anIdleProcessHearsOfRemovalsAgainAfterARestart() async {
        let storage = RedisCacheStorage(patient(server.path))
        _ = await storage.read(key(1))
        #expect(await storage.hears())
        server.stop()
        let next = FakeRedis(at: server.path)
        // It may have missed some before it subscribed anew.
        #expect(await storage.hears())
        let other = RedisCacheStorage(patient(server.path))
        #expect(await other.remove(key(1)))
        #expect(await storage.hears())
        #expect(next.count("GETRANGE") == 0)
        await storage.close()
        await other.close()
        next.stop()
    }

    @Test func anIdleProcessRepeatsARemovalWhoseConnectionWasLost() async {
        server["ferry:2:" + key(0).name] = Self.record
        let storage = RedisCacheStorage(patient(server.path) { $0.maxFailures = 1000 })
        server.script { $0[0] == "UNLINK" ? .close : .honest }
        #expect(await !storage.remove(key(0)))
        server.script { _ in .honest }
        while !server.names.isEmpty { await Task.yield() }
        await storage.close()
        server.stop()
    }

    @Test func anIdleProcessRepeatsARemovalThatWasRefusedDuringAPause() async {
        let storage = RedisCacheStorage(
            patient(server.path) { ($0.maxFailures, $0.pause, $0.longestPause) = (1, .seconds(1), .seconds(1)) })
        server.stop()
        #expect(await storage.absence(key(1)) == .unavailable)
        #expect(await !storage.remove(key(0)))
        let next = FakeRedis(at: server.path)
        next["ferry:2:" + key(0).name] = Self.record
        while !next.names.isEmpty { await Task.yield() }
        #expect(next.count("GETRANGE") == 0)
        await storage.close()
        next.stop()
    }

    @Test func aRepeatedRemovalWithoutAReplyIsRepeatedAgain() async {
        server["ferry:2:" + key(0).name] = Self.record
        let storage = RedisCacheStorage(
            patient(server.path) { ($0.writeTimeout, $0.maxFailures) = (.milliseconds(500), 1000) })
        let removals = Mutex(0)
        server.script { words in
            let number = removals.withLock { removals in
                if words[0] == "UNLINK" { removals += 1 }
                return removals
            }
            switch words[0] {
            case "UNLINK" where number == 1: return .close
            case "UNLINK" where number == 2, "PUBLISH" where number == 2: return .silence
            default: return .honest
            }
        }
        #expect(await !storage.remove(key(0)))
        while !server.names.isEmpty { await Task.yield() }
        let count = removals.withLock { $0 }
        #expect(count >= 3)
        await storage.close()
        server.stop()
    }

    @Test func aRemovalWhoseConnectionWasLostIsRepeatedAtTheEnd() async {
        server["ferry:2:" + key(0).name] = Self.record
        let storage = RedisCacheStorage(patient(server.path))
        server.script { $0[0] == "UNLINK" ? .close : .honest }
        #expect(await !storage.remove(key(0)))
        server.script { _ in .honest }
        await storage.close()
        #expect(server.names.isEmpty)
        server.stop()
    }

    @Test func theEndDoesNotWaitForARedisThatIsDown() async {
        let storage = RedisCacheStorage(patient(server.path) { $0.writeTimeout = .seconds(1000) })
        server.script { $0[0] == "UNLINK" ? .close : .honest }
        #expect(await !storage.remove(key(0)))
        server.stop()
        await storage.close()
        #expect(await storage.absence(key(0)) == .notFound)
    }

    @Test func aRemovalIsAnnouncedLaterIfTheMessageFailed() async {
        let (storage, other) = (RedisCacheStorage(patient(server.path)), RedisCacheStorage(patient(server.path)))
        #expect(await storage.write(entry(7), under: key(0)))
        #expect(await other.byte(key(0)) == 7)
        #expect(await other.hears())
        server.script { $0[0] == "PUBLISH" ? .close : .honest }
        #expect(await !storage.remove(key(0)))
        server.script { _ in .honest }
        #expect(await storage.absence(key(1)) == .notFound)
        #expect(await other.hears())
        await storage.close()
        await other.close()
        server.stop()
    }
}
