import Dispatch
import FaultTable
import Ferry
import FerryCache
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Who is notified of what, and in which order.
@Suite(.faultTable) struct CacheOrderTests {
    private let bench = CacheBench()

    private final class Notes: RequestObserver {
        private let state = Mutex([String]())
        var taken: [String] {
            state.withLock { notes in
                let taken = notes
                notes = []
                return taken
            }
        }
        func note(_ text: String) { state.withLock { $0.append(text) } }

        func willStart(_ run: RunInfo) { note("willStart") }
        func willStop(_ run: RunInfo, _ outcome: RunOutcome) { note("willStop \(outcome)") }
        func didStop(_ run: RunInfo, _ outcome: RunOutcome) { note("didStop") }
        func metrics(_ run: RunInfo, _ metrics: RequestMetrics) { note("metrics \(metrics.cache?.rawValue ?? "none")") }
    }

    private struct Hooked: Request {
        typealias Value = String
        let notes: Notes
        var writing = CachePolicy.Writing.synchronous
        var path: String { "/x" }
        var cachePolicy: CachePolicy { .timeToLive(.seconds(60), write: writing) }
        var observers: [any RequestObserver] { [notes] }
        func shouldCache(_ response: Response) -> Bool {
            notes.note("shouldCache")
            return true
        }
        func completionPreprocessor(_ reply: Reply<String>) { notes.note("preprocessor") }
        func failurePreprocessor(_ error: RequestError) { notes.note("failurePreprocessor \(error.code)") }
        func willDeliver(_ result: Result<Reply<String>, RequestError>) {
            if case .success = result { notes.note("willDeliver") } else { notes.note("willDeliver failed") }
        }
    }

    private let miss = [
        "willStart", "shouldCache", "preprocessor", "metrics miss", "willStop finished 200", "willDeliver", "closure",
        "didStop",
    ]
    private let hit = [
        "willStart", "preprocessor", "metrics hit", "willStop finished 200 from the cache", "willDeliver", "closure",
        "didStop",
    ]

    @Test(arguments: [true, false], [CachePolicy.Writing.synchronous, .asynchronous])
    func aHitGoesTheWayOfAnyResult(memory: Bool, writing: CachePolicy.Writing) async throws {
        let agent = bench.agent(counting(), memory: memory)
        let notes = Notes()
        let request = Hooked(notes: notes, writing: writing)
        func start() async throws -> [String] {
            let queue = DispatchQueue(label: "test")
            let outcome = Outcome<String>()
            agent.start(request, on: queue) { result in
                dispatchPrecondition(condition: .onQueue(queue))
                notes.note("closure")
                outcome.take(result)
            }
            _ = try await outcome.result.get()
            await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
            return notes.taken
        }
        #expect(try await start() == miss)
        if writing == .asynchronous && !memory {
            await agent.cache.save(try await agent.send(Kept()).response, for: request)
        }
        _ = notes.taken
        #expect(try await start() == hit)
        _ = try await agent.send(request)
        #expect(notes.taken == hit.filter { $0 != "closure" })
        _ = try await agent.send(request, cache: .reload)
        #expect(notes.taken == miss.filter { $0 != "closure" })
        await agent.shutdown()
    }

    @Test func aMissOfCacheOnlyIsAFailureLikeAnyOther() async throws {
        let agent = bench.agent(counting())
        let notes = Notes()
        #expect(await fault { try await agent.send(Hooked(notes: notes), cache: .cacheOnly) } == .notCached(.notFound))
        #expect(notes.taken.prefix(2) == ["willStart", "failurePreprocessor notCached(notFound)"])
        await agent.shutdown()
    }

    /// Reads the directory without the agent.
    private func isOnDisk() async -> Bool {
        let store = SQLiteCacheStore(CacheStoreOptions(directory: bench.path))
        let size = await withCheckedContinuation { continuation in
            store.measure { continuation.resume(returning: $0) }
        }
        await withCheckedContinuation { continuation in store.close { continuation.resume() } }
        return size.entries == 1
    }

    private func isOnDiskNow() -> Bool {
        let found = Mutex(false)
        let done = DispatchSemaphore(value: 0)
        Task {
            let isThere = await isOnDisk()
            found.withLock { $0 = isThere }
            done.signal()
        }
        done.wait()
        return found.withLock { $0 }
    }

