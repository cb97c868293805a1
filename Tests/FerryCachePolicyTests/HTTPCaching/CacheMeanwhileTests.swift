import FerryCache
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs with `CachePolicy.http`: what others do while a run looks into the cache, or while the application decides.
@Suite(.timeLimit(.minutes(1))) struct CacheMeanwhileTests {
    private let bench = CacheBench()
    private let request = Kept(cachePolicy: .http(write: .synchronous), statusValidation: .any)

    /// RFC 9111, 4.4: the application takes its time to decide whether a response is stored.
    @Test func aResponseThatWasInvalidatedMeanwhileIsNotStored() async throws {
        let agent = bench.agent(counting(["Cache-Control": "max-age=60"]))
        let (core, plain) = (agent.core, Asked(path: "/x"))
        let cache = try #require(core.cache)
        let terms = try #require(core.cachePolicy(of: plain).http)
        let target = try core.builder.httpTarget(plain, isShared: false, at: core.builder.servers)
        let key = HTTPCacheKey(cache.httpPrefix, isPublicOnly: false, terms, target.secrets).key(target.url)
        // What a POST of another run does.
        let asked = Asked(path: "/x") { cache.invalidate(key) }
        #expect(try await agent.send(asked).text == "answer 1")
        #expect(try await texts(agent, request, request) == ["answer 2", "cached answer 2"])
        #expect(await agent.cache.statistics.refusals[.invalidated] == 1)
        await agent.shutdown()
    }

    /// Calls `decides` when it is asked whether its response is stored.
    private struct Asked: Request {
        var path: String
        var decides: @Sendable () -> Void = {}
        var cachePolicy: CachePolicy { .http(write: .synchronous) }
        func shouldCache(_ response: Response) -> Bool {
            decides()
            return true
        }
    }

    /// The reload is sent and stored while the other run still looks: it is the earlier request.
    @Test func aRequestThatIsSentAfterALongLookIsTheLater() async throws {
        let (stub, store) = (counting(["Cache-Control": "max-age=60"]), HeldReads())
        let agent = bench.agent(stub, memory: false) { $0.cache?.storage = { store } }
        let first = Task { [request] in try await agent.send(request, cache: .revalidate).value }
        #expect(await eventually { store.isHeld })
        _ = try await agent.send(request, cache: .reload)
        store.release()
        #expect(try await first.value == "answer 2")
        #expect(try await texts(agent, request) == ["cached answer 2"])
        await agent.shutdown()
    }
}

/// A store whose first look-up finds what is there, and says so only when it is released.
private final class HeldReads: SampleStorage, @unchecked Sendable {
    private enum Look { case expected, held(@Sendable () -> Void), over }

    private let look = Mutex(Look.expected)

    var isHeld: Bool { look.withLock { if case .held = $0 { true } else { false } } }

    func release() {
        let held: Look = look.withLock { look in
            defer { look = .over }
            return look
        }
        if case .held(let answer) = held { answer() }
    }

    override func read(_ key: CacheKey, _ answer: @escaping @Sendable (CacheFinding) -> Void) {
        memory.read(key) { [self] finding in
            let isHeld = look.withLock { look in
                guard case .expected = look else { return false }
                look = .held { answer(finding) }
                return true
            }
            if !isHeld { answer(finding) }
        }
    }
}
