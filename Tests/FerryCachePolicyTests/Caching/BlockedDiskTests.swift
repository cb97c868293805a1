import Dispatch
import Ferry
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Glibc
import Testing

@testable import FerryTestSupport

/// Another process has stopped while it holds the cache's files.
@Suite(.timeLimit(.minutes(2))) struct BlockedDiskTests {
    private let bench = CacheBench()

    /// The lock of the directory, held until it is closed.
    private func holdLock() throws -> Int32 {
        try FileManager.default.createDirectory(atPath: bench.path, withIntermediateDirectories: true)
        let file = open(bench.path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0)
        return file
    }

    @Test func aRunThatWaitsForTheDiskHoldsUpNeitherItsCallerNorTheLoop() async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        var cache = CacheConfiguration(directory: bench.path)
        // Longer than the test takes.
        cache.patience = 3_600_000_000
        configuration.cache = cache
        let lock = try holdLock()
        let agent = NetworkAgent(configuration: configuration)
        let queue = DispatchQueue(label: "caller")
        let kept = Kept(path: "/hello", cachePolicy: .timeToLive(.seconds(60)))
        let outcome = Outcome<String>()
        // The queue is free again, while the disk is still blocked.
        let task = await withCheckedContinuation { started in
            queue.async {
                let task = agent.start(kept, on: queue, completion: outcome.take)
                queue.async { started.resume(returning: task) }
            }
        }
        for _ in 0..<20 {
            _ = try await agent.send(Kept(path: "/hello", cachePolicy: .none))
        }
        #expect(task.state == .running && outcome.count == 0)
        // What arrives meanwhile is served from memory.
        let reloaded = try await agent.send(kept, cache: .reload)
        let hit = try await agent.send(kept)
        #expect(hit.isFromCache && hit.value == reloaded.value)
        let second = Outcome<String>()
        agent.start(kept, on: queue, completion: second.take)
        #expect(try await second.result.get().isFromCache)
        #expect(task.state == .running)
        close(lock)
        #expect(try await outcome.result.get().value == reloaded.value)
        await agent.shutdown()
        server.stop()
    }

    private final class Figures: RequestObserver {
        private let seen = Mutex<[RequestMetrics]>([])
        var hits: [RequestMetrics] { seen.withLock { $0 }.filter { $0.cache == .hit } }
        func metrics(_ run: RunInfo, _ metrics: RequestMetrics) { seen.withLock { $0.append(metrics) } }
    }

    @Test func aHitIsMeasuredWithItsWaitForTheDisk() async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        var cache = CacheConfiguration(directory: bench.path)
        cache.patience = 3_600_000_000
        configuration.cache = cache
        let kept = Kept(path: "/hello", cachePolicy: .timeToLive(.seconds(60), write: .synchronous))
        let filling = NetworkAgent(configuration: configuration)
        _ = try await filling.send(kept)
        await filling.shutdown()
        let lock = try holdLock()
        let figures = Figures()
        configuration.observers = [figures]
        let agent = NetworkAgent(configuration: configuration)
        let outcome = Outcome<String>()
        let held = Duration.milliseconds(200)
        let task = agent.start(kept, completion: outcome.take)
        await agent.pass(held, server)
        close(lock)
        #expect(try await outcome.result.get().isFromCache)
        #expect(task.metrics.total >= held)
        #expect(figures.hits.count == 1 && figures.hits.allSatisfy { $0.total >= held })
        // From memory it is faster, and measured, too.
        #expect(try await agent.send(kept).isFromCache)
        let again = Outcome<String>()
        agent.start(kept, completion: again.take)
        #expect(try await again.result.get().isFromCache)
        await agent.shutdown()
        #expect(figures.hits.count == 3 && figures.hits.allSatisfy { $0.total > .zero })
        server.stop()
    }

    @Test func whoHoldsTheDiskTooLongIsAMissAndCounted() async throws {
        let lock = try holdLock()
        let agent = bench.agent(counting(), memory: false) { $0.cache?.patience = 10_000 }
        #expect(try await texts(agent, Kept(), Kept()) == ["answer 1", "answer 2"])
        let statistics = await agent.cache.statistics
        #expect(statistics.misses == [.unavailable: 2])
        #expect(statistics.faults["busy"] == 2 && statistics.isDisabled)
        close(lock)
        bench.advance(by: .seconds(31))
        #expect(try await texts(agent, Kept(), Kept()) == ["answer 3", "cached answer 3"])
        await agent.shutdown()
    }

    @Test func theDeadlineHoldsForTheDiskToo() async throws {
        let lock = try holdLock()
        let stub = counting()
        let agent = bench.agent(stub, memory: false) { $0.cache?.patience = 3_600_000_000 }
        var kept = Kept(deadline: .milliseconds(100))
        for result in await agent.resultsOfBothWays(kept) { #expect(result.error?.code == .timeout(.deadline)) }
        #expect(await fault { try await agent.send(kept, cached: { _ in }) } == .timeout(.deadline))
        #expect(stub.requests.isEmpty)
        // A response is not lost because it is not stored in time.
        kept.deadline = .seconds(1)
        #expect(try await agent.send(kept, cache: .reload).value == "answer 1")
        let outcome = Outcome<String>()
        agent.start(kept, cache: .reload, completion: outcome.take)
        #expect(try await outcome.result.get().value == "answer 2")
        close(lock)
        await agent.shutdown()
    }

    /// Reports when its response is about to be written.
    private struct Written: Request {
        typealias Value = String
        let path = "/x"
        let cachePolicy = CachePolicy.timeToLive(.seconds(60), write: .synchronous)
        let writes: @Sendable () -> Void

        func shouldCache(_ response: Response) -> Bool {
            writes()
            return true
        }
    }

    @Test("R71: a cancel takes effect while the disk is awaited") func cancelledWhileItIsWritten() async throws {
        let lock = try holdLock()
        let agent = bench.agent(counting(), memory: false) { $0.cache?.patience = 3_600_000_000 }
        let (writes, told) = AsyncStream<Void>.makeStream()
        let task = Task { try await agent.send(Written { told.yield() }, cache: .reload) }
        for await _ in writes { break }
        task.cancel()
        let error = await #expect(throws: RequestError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        let outcome = Outcome<String>()
        let run = agent.start(Written { told.yield() }, cache: .reload, completion: outcome.take)
        for await _ in writes { break }
        run.cancel()
        #expect(await outcome.code == .cancelled)
        close(lock)
        #expect(try await agent.send(Kept()).status == 200)
        await agent.shutdown()
        #expect(outcome.count == 1)
    }

    @Test(
        "R71: cancelling all runs finds one that is being written, wherever its response came from",
        arguments: [false, true])
    func allCancelledWhileItIsWritten(adapted: Bool) async throws {
        let lock = try holdLock()
        let agent = bench.agent(counting(), memory: false) {
            $0.cache?.patience = 3_600_000_000
            if adapted { $0.adapters = [Adapt { _, _ in }] }
        }
        let (writes, told) = AsyncStream<Void>.makeStream()
        let outcome = Outcome<String>()
        let task = Task {
            do throws(RequestError) {
                outcome.take(.success(try await agent.send(Written { told.yield() }, cache: .reload)))
            } catch {
                outcome.take(.failure(error))
            }
        }
        for await _ in writes { break }
        agent.cancelAll()
        #expect(await eventually(within: .seconds(10)) { outcome.count == 1 })
        close(lock)
        await task.value
        #expect(await outcome.code == .cancelled)
        await agent.shutdown()
    }

    @Test("R71: a cancel takes effect while the cache is being read") func cancelledWhileItIsRead() async throws {
        let lock = try holdLock()
        let stub = counting()
        let agent = bench.agent(stub, memory: false) { $0.cache?.patience = 3_600_000_000 }
        let outcome = Outcome<String>()
        let run = agent.start(Kept(), completion: outcome.take)
        let task = await begun { await agent.result(Kept()).error }
        // Others come and go meanwhile, so that both have reached the disk.
        for _ in 0..<20 { _ = try await agent.send(Kept(cachePolicy: .none)) }
        #expect(run.state == .running && outcome.count == 0)
        run.cancel()
        task.cancel()
        #expect(await outcome.code == .cancelled)
        #expect(await task.value?.code == .cancelled)
        #expect(stub.requests.count == 20)
        close(lock)
        #expect(try await agent.send(Kept()).status == 200)
        await agent.shutdown()
        #expect(outcome.count == 1 && run.state == .cancelled)
    }

    @Test(arguments: [true, false]) func timeAtTheDiskIsNotGivenToTheTransfer(_ isShared: Bool) async throws {
        let lock = try holdLock()
        let stub = StubTransport(always: .hold)
        let agent = bench.agent(stub, memory: false) { $0.cache?.patience = 3_600_000_000 }
        let outcome = Outcome<String>()
        agent.start(Kept(coalesces: isShared, deadline: .seconds(3600)), completion: outcome.take)
        // This time at the disk is what the transfer must not get.
        await elapse(.milliseconds(50))
        close(lock)
        await stub.waitForHeld(1)
        let deadline = try #require(stub.requests.first).timeouts.deadline
        // A shared transfer has none; a run that waits for it leaves it.
        #expect(isShared ? deadline == nil : deadline.map { $0 <= 3_600_000 - 50 } == true)
        stub.releaseAll()
        #expect(await outcome.code == nil)
        await agent.shutdown()
    }

    @Test func downloadsAreNeverCached() async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.cache = CacheConfiguration(directory: bench.path)
        let agent = NetworkAgent(configuration: configuration)
        let request = Kept(path: "/hello")
        let target = bench.path + "-download"
        defer { try? FileManager.default.removeItem(atPath: target) }
        for round in 1...2 {
            _ = try await agent.download(request, to: .file(target))
            #expect(server.requests.count { $0.path == "/hello" } == round)
        }
        #expect(await agent.cache.statistics.writes == 0)
        #expect(await fault { try await agent.send(request, cache: .cacheOnly) } == .notCached(.notFound))
        // Nor are they served from the cache.
        _ = try await agent.send(request)
        _ = try await agent.download(request, to: .file(target))
        #expect(server.requests.count { $0.path == "/hello" } == 4)
        await agent.shutdown()
        server.stop()
    }
}
