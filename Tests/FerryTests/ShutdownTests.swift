import Dispatch
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct ShutdownTests {
    @Test func drainsWhatRuns() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let outcomes = (0..<20).map { _ in Outcome<Response>() }
        for outcome in outcomes { agent.start(Get(), completion: outcome.take) }
        let awaited = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForHeld(21)
        let shutdown = await begun { await agent.shutdown(grace: .seconds(3600)) }
        #expect(agent.core.state.withLock { $0.isClosed })
        #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == .shutdown)
        stub.releaseAll()
        await shutdown.value
        #expect(outcomes.allSatisfy { $0.count == 1 })
        for outcome in outcomes { #expect(await outcome.code == nil) }
        #expect(await awaited.value == nil)
        #expect(stub.events.last == .shutdown)
    }

    @Test func endsTheRestWhenTheGraceIsOver() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let outcome = Outcome<Response>()
        agent.start(Get(), completion: outcome.take)
        let awaited = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForRequests(2)
        await agent.shutdown(grace: .milliseconds(10))
        #expect(await awaited.value == .shutdown)
        #expect(await outcome.code == .shutdown)
    }

    @Test(.timeLimit(.minutes(2))) func codeThatBlocksDoesNotHoldUpTheEndOfTheGrace() async {
        let stub = StubTransport { $0.url.hasSuffix("/halting") ? .response() : .hold }
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let (entered, gate) = (Gate(), DispatchSemaphore(value: 0))
        agent.start(Halting(entered: entered, gate: gate)) { _ in }
        await entered.pass()
        let awaited = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForHeld(1)
        let shutdown = Task { await agent.shutdown(grace: .milliseconds(10)) }
        #expect(await eventually(within: .seconds(20)) { stub.events.contains(.shutdown) })
        gate.signal()
        #expect(await awaited.value == .shutdown)
        await shutdown.value
    }

    @Test func graceOfZeroEndsAtOnce() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let awaited = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForRequests(1)
        await agent.shutdown(grace: .zero)
        #expect(await awaited.value == .shutdown)
    }

    @Test func isIdempotentAlsoAtOnce() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let awaited = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForRequests(1)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<20 { group.addTask { await agent.shutdown(grace: .milliseconds(number)) } }
        }
        await agent.shutdown()
        #expect(await awaited.value == .shutdown)
        #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == .shutdown)
        let outcome = Outcome<Response>()
        agent.start(Get(), completion: outcome.take)
        #expect(await outcome.code == .shutdown)
        #expect(stub.events.filter { $0 == .shutdown }.count == 1)
    }

    @Test func cancellingTheWaitEndsItsPatience() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let awaited = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForRequests(1)
        let shutdown = Task { await agent.shutdown(grace: .seconds(3600)) }
        shutdown.cancel()
        await shutdown.value
        #expect(await awaited.value == .shutdown)
    }

    @Test func waitsForCallbacks() async {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        let queue = DispatchQueue(label: "test")
        let calls = Mutex(0)
        for _ in 0..<100 { agent.start(Get(), on: queue) { _ in calls.withLock { $0 += 1 } } }
        await agent.shutdown()
        #expect(calls.withLock { $0 } == 100)
    }

    @Test func blockedCallbacksDoNotHoldItUpForEver() async throws {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        let queue = DispatchQueue(label: "test")
        queue.suspend()
        let outcome = Outcome<Response>()
        agent.start(Get(), on: queue, completion: outcome.take)
        await agent.shutdown(grace: .milliseconds(10))
        #expect(outcome.count == 0)
        // Nor a service that waits for this shutdown, or begins later.
        try await agent.run()
        queue.resume()
        _ = await outcome.result
    }

    /// A member that shares its transfer waits for its callback in a task of its own.
    @Test func blockedCallbacksOfAGroupDoNotHoldItUpForEver() async throws {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let queue = DispatchQueue(label: "test")
        queue.suspend()
        var request = HTTPRequest(.get, "/x")
        request.coalesces = true
        let outcome = KeptResult<[Response]>()
        agent.start(BatchRequest([request, request]), on: queue, completion: outcome.take)
        await stub.waitForRequests(1)
        let service = Task { try await agent.run() }
        await agent.shutdown(grace: .milliseconds(10))
        try await service.value
        #expect(outcome.count == 0)
        queue.resume()
        _ = await outcome.result
    }

    private struct Hooked: Request {
        let entered = Gate()
        let gate = DispatchSemaphore(value: 0)
        var cachePolicy = CachePolicy.none
        /// Whether the first of its hooks blocks, and not the last.
        var processes = false
        var coalesces: Bool { true }
        var path = "/x"
        func completionPreprocessor(_ reply: Reply<Response>) { if processes { block() } }
        func willDeliver(_ result: Result<Reply<Response>, RequestError>) { if !processes { block() } }

        private func block() {
            entered.open()
            gate.wait()
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [false, true], [false, true])
    func hooksThatBlockDoNotHoldItUpForEver(isInGroup: Bool, processes: Bool) async throws {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        var hooked = Hooked()
        hooked.processes = processes
        let request = hooked
        let awaited = Task {
            if isInGroup { return try await agent.send(BatchRequest([request])) }
            return try await [agent.send(request).value]
        }
        await request.entered.pass()
        await agent.shutdown(grace: .milliseconds(10))
        request.gate.signal()
        // The group was ended before its member.
        let result = await awaited.result
        #expect(isInGroup || (try? result.get().count) == 1)
    }

    /// On an actor a hit does not take the shortest way.
    @Test(.timeLimit(.minutes(1)), arguments: [false, true]) @MainActor
    func hooksOfAHitThatBlockDoNotHoldItUpForEver(processes: Bool) async throws {
        let bench = CacheBench()
        let agent = bench.agent(StubTransport(always: .response()))
        _ = try await agent.send(Kept())
        var request = Hooked()
        request.cachePolicy = Kept().cachePolicy
        request.processes = processes
        let awaited = Task { [request] in try await agent.send(request) }
        await request.entered.pass()
        await agent.shutdown(grace: .milliseconds(10))
        request.gate.signal()
        #expect(try await awaited.value.isFromCache)
    }

    @Test func agentsMayGoWithRunsInFlight() async throws {
        let stub = StubTransport(always: .hold)
        var agent: NetworkAgent? = NetworkAgent(configuration: .test, stub: stub)
        weak let gone = agent
        let outcome = Outcome<Response>()
        let task = agent?.start(Get(), completion: outcome.take)
        await stub.waitForRequests(1)
        agent = nil
        #expect(gone == nil)
        await stub.waitForHeld(1)
        stub.releaseAll(with: .response(body: "late"))
        #expect(try await outcome.result.get().text == "late")
        #expect(task?.state == .finished)
    }

    @Test func nothingIsLeftOfAnAgent() async throws {
        weak var gone: StubTransport?
        let task: RequestTask<Response>?
        let (end, whenGone) = AsyncStream<Void>.makeStream()
        var token: Token? = Token(whenGone)
        do {
            let stub = StubTransport { [token] _ in
                _ = token
                return .response()
            }
            gone = stub
            let agent = NetworkAgent(configuration: .test, stub: stub)
            try await agent.send(Get())
            let outcome = Outcome<Response>()
            task = agent.start(Get(), completion: outcome.take)
            #expect(await outcome.code == nil)
            await agent.shutdown()
        }
        token = nil
        // The stub's own turn may not have returned yet.
        await end.finished()
        #expect(gone == nil)
        #expect(task?.state == .finished)
    }

    @Test func scopedAgentsAreShutDown() async {
        let kept = Mutex<NetworkAgent?>(nil)
        let value = await withNetworkAgent(configuration: .test) { agent in
            kept.withLock { $0 = agent }
            return 7
        }
        #expect(value == 7)
        let agent = kept.withLock { $0 }!
        #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == .shutdown)
        await #expect(throws: Oops.self) { try await withNetworkAgent { _ throws(Oops) -> Int in throw Oops() } }
    }

    /// A run that adapters take part in goes through the queue that another run's hook blocks.
    @Test(.timeLimit(.minutes(1))) func aRunBehindABlockedQueueDoesNotHoldItUpForEver() async {
        var configuration = NetworkConfiguration.test
        configuration.adapters = [Adapt { _, _ in }]
        let agent = NetworkAgent(configuration: configuration, stub: StubTransport(always: .response()))
        let (entered, gate) = (Gate(), DispatchSemaphore(value: 0))
        agent.start(Halting(entered: entered, gate: gate)) { _ in }
        await entered.pass()
        let outcome = Outcome<Response>()
        agent.start(Get(), completion: outcome.take)
        await agent.shutdown(grace: .milliseconds(10))
        #expect(outcome.count == 0)
        gate.signal()
        #expect(await outcome.code == .shutdown)
    }

    /// The shutdown ends the second member of a started batch, whose result then waits for the queue.
    @Test(.timeLimit(.minutes(1))) func aMemberBehindABlockedQueueDoesNotHoldItUpForEver() async {
        let stub = StubTransport { $0.url.hasSuffix("/held") ? .hold : .response() }
        let agent = NetworkAgent(configuration: .test, stub: stub)
        var hooked = Hooked()
        hooked.processes = true
        let outcome = KeptResult<Void>()
        var held = Hooked()
        held.path = "/held"
        agent.start(BatchRequest([hooked, held])) { outcome.take($0.map { _ in () }) }
        await hooked.entered.pass()
        await stub.waitForHeld(1)
        await agent.shutdown(grace: .milliseconds(10))
        hooked.gate.signal()
        held.gate.signal()
        let result = await outcome.result
        #expect(throws: RequestError.self) { try result.get() }
    }

    /// The closure for the stored response, and what creates its value.
    @Test(.timeLimit(.minutes(1))) func aClosureForTheStoredResponseDoesNotHoldItUpForEver() async throws {
        let bench = CacheBench()
        let agent = bench.agent(StubTransport(always: .response()))
        _ = try await agent.send(Kept())
        let (entered, gate) = (Gate(), DispatchSemaphore(value: 0))
        let awaited = Task {
            try await agent.send(
                Kept(),
                cached: { _ in
                    entered.open()
                    gate.wait()
                })
        }
        await entered.pass()
        await agent.shutdown(grace: .milliseconds(10))
        gate.signal()
        let code = await fault { try await awaited.value }
        #expect(code == .shutdown)
    }
}
