import Ferry
import FerrySynchronization
import FerryTesting
import FerryTransport
import FoundationEssentials
import Testing

@testable import FerryTestSupport

@Suite struct CacheHitTests {
    private let bench = CacheBench()

    @Test(arguments: [true, false]) func theSecondRunIsAnsweredByTheCache(memory: Bool) async throws {
        let stub = counting(["X-A": "1", "ETag": "\"e\"", "Content-Type": "text/plain; charset=utf-8"])
        let agent = bench.agent(stub, memory: memory)
        let first = try await agent.send(Kept())
        #expect(!first.isFromCache)
        #expect(first.response.age == nil)
        #expect(first.cacheMiss == .notFound)
        #expect(first.metrics.cache == .miss)
        bench.advance(by: .seconds(7))
        let second = try await agent.send(Kept())
        #expect(second.isFromCache)
        #expect(second.response.age == .seconds(7))
        #expect(!second.response.isStale)
        #expect(second.value == "answer 1")
        #expect(second.status == 200)
        #expect(second.headers == first.headers)
        #expect(second.url == first.url)
        #expect(second.httpVersion == first.httpVersion)
        #expect(second.metrics.cache == .hit)
        #expect(second.metrics.attempts == 0)
        #expect(second.attempts == 0)
        #expect(second.metrics.bytesReceived == 0)
        #expect(stub.requests.count == 1)
        let statistics = await agent.cache.statistics
        #expect(statistics.memoryHits == (memory ? 1 : 0))
        #expect(statistics.diskHits == (memory ? 0 : 1))
        #expect(statistics.misses == [.notFound: 1])
        #expect(statistics.entries == 1)
        #expect(statistics.bytes > 0)
        #expect(statistics.memoryEntries == (memory ? 1 : 0))
        await agent.shutdown()
    }

    @Test func theNextAgentHitsWhatThisOneKept() async throws {
        let first = bench.agent(counting())
        #expect(try await texts(first, Kept()) == ["answer 1"])
        await first.shutdown()
        let stub = counting()
        let second = bench.agent(stub)
        // From the disk, then from memory.
        #expect(try await texts(second, Kept(), Kept()) == ["cached answer 1", "cached answer 1"])
        #expect(stub.requests.isEmpty)
        #expect(await second.cache.statistics.memoryHits == 1)
        await second.shutdown()
    }

    @Test func aRequestWithoutAPolicyIsNeitherKeptNorLookedFor() async throws {
        let stub = counting()
        let agent = bench.agent(stub)
        var request = Kept()
        _ = try await agent.send(request)
        request.cachePolicy = .none
        let reply = try await agent.send(request)
        #expect(!reply.isFromCache)
        #expect(reply.metrics.cache == nil)
        request.cachePolicy = .timeToLive(.zero)
        #expect(try await agent.send(request).metrics.cache == nil)
        request.cachePolicy = .timeToLive(.seconds(-1))
        #expect(try await agent.send(request).metrics.cache == nil)
        #expect(stub.requests.count == 4)
        await agent.shutdown()
    }

    @Test func withoutACacheAPolicyCostsNothing() async throws {
        let stub = counting()
        let agent = NetworkAgent(configuration: .test, stub: stub)
        #expect(try await texts(agent, Kept(), Kept()) == ["answer 1", "answer 2"])
        #expect(await agent.cache.statistics.misses.isEmpty)
        #expect(await fault { try await agent.send(Kept(), cache: .cacheOnly) } == .notCached(.notConfigured))
        await agent.shutdown()
    }

