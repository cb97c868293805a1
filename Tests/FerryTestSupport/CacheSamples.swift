import Ferry
import FerryCache
import FerrySynchronization
import FerryTesting
import FoundationEssentials

/// A directory for a cache, removed with this object, and a clock that the test advances.
final class CacheBench: Sendable {
    let path = FileManager.default.temporaryDirectory.appending(path: "ferry-cached-\(UUID().uuidString)").path
    private let time = Atomic<Int64>(currentCacheTime())

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func advance(by duration: Duration) {
        let (seconds, attoseconds) = duration.components
        time.add(seconds * 1_000_000 + attoseconds / 1_000_000_000_000, ordering: .relaxed)
    }

    /// Advances to the start of a second.
    func startSecond() { time.store((now + 1) * 1_000_000, ordering: .relaxed) }

    /// Seconds since 1970.
    var now: Int64 { time.load(ordering: .relaxed) / 1_000_000 }

    /// An agent that stores here; without memory every hit comes from disk.
    func agent(
        _ stub: StubTransport, memory: Bool = true, _ change: (inout NetworkConfiguration) -> Void = { _ in }
    ) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        var cache = CacheConfiguration(directory: path)
        if !memory { cache.memoryBytes = 0 }
        cache.clock = { self.time.load(ordering: .relaxed) }
        configuration.cache = cache
        change(&configuration)
        return NetworkAgent(configuration: configuration, stub: stub)
    }

    /// The contents of all files in the directory, as text.
    var content: String {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return files.compactMap { try? Data(contentsOf: URL(filePath: path + "/" + $0)) }
            .map { String(decoding: $0, as: UTF8.self) }.joined()
    }
}

/// Responds with the number of the request, so that each response can be identified.
func counting(_ headers: Headers = Headers(), status: Int = 200) -> StubTransport {
    StubTransport { .response(status: status, headers: headers, body: "answer \($0.number)") }
}

/// A request that is cached, with settable members.
struct Kept: Request {
    typealias Value = String
    var path = "/x"
    var baseURL: String?
    var cdnURL: String?
    var usesCDN = false
    var method = HTTPMethod.get
    var headers = Headers()
    var arguments = Arguments()
    var argumentEncoding = ArgumentEncoding.automatic
    var body: RequestBody?
    var authorization: Authorization?
    var acceptedEncodings: [ContentEncoding]?
    var cachePolicy = CachePolicy.timeToLive(.seconds(60), write: .synchronous)
    var cacheMode = CacheMode.cacheElseNetwork
    var cacheHeaders: [String] = []
    var counts: Arguments?
    var coalesces = false
    var statusValidation: StatusValidation?
    var acceptedContentTypes: [String]?
    var retryPolicy: RetryPolicy?
    var redirectPolicy: RedirectPolicy?
    var timeouts: Timeouts?
    var deadline: Duration?
    var isWanted = true
    var prebuiltRequest: OutgoingRequest?

    var cacheArguments: Arguments { counts ?? arguments }
    func shouldCache(_ response: Response) -> Bool { isWanted }
}

/// The text of the response, and whether it came from the cache.
func texts(_ agent: NetworkAgent, _ requests: Kept...) async throws -> [String] {
    var texts: [String] = []
    for request in requests {
        let reply = try await agent.send(request)
        texts.append((reply.isFromCache ? "cached " : "") + reply.value)
    }
    return texts
}

/// The code of the error; `nil` if there is none.
func fault<T>(_ body: () async throws -> T) async -> RequestError.Code? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? RequestError)?.code
    }
}

/// A store in memory. Subclasses replace a part of it.
///
/// Sendable because it has only constants; what subclasses add is constant or protected by a lock.
class SampleStorage: CacheStorage, @unchecked Sendable {
    let memory = MemoryCacheStorage(maxBytes: 1 << 20)

    var isShared: Bool { true }
    var counts: CacheCounts { memory.counts }

    func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void) { memory.read(key, answer) }
    func write(_ entry: CacheEntry, under key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) {
        memory.write(entry, under: key, done)
    }
    func remove(_ key: CacheKey, _ done: (@Sendable (Bool) -> Void)?) { memory.remove(key, done) }
    func removeAll(_ done: (@Sendable (Bool) -> Void)?) { memory.removeAll(done) }
    func measure(_ answer: @escaping @Sendable (CacheSize) -> Void) { memory.measure(answer) }
    func close(_ done: @escaping @Sendable () -> Void) { memory.close(done) }
}
