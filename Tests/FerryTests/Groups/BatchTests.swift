import FaultTable
import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

@Suite(.timeLimit(.minutes(1)), .faultTable) struct BatchTests {
    @Test func tuplesKeepTheirTypesAndOrder() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let (text, number, missing, inner) = try await agent.send(
            batch: Echo("a"), Count(number: 7), Echo?.none, BatchRequest([Count(number: 1), Count(number: 2)]))
        #expect(text == "a" && number == 7 && missing == nil && inner == [1, 2])
    }

    @Test func arraysKeepTheirOrderHoweverTheyAreAnswered() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        async let values = agent.send(batch: (0..<10).map { Count(number: $0) })
        await stub.waitForHeld(10)
        for request in stub.held.reversed() { stub.respond(to: request, with: .response()) }
        #expect(try await values == Array(0..<10))
    }

    @Test func existentialsAreMembersToo() async throws {
        let agent = NetworkAgent.with(StubTransport(["/bad": .response(status: 500)]))
        let texts: [any Request<String>] = [Echo("a"), Echo("b")]
        #expect(try await agent.send(batch: texts) == ["a", "b"])
        let runnables: [any Runnable<Int>] = [
            Count(number: 1), ChainRequest(Echo("a")).then { _ in Count(number: 2) },
        ]
        #expect(try await agent.send(batch: runnables) == [1, 2])
        let anything = try await agent.send(BatchRequest(mixed: [Echo("a"), Count(number: 3)]))
        #expect(anything.count == 2 && anything[0] as? String == "a" && anything[1] as? Int == 3)
        let results = try await agent.send(
            BatchRequest(mixed: [Echo("bad"), Count(number: 3)], .collectAll))
        #expect(throws: RequestError.self) { try results[0].get() }
        #expect(try results[1].get() as? Int == 3)
        #expect(try await agent.send(batch: texts, .collectAll).count == 2)
    }

    @Test func anEmptyBatchSucceedsAtOnce() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        #expect(try await agent.send(batch: [Echo]()) == [])
        #expect(try await agent.send(batch: [Echo](), .collectAll).isEmpty)
        let outcome = KeptResult<[String]>()
        let task = agent.start(BatchRequest([Echo]()), completion: outcome.take)
        #expect(try await outcome.result.get() == [])
        #expect(task.progress == GroupProgress(finished: 0, total: 0))
        #expect(task.progress?.fraction == 1)
        #expect(!task.isFromCache)
        #expect(stub.requests.isEmpty)
    }

    @Test("R108: the first failure cancels the rest, and finished values are available")
    func failFast() async throws {
        let stub = StubTransport { request in
            request.url.hasSuffix("/4") || request.url.hasSuffix("/1") || request.url.hasSuffix("/8")
                ? .hold : request.url.hasSuffix("/3") || request.url.hasSuffix("/0") ? .response() : .hold
        }
        let agent = NetworkAgent.with(stub)
        let outcome = KeptResult<[Int]>()
        let (progress, told) = AsyncStream<GroupProgress>.makeStream()
        let task = agent.start(
            BatchRequest((0..<10).map { Count(number: $0) }), progress: { told.yield($0) }, completion: outcome.take)
        await stub.waitForHeld(8)
        for await step in progress where step.finished == 2 { break }
        let fourth = try #require(stub.held.first { $0.url.hasSuffix("/4") })
        stub.respond(to: fourth, with: .response(status: 404))
        let error = try #require(await outcome.error)
        #expect(error.code == .invalidStatusCode(404))
        #expect(error.failedIndex == 4)
        #expect(error.failedStep == nil)
        #expect(error.groupPath == [GroupPlace(kind: .batch, index: 4)])
        #expect(error.description.contains("member 4"))
        #expect(error.finished.mapValues { $0 as? Int } == [0: 0, 3: 3])
        #expect(stub.events.count { if case .cancelled = $0 { true } else { false } } == 7)
        await agent.shutdown()
        #expect(task.state == .failed)
        #expect(outcome.count == 1)
    }

    @Test("R108: the failure is reported and the rest is cancelled within a tenth of a second")
    func failFastIsFast() async throws {
        MachinePauses.beginWatch()
        var times: [Duration] = []
        for _ in 0..<5 {
            let server = try LoopbackServer()
            let missing = "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n"
            for number in 0..<10 {
                let end: [LoopbackScript.Step] = number == 4 ? [.wait("go"), .send(missing), .serve] : [.keepOpen]
                server.script(path: "/\(number)", LoopbackScript([.expectHead, .mark("asked")] + end))
            }
            let agent = NetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL))
            let outcome = KeptResult<[Int]>()
            let end = Mutex(ContinuousClock.now)
            agent.start(BatchRequest((0..<10).map { Count(number: $0) })) { result in
                end.withLock { $0 = .now }
                outcome.take(result)
            }
            try await server.waitForMark("asked", count: 10)
            let began = ContinuousClock.now
            server.signal("go")
            #expect(await outcome.error?.failedIndex == 4)
            let ended = end.withLock { $0 }
            times.append(ended - began - MachinePauses.total(between: began, and: ended))
            // The failed member's value may be retained.
            try await server.waitForOpenConnections(atMost: 1)
            await agent.shutdown()
            #expect(outcome.count == 1 && server.requestCount == 10)
        }
        // One of them may not have had a processor.
        #expect(times.sorted()[2] < .milliseconds(100), "\(times)")
    }

    @Test func whatATupleHadBroughtIsThereToo() async throws {
        let agent = NetworkAgent.with(StubTransport(["/9": .response(status: 404)]))
        let error = await fault { () throws(RequestError) in
            try await agent.send(batch: Echo("a"), Count(number: 1), Count(number: 9), atMost: 1)
        }
        #expect(error?.finished[0] as? String == "a" && error?.finished[1] as? Int == 1 && error?.finished.count == 2)
    }

    @Test("R108: all results are collected, in order")
    func collectAll() async throws {
        let agent = NetworkAgent.with(StubTransport(["/4": .response(status: 404)]))
        let results = try await agent.send(batch: (0..<10).map { Count(number: $0) }, .collectAll)
        #expect(results.count == 10)
        for (index, result) in results.enumerated() {
            switch result {
            case .success(let number): #expect(number == index && index != 4)
            case .failure(let error): #expect(index == 4 && error.code == .invalidStatusCode(404))
            }
        }
        let (good, bad) = try await agent.send(BatchRequest(Echo("1"), Count(number: 4), mode: .collectAll))
        #expect(try good.get() == "1")
        #expect(throws: RequestError.self) { try bad.get() }
    }

    @Test(arguments: [1, 3, 64]) func noMoreAtOnceThanSaid(_ limit: Int) async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        async let values = agent.send(batch: (0..<100).map { Count(number: $0) }, atMost: limit)
        for released in stride(from: 0, to: 100, by: limit) {
            await stub.waitForHeld(min(limit, 100 - released))
            #expect(stub.requests.count == min(released + limit, 100))
            stub.releaseAll()
        }
        #expect(try await values == Array(0..<100))
    }

    @Test func nothingMoreBeginsAfterAFailure() async {
        let stub = StubTransport(["/3": .failure(.connectionReset)])
        let agent = NetworkAgent.with(stub)
        let error = await fault { () throws(RequestError) in
            try await agent.send(batch: (0..<10).map { Count(number: $0) }, atMost: 1)
        }
        #expect(error?.code == .connectionReset)
        #expect(error?.failedIndex == 3)
        #expect(stub.paths == ["/0", "/1", "/2", "/3"])
    }

    @Test func progressIsTold() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let told = Mutex<[GroupProgress]>([])
        try await agent.send(BatchRequest((0..<50).map { Count(number: $0) })) { progress in
            told.withLock { $0.append(progress) }
        }
        let all = told.withLock { $0 }
        #expect(all.last == GroupProgress(finished: 50, total: 50))
        #expect(all.map(\.finished) == all.map(\.finished).sorted())
        let outcome = KeptResult<[Int]>()
        let last = Mutex<GroupProgress?>(nil)
        agent.start(
            BatchRequest((0..<5).map { Count(number: $0) }), progress: { progress in last.withLock { $0 = progress } }
        ) { result in
            #expect(last.withLock { $0 } == GroupProgress(finished: 5, total: 5), "the result comes last")
            outcome.take(result)
        }
        _ = try await outcome.result.get()
    }

    @Test func aBatchIsFromTheCacheWhenAllAre() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response())) { configuration in
            configuration.interceptors = [
                Intercept { request, _ in
                    request.url.contains("/cached") ? InterceptedResponse(isFromCache: true) : nil
                }
            ]
        }
        let seen = OutcomeObserver()
        let all = BatchRequest([Echo("cached1"), Echo("cached2")]).observed(by: seen)
        try await agent.send(all)
        try await agent.send(BatchRequest([Echo("cached1"), Echo("x")]).observed(by: seen))
        try await agent.send(BatchRequest(Echo("cached1"), Echo?.none).observed(by: seen))
        try await agent.send(ChainRequest(Echo("cached1")).then { _ in all }.observed(by: seen))
        try await agent.send(BatchRequest([Echo]()).observed(by: seen))
        #expect(
            seen.outcomes.map(\.word) == ["cached", "finished", "cached", "cached", "cached", "finished"])
        let outcome = KeptResult<[String]>()
        let task = agent.start(all, completion: outcome.take)
        _ = await outcome.result
        #expect(task.isFromCache)
    }

    @Test func aBatchWithAFailureIsNotFromTheCache() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response(status: 500))) { configuration in
            configuration.interceptors = [
                Intercept { request, _ in
                    request.url.contains("/cached") ? InterceptedResponse(isFromCache: true) : nil
                }
            ]
        }
        let seen = OutcomeObserver()
        let results = try await agent.send(
            BatchRequest([Echo("cached1"), Echo("x")], .collectAll).observed(by: seen))
        #expect(results.map { (try? $0.get()) != nil } == [true, false])
        #expect(seen.outcomes.map(\.word) == ["finished"])
    }

    @Test func keptMembersBringWhatWasKept() async throws {
        let bench = CacheBench()
        let stub = counting()
        let agent = bench.agent(stub)
        let seen = OutcomeObserver()
        let batch = BatchRequest([Kept(path: "/a"), Kept(path: "/b")], atMost: 1).observed(by: seen)
        #expect(try await agent.send(batch) == ["answer 1", "answer 2"])
        #expect(try await agent.send(batch) == ["answer 1", "answer 2"])
        try await agent.send(BatchRequest([Kept(path: "/a"), Kept(path: "/c")]).observed(by: seen))
        #expect(seen.outcomes.map(\.word) == ["finished", "cached", "finished"])
        #expect(stub.requests.count == 3)
        await agent.shutdown()
    }

    @Test func optionalValuesSurvive() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let none: ChainRequest<String?> = ChainRequest(Echo("a")).map { _ in nil }
        let (left, right) = try await agent.send(batch: none, Echo?.none)
        #expect(left == nil && right == nil)
        let nested = try await agent.send(ChainRequest(value: Int??.some(nil)).onValue { #expect($0 != nil) })
        #expect(nested == .some(nil))
    }
}
