import Ferry
import FerryCache
import FerryTesting
import FoundationEssentials
import Synchronization

/// A directory for a cache, which goes with this object, and a clock that goes when it is told to.
final class CacheBench: Sendable {
    let path = FileManager.default.temporaryDirectory.appending(path: "ferry-cached-\(UUID().uuidString)").path
    private let time = Atomic<Int64>(currentCacheTime())

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func advance(by duration: Duration) {
        time.add(duration.components.seconds * 1_000_000, ordering: .relaxed)
    }

    /// Seconds since 1970.
    var now: Int64 { time.load(ordering: .relaxed) / 1_000_000 }

    /// An agent that keeps here; without memory every hit comes from the disk.
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

    /// Everything in the directory, as text.
    var content: String {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return files.compactMap { try? Data(contentsOf: URL(filePath: path + "/" + $0)) }
            .map { String(decoding: $0, as: UTF8.self) }.joined()
    }
}

/// Answers with the number of the request, so that each answer shows which it is.
func counting(_ headers: Headers = Headers(), status: Int = 200) -> StubTransport {
    StubTransport { .response(status: status, headers: headers, body: "answer \($0.number)") }
}

/// A request that is kept, with every member that matters to be set.
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

/// The text of the answer and whether the cache gave it.
func texts(_ agent: NetworkAgent, _ requests: Kept...) async throws -> [String] {
    var texts: [String] = []
    for request in requests {
        let reply = try await agent.send(request)
        texts.append((reply.isFromCache ? "cached " : "") + reply.value)
    }
    return texts
}

/// The code of what is thrown; `nil` when nothing is.
func fault<T>(_ body: () async throws -> T) async -> RequestError.Code? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? RequestError)?.code
    }
}