    @Test("The mode cacheOnly never uses the network, however the request is started")
    func cacheOnlyOfARequest() async throws {
        let stub = counting()
        let agents = [NetworkAgent(configuration: .test, stub: stub), bench.agent(stub, memory: true)]
        var changed = HTTPRequest(.get, "https://api.example/kept")
        changed.cacheMode = .cacheOnly
        let request = changed
        let target = DownloadTarget.file(bench.path + "/file")
        for agent in agents {
            #expect(await fault { try await agent.send(request) } == .notCached(.notConfigured))
            #expect(await fault { try await agent.stream(request).status } == .notCached(.notConfigured))
            #expect(
                await fault { try await agent.download(request, to: target) } == .notCached(.notConfigured))
            #expect(
                await fault { try await agent.send(request, uploadProgress: { _ in }) } == .notCached(.notConfigured))
            let started = await withCheckedContinuation { done in
                agent.start(request) { done.resume(returning: $0.error?.code) }
            }
            let loaded = await withCheckedContinuation { done in
                agent.download(request, to: target) { done.resume(returning: $0.error?.code) }
            }
            #expect(started == .notCached(.notConfigured) && loaded == .notCached(.notConfigured))
            let batch = BatchRequest([request])
            #expect(await fault { try await agent.send(batch) } == .notCached(.notConfigured))
            await agent.shutdown()
        }
        #expect(stub.requests.isEmpty)
    }

    @Test("A request that no stored response can answer is not sent with the mode cacheOnly", arguments: [true, false])
    func cacheOnlyOfAnUnsafeRequest(hasBody: Bool) async throws {
        let stub = counting()
        let agent = bench.agent(stub)
        var request = HTTPRequest(hasBody ? .get : .delete, "https://api.example/kept")
        if hasBody { request.body = .string("body") }
        request.cacheMode = .cacheOnly
        for policy in [CachePolicy.http(), .timeToLive(.seconds(60))] {
            request.cachePolicy = policy
            let code = await agent.result(request).error?.code
            #expect(code.map { .notCached ~= $0 } == true, "\(code as Any)")
        }
        #expect(stub.requests.isEmpty)
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func anAnswerIsUsedUpToItsTimeAndNoLonger(memory: Bool) async throws {
        let agent = bench.agent(counting(), memory: memory)
        #expect(try await texts(agent, Kept()) == ["answer 1"])
        bench.advance(by: .seconds(60))
        #expect(try await texts(agent, Kept()) == ["cached answer 1"])
        bench.advance(by: .seconds(1))
        let reply = try await agent.send(Kept())
        #expect(reply.cacheMiss == .expired)
        #expect(reply.value == "answer 2")
        #expect(try await texts(agent, Kept()) == ["cached answer 2"])
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func aClockThatWentBackIsAMiss(memory: Bool) async throws {
        let agent = bench.agent(counting(), memory: memory)
        _ = try await agent.send(Kept())
        bench.advance(by: .seconds(-2))
        #expect(try await agent.send(Kept()).cacheMiss == .expired)
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func eachDifferenceOfThePolicyIsAMissWithItsReason(memory: Bool) async throws {
        let agent = bench.agent(counting(), memory: memory)
        func miss(_ policy: CachePolicy) async throws -> CacheMiss? {
            try await agent.send(
                Kept(cachePolicy: .timeToLive(.seconds(9), version: 1, sensitiveData: "kim", write: .synchronous)),
                cache: .reload)
            return try await agent.send(Kept(cachePolicy: policy)).cacheMiss
        }
        #expect(try await miss(.timeToLive(.seconds(9), version: 1, sensitiveData: "kim")) == nil)
        #expect(try await miss(.timeToLive(.seconds(9), version: 2, sensitiveData: "kim")) == .versionMismatch)
        #expect(try await miss(.timeToLive(.seconds(9), version: 1, sensitiveData: "lee")) == .sensitiveDataMismatch)
        #expect(try await miss(.timeToLive(.seconds(9), version: 1)) == .sensitiveDataMismatch)
        await agent.shutdown()
    }

    @Test func anotherVersionOfTheApplicationIsAMiss() async throws {
        let first = bench.agent(counting()) { $0.cache?.applicationVersion = "1.0" }
        _ = try await first.send(Kept())
        #expect(try await texts(first, Kept()) == ["cached answer 1"])
        await first.shutdown()
        let second = bench.agent(counting()) { $0.cache?.applicationVersion = "1.1" }
        #expect(try await second.send(Kept()).cacheMiss == .appVersionMismatch)
        await second.shutdown()
    }

    @Test func theDirectoryPassesItsFiltersInOrder() async throws {
        struct Below: CacheDirectoryFilter {
            let name: String
            func filter(_ directory: String) -> String { directory + "/" + name }
        }
        let agent = bench.agent(counting()) { $0.cache?.directoryFilters = [Below(name: "a"), Below(name: "b")] }
        _ = try await agent.send(Kept())
        await agent.shutdown()
        #expect(try FileManager.default.contentsOfDirectory(atPath: bench.path + "/a/b").contains("entries-1.sqlite"))
    }

    @Test func anAnswerThatNoLongerPassesItsChecksIsFetchedAnew() async throws {
        for isByClosure in [false, true] {
            let bench = CacheBench()
            let stub = counting()
            let agent = bench.agent(stub)
            _ = try await agent.send(Kept())
            let stricter = Kept(acceptedContentTypes: ["text/plain"])
            if isByClosure {
                let outcome = Outcome<String>()
                agent.start(stricter, completion: outcome.take)
                #expect(await outcome.code == .invalidContentType)
            } else {
                #expect(await fault { try await agent.send(stricter) } == .invalidContentType)
            }
            #expect(stub.requests.count == 2)
            #expect(await agent.cache.statistics.misses[.invalid] == 1)
            // The next removal follows it in the queue.
            await agent.cache.remove(Kept(path: "/other"))
            #expect(await fault { try await agent.send(Kept(), cache: .cacheOnly) } == .notCached(.notFound))
            await agent.shutdown()
        }
    }

    @Test(arguments: [true, false]) func closuresAndDelegatesSeeHitsAsTheyDoAnyResult(memory: Bool) async throws {
        let stub = counting()
        let agent = bench.agent(stub, memory: memory)
        let first = Outcome<String>()
        agent.start(Kept(), completion: first.take)
        #expect(try await first.result.get().value == "answer 1")
        let second = Outcome<String>()
        let task = agent.start(Kept(), completion: second.take)
        let reply = try await second.result.get()
        #expect(reply.isFromCache)
        #expect(reply.value == "answer 1")
        #expect(task.state == .finished)
        #expect(second.count == 1)
        #expect(stub.requests.count == 1)
        await agent.shutdown()
    }

    @Test func redirectedAnswersKeepWhereTheyCameFromWithoutItsSecrets() async throws {
        let stub = StubTransport { $0.number == 1 ? .redirect(to: "/y?token=canary") : .response(body: "there") }
        let agent = bench.agent(stub, memory: false)
        #expect(try await agent.send(Kept()).url == "http://h/y?token=canary")
        let hit = try await agent.send(Kept())
        #expect(hit.isFromCache)
        #expect(hit.url == "http://h/y?token=***")
        #expect(hit.redirects.isEmpty)
        await agent.shutdown()
        #expect(!bench.content.contains("canary"))
    }

    @Test func everyAnswerAfterTheShutdownIsShutdownHitsIncluded() async throws {
        let agent = bench.agent(counting())
        _ = try await agent.send(Kept())
        await agent.shutdown()
        #expect(await fault { try await agent.send(Kept()) } == .shutdown)
        let outcome = Outcome<String>()
        agent.start(Kept(), completion: outcome.take)
        #expect(await outcome.code == .shutdown)
    }

    @Test func aTaskThatIsCancelledGetsNoHit() async throws {
        let agent = bench.agent(counting())
        _ = try await agent.send(Kept())
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return await fault { try await agent.send(Kept()) }
        }
        task.cancel()
        #expect(await task.value == .cancelled)
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func batchesAndChainsSeeHitsAsOrdinaryResults(memory: Bool) async throws {
        let stub = counting()
        let agent = bench.agent(stub, memory: memory)
        let requests = (0..<5).map { Kept(path: "/\($0)") }
        let first = try await agent.send(batch: requests)
        #expect(try await agent.send(batch: requests) == first)
        let both = try await agent.send(ChainRequest(requests[0]).then { _ in requests[1] })
        #expect(both == first[1])
        #expect(stub.requests.count == 5)
        await agent.shutdown()
    }

    @Test(arguments: [true, false]) func aGroupThatIsOverGetsNoHits(memory: Bool) async throws {
        let agent = bench.agent(counting(), memory: memory)
        _ = try await agent.send(Kept())
        let batch = BatchRequest([Kept()])
        #expect(try await agent.send(batch).first == "answer 1")
        #expect(await fault { try await agent.send(batch.deadline(.zero)) } == .timeout(.deadline))
        await agent.shutdown()
    }

    @Test func noBoundAtAllIsABound() async throws {
        let agent = bench.agent(counting()) {
            $0.cache?.maxEntryBytes = .max
            $0.cache?.maxBytes = .max
            $0.cache?.memoryBytes = .max
            $0.cache?.maxQueuedBytes = .max
        }
        #expect(try await texts(agent, Kept(), Kept()) == ["answer 1", "cached answer 1"])
        await agent.shutdown()
    }

    @Test func headsCountForTheBoundOfTheMemory() async throws {
        let agent = bench.agent(counting(["X-Long": String(repeating: "x", count: 8000)])) {
            $0.cache?.memoryBytes = 8000
        }
        _ = try await agent.send(Kept())
        #expect(await agent.cache.statistics.memoryEntries == 0)
        await agent.shutdown()
    }

    @Test func statisticsAfterTheShutdownOpenNothing() async throws {
        let agent = bench.agent(counting())
        _ = try await agent.send(Kept())
        await agent.shutdown()
        try FileManager.default.removeItem(atPath: bench.path)
        let statistics = await agent.cache.statistics
        #expect((statistics.entries, statistics.bytes, statistics.writes) == (0, 0, 1))
        #expect(!FileManager.default.fileExists(atPath: bench.path))
    }

    @Test func ofAnAnswerInMemoryASchemaIsCheckedOnce() async throws {
        let agent = bench.agent(StubTransport(always: .response(body: #"{"nick":"kim","level":3}"#)))
        let schema: JSONSchema = ["nick": .string]
        var request = HTTPRequest(.get, "/u")
        request.jsonSchema = schema
        request.cachePolicy = .timeToLive(.seconds(60))
        let first = try await agent.send(request).response
        let second = try await agent.send(request).response
        #expect(second.isFromCache && second.result === first.result)
        #expect(second.result.passedCheck == schema.number)
        // With another schema it is checked again, and does not count as having passed the first.
        request.jsonSchema = ["age": .integer]
        let error = await fault { () throws(RequestError) in try await agent.send(request, cache: .cacheOnly) }
        #expect(error?.code.name == "schemaMismatch")
        request.jsonSchema = schema
        #expect(try await agent.send(request, cache: .cacheOnly).isFromCache)
        await agent.shutdown()
    }

    @Test func aSharedAnswerIsReadByManyAtOnce() async throws {
        let agent = bench.agent(StubTransport(always: .response(body: #"{"nick":"kim","level":3}"#)))
        var request = HTTPRequest(.get, "/u", as: User.self)
        request.jsonSchema = ["nick": .string, "level": .integer]
        request.cachePolicy = .timeToLive(.seconds(60))
        _ = try await agent.send(request)
        let right = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask { [request] in
                    var right = 0
                    for _ in 0..<200 where try await agent.send(request).value == User(nick: "kim", level: 3) {
                        right += 1
                    }
                    return right
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(right == 1600)
        await agent.shutdown()
    }
}
