internal import Ferry
internal import FerryCache
internal import FerryJSON
internal import FerryMeasurement
internal import FerryTesting
internal import Foundation
internal import Synchronization

/// Measures hits and writes of 2 KB of JSON.
enum CacheCase {
    /// The requested document, with a schema.
    struct Document: Request {
        typealias Value = Response
        static let schema: JSONSchema = [["id": .integer, "title": .string, "tags": [.string]]]
        let number: Int
        var path: String { "/questions/\(number)" }
        var jsonSchema: JSONSchema? { Self.schema }
        var cachePolicy: CachePolicy { .timeToLive(.seconds(3600), version: 2) }
    }

    /// About 2 KB.
    static let body = "[" + (0..<20).map(question).joined(separator: ",") + "]"

    private static func question(_ number: Int) -> String {
        #"{"id":\#(number),"title":"How is request number \#(number) kept","tags":["swift","linux","cache"],"x":null}"#
    }

    static func makeAgent(_ folder: String, memory: Bool, server: String = "http://127.0.0.1") -> NetworkAgent {
        var configuration = NetworkConfiguration(baseURL: server)
        var cache = CacheConfiguration(directory: folder)
        if !memory { cache.memoryBytes = 0 }
        cache.maxBytes = 16 << 30
        cache.maxQueuedBytes = 64 << 20
        configuration.cache = cache
        guard server == "http://127.0.0.1" else { return NetworkAgent(configuration: configuration) }
        let headers: Headers = ["Content-Type": "application/json; charset=utf-8", "ETag": "\"7d1f0c52\""]
        return NetworkAgent(
            configuration: configuration, stub: StubTransport(always: .response(headers: headers, body: body)))
    }

    static func run(_ server: String) async throws -> Measurement {
        let folder = try makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var measurement = Measurement()
        measurement.extra["memory_hits_per_core"] = try await memoryHits(folder)
        measurement.extra["disk_hits_per_core"] = try await diskHits(folder, entries: 10_000).perCore
        let writes = try await writes(folder + "/writes", count: 200_000)
        measurement.extra["writes_per_second"] = writes.rate
        measurement.extra["cpu_us_per_write"] = writes.cpu
        measurement.extra["http_memory_hits_per_core"] = try await HTTPCacheCase.memoryHits(folder + "/http")
        let validated = try await HTTPCacheCase.validations(folder + "/validated", server)
        for (name, figure) in validated { measurement.extra[name] = figure }
        for (name, figure) in try await RedisCase.measure() ?? [:] { measurement.extra[name] = figure }
        let slowed = try await slowed(folder + "/slowed", server)
        for (name, figure) in slowed { measurement.extra[name] = figure }
        return measurement
    }

    static func makeFolder() throws -> String {
        let folder = NSTemporaryDirectory() + "/ferry-cache-\(ProcessInfo.processInfo.processIdentifier)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        return folder
    }

    // MARK: Hits

    /// Hits per second and core, by one task.
    private static func memoryHits(_ folder: String) async throws -> Double {
        let agent = makeAgent(folder + "/memory", memory: true)
        for number in 0..<1000 { _ = try await agent.send(Document(number: number)) }
        let count = 300_000
        let before = ProcessUsage.now
        for number in 0..<count {
            let reply = try await agent.send(Document(number: number % 1000))
            guard reply.isFromCache, reply.bodyLength == body.utf8.count else { throw BenchmarkError("no hit") }
        }
        let used = ProcessUsage.now - before
        await agent.shutdown()
        return Double(count) * 1_000_000 / (used.user + used.system)
    }

