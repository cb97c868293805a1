import FerryCache
import FerryRedis
import FerrySynchronization

func key(_ number: Int) -> CacheKey { CacheKey(Array("key \(number) with a canary".utf8)) }

func entry(_ byte: UInt8, count: Int = 100, useful time: Duration? = nil) -> CacheEntry {
    var entry = Array(repeating: byte, count: count).withUnsafeBytes { body in
        CacheEntry(
            CacheEntry.Marks(stored: 1), attributes: [1], head: UnsafeRawBufferPointer(start: nil, count: 0), body: body
        )
    }
    entry.usefulTime = time
    return entry
}

/// With times that a busy machine keeps, and that no test waits for.
func patient(_ path: String, _ change: (inout RedisConfiguration) -> Void = { _ in }) -> RedisConfiguration {
    var configuration = RedisConfiguration(unixSocket: path)
    configuration.connectTimeout = .seconds(20)
    configuration.timeout = .seconds(20)
    configuration.writeTimeout = .seconds(20)
    configuration.pause = .seconds(1000)
    configuration.longestPause = .seconds(1000)
    change(&configuration)
    return configuration
}

extension CacheStorage {
    func read(_ key: CacheKey) async -> CacheFinding {
        await withCheckedContinuation { continuation in read(key) { continuation.resume(returning: $0) } }
    }

    @discardableResult
    func write(_ entry: CacheEntry, under key: CacheKey) async -> Bool {
        await withCheckedContinuation { continuation in write(entry, under: key) { continuation.resume(returning: $0) }
        }
    }

    @discardableResult
    func remove(_ key: CacheKey) async -> Bool {
        await withCheckedContinuation { continuation in remove(key) { continuation.resume(returning: $0) } }
    }

    func removeAll() async -> Bool {
        await withCheckedContinuation { continuation in removeAll { continuation.resume(returning: $0) } }
    }

    func measure() async -> CacheSize {
        await withCheckedContinuation { continuation in measure { continuation.resume(returning: $0) } }
    }

    func close() async { await withCheckedContinuation { continuation in close { continuation.resume() } } }

    /// The byte that fills an entry.
    func byte(_ key: CacheKey) async -> UInt8? {
        guard case .found(let entry) = await read(key) else { return nil }
        return entry.withBody { body in body.allSatisfy { $0 == body.first } ? body.first : nil }
    }

    func absence(_ key: CacheKey) async -> CacheAbsence? {
        guard case .missing(let absence) = await read(key) else { return nil }
        return absence
    }

    /// Whether it receives removals, which arrive with a delay.
    func hears() async -> Bool {
        for _ in 0..<20_000 {
            var hears = false
            hearRemovals { _ in hears = true }
            if hears { return true }
            await Task.yield()
            try? await Task.sleep(for: .milliseconds(1))
        }
        return false
    }
}