    @Test func withSynchronousWritingItIsOnTheDiskBeforeAnyCallback() async throws {
        struct Looking: Request {
            typealias Value = String
            let look: @Sendable () -> Void
            var path: String { "/x" }
            var cachePolicy: CachePolicy { .timeToLive(.seconds(60), write: .synchronous) }
            func completionPreprocessor(_ reply: Reply<String>) { look() }
            func willDeliver(_ result: Result<Reply<String>, RequestError>) { look() }
        }
        for byClosure in [true, false] {
            let tests = CacheOrderTests()
            let looks = Mutex([Bool]())
            let request = Looking {
                let isThere = tests.isOnDiskNow()
                looks.withLock { $0.append(isThere) }
            }
            let agent = tests.bench.agent(counting())
            if byClosure {
                let outcome = Outcome<String>()
                agent.start(request, completion: outcome.take)
                _ = try await outcome.result.get()
            } else {
                _ = try await agent.send(request)
            }
            #expect(looks.withLock { $0 } == [true, true])
            await agent.shutdown()
        }
    }

    @Test func shutdownWritesWhatWaits() async throws {
        let agent = bench.agent(counting())
        for number in 0..<50 {
            _ = try await agent.send(Kept(path: "/\(number)", cachePolicy: .timeToLive(.seconds(60))))
        }
        await agent.shutdown()
        let stub = counting()
        let next = bench.agent(stub)
        for number in 0..<50 {
            #expect(try await next.send(Kept(path: "/\(number)")).isFromCache)
        }
        #expect(stub.requests.isEmpty)
        await next.shutdown()
    }

    @Test("R71: a run that is cancelled in the cache has one result") func aRunThatIsCancelledInTheCacheHasOneResult()
        async throws
    {
        let agent = bench.agent(StubTransport { _ in .hold }, memory: false)
        for _ in 0..<50 {
            let outcome = Outcome<String>()
            let task = agent.start(Kept(), completion: outcome.take)
            task.cancel()
            #expect(await outcome.code == .cancelled)
            #expect(outcome.count == 1)
        }
        await agent.shutdown(grace: .zero)
    }

    /// A response to an earlier request that arrives later is older (RFC 9111, 4).
    @Test(arguments: [CachePolicy.Writing.synchronous, .asynchronous])
    func aLateResponseDoesNotReplaceThatOfALaterRequest(writing: CachePolicy.Writing) async throws {
        let stub = StubTransport { $0.number == 1 ? .hold : .response(body: "answer \($0.number)") }
        let agent = bench.agent(stub)
        let request = Kept(cachePolicy: .timeToLive(.seconds(60), write: writing))
        let first = Task { try await agent.send(request).value }
        await stub.waitForHeld(1)
        #expect(try await agent.send(request, cache: .reload).value == "answer 2")
        stub.releaseAll(with: .response(body: "answer 1"))
        #expect(try await first.value == "answer 1")
        #expect(try await texts(agent, request) == ["cached answer 2"])
        await agent.shutdown()
    }

    /// The response to a retry is later than that of a run that began after the first attempt.
    @Test func theResponseToARetryIsTheLater() async throws {
        let stub = StubTransport { $0.number == 2 ? .response(body: "answer 2") : .hold }
        let agent = bench.agent(stub)
        var request = Kept()
        request.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero, maxDelay: .zero, jitter: .none)
        let first = Task { [request] in try await agent.send(request).value }
        await stub.waitForHeld(1)
        #expect(try await agent.send(request, cache: .reload).value == "answer 2")
        stub.releaseAll(with: .response(status: 503))
        await stub.waitForHeld(1)
        stub.releaseAll(with: .response(body: "answer 3"))
        #expect(try await first.value == "answer 3")
        #expect(try await texts(agent, request) == ["cached answer 3"])
        await agent.shutdown()
    }

    /// Nor does a late one behind a redirect, which is no retry.
    @Test func aLateResponseBehindARedirectDoesNotReplaceIt() async throws {
        let stub = StubTransport { request in
            if request.url.hasSuffix("/y") { return .hold }
            return request.number == 1 ? .redirect(to: "/y") : .response(body: "answer \(request.number)")
        }
        let agent = bench.agent(stub)
        let request = Kept()
        let first = Task { try await agent.send(request).value }
        await stub.waitForHeld(1)
        #expect(try await agent.send(request, cache: .reload).value == "answer 3")
        stub.releaseAll(with: .response(body: "late"))
        #expect(try await first.value == "late")
        #expect(try await texts(agent, request) == ["cached answer 3"])
        await agent.shutdown()
    }
}