    /// Hits of 32 tasks, each at another position of the disk.
    static func diskHits(
        _ folder: String, entries: Int, memory: Bool = false
    ) async throws -> (perCore: Double, microseconds: Double) {
        let agent = makeAgent(folder + "/disk-\(entries)", memory: memory)
        if try await agent.send(Document(number: entries - 1)).cacheMiss != nil {
            for number in 0..<entries {
                _ = try await agent.send(Document(number: number), cache: .reload)
                if number % 4096 == 0 { await drained(agent) }
            }
            await drained(agent)
        }
        if !memory { try readAll(folder + "/disk-\(entries)") }
        let count = 100_000
        let before = ProcessUsage.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<32 {
                group.addTask {
                    for step in 0..<(count / 32) {
                        let number = (task &* 7_919 &+ step &* 104_729) % entries
                        let reply = try await agent.send(Document(number: number), cache: .cacheOnly)
                        guard reply.bodyLength == body.utf8.count else { throw BenchmarkError("another body") }
                    }
                }
            }
            try await group.waitForAll()
        }
        let used = ProcessUsage.now - before
        await agent.shutdown()
        let each = (used.user + used.system) / Double(count / 32 * 32)
        return (1_000_000 / each, each)
    }

    /// Reads the files of a directory once, so that they are in the page cache: the store is measured, not the disk.
    /// While a million entries are written, the system may drop the first ones.
    private static func readAll(_ directory: String) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
            guard let file = FileHandle(forReadingAtPath: directory + "/" + name) else { continue }
            while try file.read(upToCount: 1 << 20)?.isEmpty == false {}
            try file.close()
        }
    }

    private static func drained(_ agent: NetworkAgent) async {
        while await agent.cache.statistics.queuedBytes > 0 { try? await Task.sleep(for: .milliseconds(1)) }
    }

    // MARK: Writes

    /// Writes straight into the queue of the store, as fast as it accepts them.
    private static func writes(_ folder: String, count: Int) async throws -> (rate: Double, cpu: Double) {
        var options = CacheStoreOptions(directory: folder)
        options.maxBytes = 16 << 30
        let store = SQLiteCacheStore(options)
        let bytes = Array(body.utf8)
        let before = ProcessUsage.now
        let start = monotonicNanoseconds()
        for number in 0..<count {
            while store.counts.queuedBytes > options.maxQueuedBytes - (1 << 20) {
                try await Task.sleep(for: .milliseconds(1))
            }
            let entry = bytes.withUnsafeBytes { body in
                CacheEntry(
                    CacheEntry.Marks(stored: currentCacheTime()), attributes: [],
                    head: UnsafeRawBufferPointer(rebasing: body[..<200]), body: body)
            }
            store.write(entry, under: CacheKey(Array("key \(number)".utf8)), nil)
        }
        await withCheckedContinuation { continuation in store.close { continuation.resume() } }
        let seconds = Double(monotonicNanoseconds() - start) / 1e9
        let used = ProcessUsage.now - before
        guard store.counts.written == UInt64(count) else { throw BenchmarkError("\(store.counts)") }
        return (Double(count) / seconds, (used.user + used.system) / Double(count))
    }

    /// Sequential requests, alone and while 30,000 entries per second go through the queue of the same agent; the cores
    /// are kept awake for both.
    private static func slowed(_ folder: String, _ server: String) async throws -> [String: Double] {
        let agent = makeAgent(folder, memory: true, server: server)
        let response = try await agent.send(Get(path: "/bytes/2048")).response
        let cores = AwakeCores()
        defer { cores.end() }
        var alone: [Double] = []
        var busy: [Double] = []
        var written = 0.0
        for _ in 0..<5 {
            alone.append(try await medianTime(agent))
            let writer = Task { await write(response, agent) }
            busy.append(try await medianTime(agent))
            writer.cancel()
            written = max(written, await writer.value)
        }
        await agent.shutdown()
        let ratios = zip(busy, alone).map { $0 / $1 }
        return [
            "request_us_alone": ResultTable.median(alone) ?? .nan,
            "request_us_while_writing": ResultTable.median(busy) ?? .nan,
            "slowed": ResultTable.median(ratios) ?? .nan, "writes_per_second_meanwhile": written,
        ]
    }

    private static func medianTime(_ agent: NetworkAgent) async throws -> Double {
        var times: [Double] = []
        for _ in 0..<10_000 {
            let start = monotonicNanoseconds()
            _ = try await agent.send(Get(path: "/bytes/2048"))
            times.append(Double(monotonicNanoseconds() - start) / 1000)
        }
        return ResultTable.median(times) ?? .nan
    }

    /// Writes 30 entries each millisecond. Returns the number handed over per second.
    private static func write(_ response: Response, _ agent: NetworkAgent) async -> Double {
        let start = ContinuousClock.now
        var count = 0
        while !Task.isCancelled {
            let due = Int((ContinuousClock.now - start) / .microseconds(1000) * 30)
            while count < due {
                agent.cache.saveSoon(response, for: Document(number: count))
                count += 1
            }
            try? await Task.sleep(for: .milliseconds(1))
        }
        return Double(count) / ((ContinuousClock.now - start) / .seconds(1))
    }
}

/// A million entries in one directory: 4 GB on disk while it runs.
enum CacheMillionCase {
    static func run() async throws -> Measurement {
        let folder = try CacheCase.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var measurement = Measurement()
        let few = try await CacheCase.diskHits(folder, entries: 10_000).microseconds
        let many = try await CacheCase.diskHits(folder, entries: 1_000_000).microseconds
        measurement.extra["hit_us_of_10000"] = few
        measurement.extra["hit_us_of_1000000"] = many
        measurement.extra["ratio"] = many / few
        let start = monotonicNanoseconds()
        let agent = CacheCase.makeAgent(folder + "/disk-1000000", memory: false)
        _ = try await agent.send(CacheCase.Document(number: 77), cache: .cacheOnly)
        measurement.extra["open_ms"] = Double(monotonicNanoseconds() - start) / 1e6
        await agent.shutdown()
        return measurement
    }
}
