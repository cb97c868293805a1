import Dispatch
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Batches and chains that are ended by a cancel, a deadline or a shutdown, in any state.
@Suite(.timeLimit(.minutes(1))) struct GroupEndTests {
    /// Freed with the task that carries a group, after its result was sent to the queue.
    @TaskLocal private static var carried: Token?

    /// A chain that is held at its first request, in a closure, at a batch, or just before its result is delivered.
    enum Standing: CaseIterable { case unbegun, atFirst, inClosure, inBatch, answered, finished }

    /// Blocks a callback queue when the last member of a group has ended on it: the result of the group waits behind
    /// it.
    private final class Blocker: RequestObserver {
        private let state = Mutex<(left: Int, block: (@Sendable () -> Void)?)>((0, nil))

        func block(_ queue: DispatchQueue, with gate: DispatchSemaphore, after members: Int) {
            state.withLock { $0 = (members, { queue.async { gate.wait() } }) }
        }

        func didStop(_ run: RunInfo, _ outcome: RunOutcome) {
            let block = state.withLock { state in
                state.left -= 1
                return state.left == 0 ? state.block : nil
            }
            block?()
        }
    }

    @Test("A cancel takes effect in every state", arguments: Standing.allCases)
    func cancelInEveryState(_ standing: Standing) async throws {
        let stub = StubTransport { request in
            switch (standing, request.url) {
            case (.atFirst, "http://h/first"), (.inBatch, "http://h/second"): .hold
            default: .response()
            }
        }
        let blocker = Blocker()
        let agent = NetworkAgent.with(stub) { $0.observers = [blocker] }
        let queue = DispatchQueue(label: "test")
        let (closure, inClosure) = AsyncStream<Void>.makeStream()
        let gate = DispatchSemaphore(value: 0)
        if standing == .answered { blocker.block(queue, with: gate, after: 4) }
        if standing == .unbegun { queue.async { gate.wait() } }
        let outcome = KeptResult<String>()
        let chain = ChainRequest(Echo("first"))
            .onValue { _ in
                inClosure.yield()
                if standing == .inClosure { try await Task.sleep(for: .seconds(3600)) }
            }
            .then { _ in BatchRequest(Echo("second"), Echo("third")) }
            .map { $0 + $1 }
        let (end, whenGone) = AsyncStream<Void>.makeStream()
        var token: Token? = Token(whenGone)
        let task = Self.$carried.withValue(token) { agent.start(chain, on: queue, completion: outcome.take) }
        token = nil
        switch standing {
        case .unbegun: break
        case .atFirst, .inBatch: await stub.waitForHeld(1)
        case .inClosure: for await _ in closure { break }
        case .answered:
            await end.finished()
            #expect(task.state == .finishing)
        case .finished: _ = await outcome.result
        }
        task.cancel()
        task.cancel()
        gate.signal()
        if standing == .finished {
            #expect(try await outcome.result.get() == "secondthird")
        } else {
            #expect(await outcome.error?.code == .cancelled)
        }
        await agent.shutdown()
        #expect(outcome.count == 1)
        #expect(task.state == (standing == .finished ? .finished : .cancelled))
    }

    @Test(
        "A cancel takes effect in every state of a batch",
        arguments: [Standing.unbegun, .inBatch, .answered, .finished])
    func cancelInEveryStateOfABatch(_ standing: Standing) async throws {
        let stub = StubTransport { standing == .inBatch && $0.url.hasSuffix("/3") ? .hold : .response() }
        let blocker = Blocker()
        let agent = NetworkAgent.with(stub) { $0.observers = [blocker] }
        let queue = DispatchQueue(label: "test")
        let gate = DispatchSemaphore(value: 0)
        if standing == .answered { blocker.block(queue, with: gate, after: 6) }
        if standing == .unbegun { queue.async { gate.wait() } }
        let outcome = KeptResult<[Int]>()
        let (end, whenGone) = AsyncStream<Void>.makeStream()
        var token: Token? = Token(whenGone)
        let task = Self.$carried.withValue(token) {
            agent.start(
                BatchRequest((0..<6).map { Count(number: $0) }, atMost: 4), on: queue, completion: outcome.take)
        }
        token = nil
        switch standing {
        case .inBatch: await stub.waitForHeld(1)
        case .answered: await end.finished()
        case .finished: _ = await outcome.result
        case .unbegun, .atFirst, .inClosure: break
        }
        task.cancel()
        gate.signal()
        if standing == .finished {
            #expect(try await outcome.result.get() == Array(0..<6))
        } else {
            #expect(await outcome.error?.code == .cancelled)
        }
        await agent.shutdown()
        #expect(outcome.count == 1)
        #expect(task.state == (standing == .finished ? .finished : .cancelled))
    }

    @Test("Cancelling the task cancels the runs started in it")
    func cancelledTasks() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        let seen = OutcomeObserver()
        let group = BatchRequest(Echo("a"), ChainRequest(Echo("b")).then { Echo($0) }).observed(by: seen)
        let task = Task { await fault { () throws(RequestError) in try await agent.send(group) } }
        await stub.waitForHeld(2)
        task.cancel()
        let error = await task.value
        #expect(error?.code == .cancelled)
        #expect(error?.failedIndex == nil, "it was the whole that was cancelled")
        #expect(seen.outcomes.map(\.word) == ["cancelled"])
        #expect(stub.events.count { if case .cancelled = $0 { true } else { false } } == 2)
        let before = stub.requests.count
        let early = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await fault { () throws(RequestError) in try await agent.send(group) }
        }
        #expect(await early.value?.code == .cancelled)
        #expect(stub.requests.count == before, "a cancelled task sends nothing")
    }

    @Test func cancelAllReachesGroupsBetweenTheirSteps() async {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let (closure, inClosure) = AsyncStream<Void>.makeStream()
        let chain = ChainRequest(Echo("a"))
            .onValue { _ in
                inClosure.yield()
                try await Task.sleep(for: .seconds(3600))
            }
            .then { Echo($0) }
        let outcome = KeptResult<String>()
        agent.start(chain.tagged("T"), completion: outcome.take)
        let awaited = Task { await fault { () throws(RequestError) in try await agent.send(chain) } }
        var entered = closure.makeAsyncIterator()
        await entered.next()
        await entered.next()
        agent.cancelAll(tagged: "T")
        #expect(await outcome.error?.code == .cancelled)
        agent.cancelAll()
        #expect(await awaited.value?.code == .cancelled)
        #expect(!awaited.isCancelled, "the task it was sent from is not the group's")
    }

    @Test func aCancelOfTheGroupIsNoneOfTheTaskAround() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        let task = Task {
            let error = await fault { () throws(RequestError) in try await agent.send(batch: [Echo("a")]) }
            return (error?.code, Task.isCancelled)
        }
        await stub.waitForHeld(1)
        agent.cancelAll()
        let (code, isCancelled) = await task.value
        #expect(code == .cancelled && !isCancelled)
    }

    // MARK: Deadlines

    @Test("A member without a response ends with the deadline of its group", arguments: [true, false])
    func silentMember(isBatch: Bool) async throws {
        let server = try LoopbackServer()
        server.script(path: "/silent", [.wait("never")])
        await withNetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL)) { agent in
            let start = ContinuousClock.now
            let error = await fault { () throws(RequestError) in
                if isBatch {
                    try await agent.send(
                        BatchRequest(Get("/hello"), Get("/silent")).deadline(.milliseconds(800)))
                } else {
                    try await agent.send(
                        ChainRequest(Get("/hello")).then { _ in Get("/silent") }.then { _ in Get("/never") }
                            .deadline(.milliseconds(800)))
                }
            }
            #expect(error?.code == .timeout(.deadline))
            #expect(error?.failedIndex == 1)
            #expect(start.duration(to: .now) >= .milliseconds(800))
            #expect(!server.requests.contains { $0.target == "/never" })
        }
    }

    @Test func collectedResultsSayWhoMissedTheDeadline() async throws {
        let server = try LoopbackServer()
        server.script(path: "/silent", [.wait("never")])
        try await withNetworkAgent(configuration: NetworkConfiguration(baseURL: server.baseURL)) { agent in
            let results = try await agent.send(
                BatchRequest(
                    [Get("/hello"), Get("/silent"), Get("/silent"), Get("/silent")], .collectAll, atMost: 2
                )

                .deadline(.milliseconds(800)))
            #expect(results.map { (try? $0.get()) != nil } == [true, false, false, false])
            for case .failure(let error) in results { #expect(error.code == .timeout(.deadline)) }
            #expect(server.requests.count { $0.target == "/silent" } == 2, "what has not begun is not sent")
        }
    }

    @Test func aDeadlineCancelsTheClosureThatIsAsked() async {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        let chain = ChainRequest(Echo("a"))
            .onValue { _ in try await Task.sleep(for: .seconds(3600)) }
            .then { Echo($0) }
        let error = await fault { () throws(RequestError) in
            try await agent.send(chain.deadline(.milliseconds(500)))
        }
        #expect(error?.code == .timeout(.deadline))
        #expect(error?.failedIndex == 0)
        let inner = await fault { () throws(RequestError) in
            try await agent.send(BatchRequest(Echo("b"), chain).deadline(.milliseconds(500)))
        }
        #expect(inner?.code == .timeout(.deadline))
        #expect(inner?.groupPath.map(\.index) == [1, 0])
        #expect(stub.requests.count == 3)
    }

    @Test func theNearestDeadlineHolds() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        var near = Echo("near")
        near.deadline = .milliseconds(500)
        var far = Echo("far")
        far.deadline = .seconds(3600)
        try await agent.send(
            ChainRequest(BatchRequest([near, far, Echo("none")], atMost: 1).deadline(.seconds(100)))
                .deadline(.seconds(10)))
        let deadlines = stub.requests.map { $0.timeouts.deadline ?? 0 }
        #expect(deadlines[0] == 500)
        #expect((9000...10_000).contains(deadlines[1]) && (9000...10_000).contains(deadlines[2]))
    }

    @Test func aDeadlineThatIsOverSendsNothing() async {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent.with(stub)
        let error = await fault { () throws(RequestError) in
            try await agent.send(BatchRequest([Echo("a")]).deadline(.zero))
        }
        #expect(error?.code == .timeout(.deadline))
        #expect(stub.requests.isEmpty)
    }

    @Test(arguments: [true, false]) func retriesKeepToTheDeadline(isBatch: Bool) async throws {
        let stub = StubTransport(always: .response(status: 503))
        let agent = NetworkAgent.with(stub) {
            $0.retryPolicy = .exponential(maxAttempts: 1000, baseDelay: .milliseconds(5), maxDelay: .milliseconds(5))
            $0.retryBudget = RetryBudget(ratio: 1, minimumPerSecond: 1000, burst: 1000)
        }
        let error = await fault { () throws(RequestError) in
            if isBatch {
                try await agent.send(BatchRequest([Echo("a")]).deadline(.milliseconds(400)).priority(.high))
            } else {
                try await agent.send(ChainRequest(Echo("a")).deadline(.milliseconds(400)).priority(.high))
            }
        }
        #expect(error != nil)
        #expect(stub.requests.count > 1 && stub.requests.count < 1000)
        #expect(stub.requests.allSatisfy { $0.priority == .high && ($0.timeouts.deadline ?? .max) <= 400 })
    }

    @Test func aMemberThatAsksTheCacheKeepsToTheDeadline() async throws {
        let server = try LoopbackServer()
        server.script(path: "/silent", [.wait("never")])
        let bench = CacheBench()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.cache = CacheConfiguration(directory: bench.path)
        try await withNetworkAgent(configuration: configuration) { agent in
            let results = try await agent.send(
                BatchRequest([Kept(path: "/hello"), Kept(path: "/silent")], .collectAll).deadline(.seconds(2)))
            #expect((try? results[0].get()) != nil)
            #expect(throws: RequestError.self) { try results[1].get() }
            guard case .failure(let error) = results[1] else { return }
            #expect(error.code == .timeout(.deadline))
        }
    }

    // MARK: Shutdown

    @Test func aShutdownLetsGroupsFinishWithinTheGrace() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        let outcome = KeptResult<String>()
        agent.start(
            ChainRequest(Echo("a")).then { BatchRequest([Echo($0 + "b")]) }.map { $0[0] }, completion: outcome.take)
        await stub.waitForHeld(1)
        let shutdown = await begun { await agent.shutdown(grace: .seconds(3600)) }
        #expect(agent.core.state.withLock { $0.isClosed })
        #expect(await fault { () throws(RequestError) in try await agent.send(batch: [Echo("x")]) }?.code == .shutdown)
        stub.releaseAll()
        await stub.waitForRequests(2)
        await stub.waitForHeld(1)
        stub.releaseAll()
        await shutdown.value
        #expect(try await outcome.result.get() == "ab")
        #expect(outcome.count == 1)
    }

    @Test(arguments: [true, false]) func aShutdownEndsTheRestOnce(isInClosure: Bool) async {
        let stub = StubTransport(always: isInClosure ? .response() : .hold)
        let agent = NetworkAgent.with(stub)
        let (closure, inClosure) = AsyncStream<Void>.makeStream()
        let seen = OutcomeObserver()
        var member = Echo("a")
        member.observers = [seen]
        let chain = ChainRequest(BatchRequest([member, member]))
            .onValue { _ in
                inClosure.yield()
                try await Task.sleep(for: .seconds(3600))
            }
            .then { _ in Echo("b") }
        let outcome = KeptResult<String>()
        agent.start(chain, completion: outcome.take)
        let awaited = Task { await fault { () throws(RequestError) in try await agent.send(chain) } }
        if isInClosure {
            var entered = closure.makeAsyncIterator()
            await entered.next()
            await entered.next()
        } else {
            await stub.waitForHeld(4)
        }
        await agent.shutdown(grace: .zero)
        #expect(await awaited.value?.code == .shutdown)
        #expect(await outcome.error?.code == .shutdown)
        #expect(outcome.count == 1)
        #expect(!stub.paths.contains("/b"))
        if !isInClosure {
            #expect(seen.outcomes.map { $0.error?.code } == Array(repeating: .shutdown, count: 4))
        }
    }

    @Test func aClosureThatCannotBeEndedHoldsUpItsGroupOnly() async {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let gate = DispatchSemaphore(value: 0)
        let (closure, inClosure) = AsyncStream<Void>.makeStream()
        let outcome = KeptResult<String>()
        agent.start(
            ChainRequest(Echo("a")).onValue { _ in
                inClosure.yield()
                await withCheckedContinuation { continuation in
                    DispatchQueue(label: "slow").async {
                        gate.wait()
                        continuation.resume()
                    }
                }
            }.then { Echo($0) }, completion: outcome.take)
        for await _ in closure { break }
        await agent.shutdown(grace: .milliseconds(10))
        #expect(outcome.count == 0)
        gate.signal()
        #expect(await outcome.error?.code == .shutdown)
    }
}
