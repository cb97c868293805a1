import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs of the same request at the same time.
@Suite struct CoalesceTests {
    private let stub = StubTransport { _ in .hold }

    private func request(_ change: (inout Kept) -> Void = { _ in }) -> Kept {
        var request = Kept(cachePolicy: .none, coalesces: true)
        change(&request)
        return request
    }

    private func start(_ agent: NetworkAgent, _ request: Kept) -> (task: RequestTask<String>, outcome: Outcome<String>)
    {
        let outcome = Outcome<String>()
        return (agent.start(request, completion: outcome.take), outcome)
    }

    /// Waits until so many runs wait for shared transfers.
    private func settle(_ agent: NetworkAgent, _ count: Int) async {
        #expect(await eventually { agent.core.sharedTransfers.waiting == count })
    }

    @Test func aSharedTransferDoesNotCountBesideItsRun() async throws {
        var configuration = NetworkConfiguration.test
        (configuration.limits.maxConcurrentTransfers, configuration.limits.queueLength) = (2, 0)
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        for round in 1...3 {
            let runs = [start(agent, request()), start(agent, request { $0.path = "/y" })]
            await stub.waitForHeld(2)
            let third = start(agent, request { $0.path = "/z" })
            #expect(await fault { try await third.outcome.result.get() } == .queueFull)
            stub.releaseAll(with: .response(body: "\(round)"))
            for run in runs { #expect(try await run.outcome.result.get().value == "\(round)") }
        }
        await agent.shutdown()
    }

    @Test(arguments: [CachePolicy.timeToLive(.seconds(60)), .http()])
    func aRunAfterARemovalDoesNotShareAnEarlierTransfer(policy: CachePolicy) async throws {
        let bench = CacheBench()
        let agent = bench.agent(stub)
        let kept = request { $0.cachePolicy = policy }
        let early = start(agent, kept)
        await stub.waitForHeld(1)
        #expect(await agent.cache.remove(kept))
        let late = start(agent, kept)
        await stub.waitForHeld(2)
        stub.respond(to: try #require(stub.held.first), with: .response(body: "old"))
        #expect(try await early.outcome.result.get().value == "old")
        stub.releaseAll(with: .response(body: "new"))
        #expect(try await late.outcome.result.get().value == "new")
        await agent.shutdown()
    }

    @Test func identicalRunsShareOneTransfer() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let runs = (0..<10).map { _ in start(agent, request()) }
        let awaited = Task { try await agent.send(request()).value }
        await stub.waitForHeld(1)
        await settle(agent, 11)
        stub.releaseAll(with: .response(body: "shared"))
        for run in runs { #expect(try await run.outcome.result.get().value == "shared") }
        #expect(try await awaited.value == "shared")
        #expect(stub.requests.count == 1)
        #expect(runs.allSatisfy { $0.outcome.count == 1 })
        // Afterwards the next one is sent.
        let last = start(agent, request())
        await stub.waitForHeld(1)
        stub.releaseAll(with: .response(body: "next"))
        #expect(try await last.outcome.result.get().value == "next")
        await agent.shutdown()
    }

    /// Otherwise the key would turn two orders into one.
    @Test func anAutomaticIdempotencyKeyIsThatOfTheTransferAndOneOfTheApplicationsTellsThemApart() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        var order = HTTPRequest(.post, "/orders", body: .string("x"), as: String.self)
        (order.coalesces, order.idempotencyKey) = (true, .automatic)
        func start(_ key: IdempotencyKey) -> (task: RequestTask<String>, outcome: Outcome<String>) {
            let outcome = Outcome<String>()
            order.idempotencyKey = key
            return (agent.start(order, completion: outcome.take), outcome)
        }
        let runs = [start(.automatic), start(.automatic), start("a"), start("a"), start("b")]
        await stub.waitForHeld(3)
        await settle(agent, 5)
        stub.releaseAll(with: .response(body: "done"))
        for run in runs { #expect(try await run.outcome.result.get().value == "done") }
        let keys = stub.requests.map { $0.headers["Idempotency-Key"] ?? "" }
        #expect(keys.count == 3 && keys.contains("a") && keys.contains("b"))
        #expect(keys.filter { $0.utf8.count == 36 }.count == 1)
        await agent.shutdown()
    }

    @Test func itIsOffUnlessARequestSaysSo() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        // A request without this member.
        let outcomes = (0..<3).map { _ in Outcome<Response>() }
        for outcome in outcomes { agent.start(Get("/x"), completion: outcome.take) }
        let runs = (0..<3).map { _ in start(agent, request { $0.coalesces = false }) }
        await stub.waitForHeld(6)
        stub.releaseAll()
        for outcome in outcomes { _ = try await outcome.result.get() }
        for run in runs { _ = try await run.outcome.result.get() }
        #expect(stub.requests.count == 6)
        await agent.shutdown()
    }

    @Test func whatDiffersIsNotShared() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let requests = [
            request(), request { $0.authorization = .bearer("a") }, request { $0.authorization = .bearer("b") },
            request { $0.authorization = .digest("a", "1") }, request { $0.authorization = .digest("b", "1") },
            request { $0.headers = ["Cookie": "a"] }, request { $0.headers = ["X": "1"] },
            request { $0.path = "/y" }, request { $0.method = .put }, request { $0.arguments = ["a": 1] },
            request { ($0.method, $0.body) = (.post, .string("a")) },
            request { ($0.method, $0.body) = (.post, .string("b")) },
        ]
        let runs = requests.map { start(agent, $0) }
        await stub.waitForHeld(requests.count)
        stub.releaseAll()
        for run in runs { _ = try await run.outcome.result.get() }
        #expect(stub.requests.count == requests.count)
        await agent.shutdown()
    }

    @Test func oneCancelLeavesTheOthersAndTheLastEndsTheTransfer() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let runs = (0..<3).map { _ in start(agent, request()) }
        await stub.waitForHeld(1)
        await settle(agent, 3)
        // Also the one that started it.
        runs[0].task.cancel()
        #expect(await runs[0].outcome.code == .cancelled)
        runs[1].task.cancel()
        #expect(await runs[1].outcome.code == .cancelled)
        #expect(!stub.events.contains(.cancelled(1)))
        stub.releaseAll(with: .response(body: "still"))
        #expect(try await runs[2].outcome.result.get().value == "still")

        let others = (0..<2).map { _ in start(agent, request()) }
        await stub.waitForHeld(1)
        await settle(agent, 2)
        for run in others { run.task.cancel() }
        for run in others { #expect(await run.outcome.code == .cancelled) }
        #expect(await eventually { stub.events.contains(.cancelled(2)) })
        await agent.shutdown()
    }

    @Test(.timeLimit(.minutes(1))) func eachRunHasItsOwnDeadlineAndTheTransferHasNone() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let patient = start(agent, request { $0.deadline = .seconds(3600) })
        await stub.waitForHeld(1)
        // A run that comes later and has less time leaves earlier.
        let hasty = start(agent, request { $0.deadline = .milliseconds(500) })
        guard case .failure(let error) = await hasty.outcome.result else {
            Issue.record("it has waited")
            return
        }
        #expect(error.code == .timeout(.deadline) && error.mayHaveBeenProcessed)
        let endless = start(agent, request())
        await settle(agent, 2)
        #expect(stub.requests.map(\.timeouts.deadline) == [nil])
        stub.releaseAll(with: .response(body: "late"))
        for run in [patient, endless] { #expect(try await run.outcome.result.get().value == "late") }
        #expect(stub.requests.count == 1 && !stub.events.contains(.cancelled(1)))
        await agent.shutdown()
    }

    @Test(.timeLimit(.minutes(1))) func theDeadlineOfTheFirstIsNobodyElses() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let hasty = start(agent, request { $0.deadline = .seconds(2) })
        await stub.waitForHeld(1)
        let patient = start(agent, request())
        await settle(agent, 2)
        #expect(await hasty.outcome.code == .timeout(.deadline))
        stub.releaseAll(with: .response(body: "there"))
        #expect(try await patient.outcome.result.get().value == "there")
        await agent.shutdown()
    }

    @Test(.timeLimit(.minutes(1))) func theLastWhoseTimeIsOverEndsTheTransfer() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        #expect(await start(agent, request { $0.deadline = .milliseconds(300) }).outcome.code == .timeout(.deadline))
        #expect(await eventually { stub.events.contains(.cancelled(1)) })
        let batch = BatchRequest([request()]).deadline(.milliseconds(300))
        #expect(await fault { try await agent.send(batch) } == .timeout(.deadline))
        #expect(await eventually { stub.events.contains(.cancelled(2)) })
        await agent.shutdown()
    }

    @Test func runsOfOtherPoliciesDoNotShare() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let rule: @Sendable (RedirectHop) -> RedirectDecision = { _ in .refuse }
        let requests = [
            request(), request { $0.timeouts = Timeouts(total: .seconds(5)) },
            request { $0.timeouts = Timeouts(idle: .seconds(5)) }, request { $0.redirectPolicy = RedirectPolicy.none },
            request { $0.redirectPolicy = .follow(upTo: 1) }, request { $0.retryPolicy = .exponential(maxAttempts: 2) },
            request { $0.retryPolicy = .exponential(maxAttempts: 3) },
            // Nobody can tell whether two closures are the same.
            request { $0.redirectPolicy = .follow(decide: rule) },
            request { $0.redirectPolicy = .follow(decide: rule) },
        ]
        // But requests with the same one do.
        let others = [request { $0.redirectPolicy = .follow(upTo: 1) }]
        let runs = requests.map { start(agent, $0) }
        await stub.waitForHeld(requests.count)
        let more = others.map { start(agent, $0) }
        // The runs with closures wait for no others.
        await settle(agent, runs.count - 2 + more.count)
        stub.releaseAll()
        for run in runs + more { _ = try await run.outcome.result.get() }
        #expect(stub.requests.count == requests.count)
        await agent.shutdown()
    }

    @Test func aFailureIsEverybodys() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let runs = (0..<3).map { _ in start(agent, request()) }
        await stub.waitForHeld(1)
        await settle(agent, 3)
        stub.releaseAll(with: .failure(.connectionReset))
        for run in runs { #expect(await run.outcome.code == .connectionReset) }
        await agent.shutdown()
    }

    @Test func shutdownEndsAllOfThem() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let runs = (0..<3).map { _ in start(agent, request()) }
        await stub.waitForHeld(1)
        await settle(agent, 3)
        await agent.shutdown(grace: .zero)
        for run in runs { #expect(await run.outcome.code == .shutdown) }
        let late = start(agent, request())
        #expect(await late.outcome.code == .shutdown)
    }

    @Test func aSharedAnswerIsKeptByTheCacheToo() async throws {
        let bench = CacheBench()
        let agent = bench.agent(stub)
        let cached = request { $0.cachePolicy = .timeToLive(.seconds(60), write: .synchronous) }
        let runs = (0..<4).map { _ in start(agent, cached) }
        await stub.waitForHeld(1)
        await settle(agent, 4)
        stub.releaseAll(with: .response(body: "kept"))
        for run in runs { #expect(try await run.outcome.result.get().value == "kept") }
        #expect(try await agent.send(cached).isFromCache)
        #expect(stub.requests.count == 1)
        await agent.shutdown()
    }

    /// Its response is as old as the transfer, however late the run has joined. The run that has started the transfer
    /// need not store it.
    @Test(arguments: [CachePolicy.timeToLive(.seconds(60), write: .asynchronous), .none])
    func aRunThatJoinsATransferDoesNotReplaceTheResponseToALaterRequest(policyOfTheFirst: CachePolicy) async throws {
        let bench = CacheBench()
        let agent = bench.agent(stub)
        let kept = request { $0.cachePolicy = .timeToLive(.seconds(60), write: .asynchronous) }
        var (beginning, other, joining) = (kept, kept, kept)
        beginning.cachePolicy = policyOfTheFirst
        other.coalesces = false
        joining.cacheMode = .reload
        let first = start(agent, beginning)
        await stub.waitForHeld(1)
        let alone = start(agent, other)
        await stub.waitForHeld(2)
        stub.respond(to: try #require(stub.held.last), with: .response(body: "new"))
        #expect(try await alone.outcome.result.get().value == "new")
        let late = start(agent, joining)
        await settle(agent, 2)
        stub.releaseAll(with: .response(body: "old"))
        for run in [first, late] { #expect(try await run.outcome.result.get().value == "old") }
        #expect(try await agent.send(kept, cache: .cacheOnly).value == "new")
        #expect(stub.requests.count == 2)
        await agent.shutdown()
    }
}

extension StubTransport {
    /// Responds to all requests until `work` is done.
    func answersAll(_ body: String, until work: () async -> Void) async {
        let answering = Task {
            while !Task.isCancelled {
                releaseAll(with: .response(body: body))
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
        await work()
        answering.cancel()
    }
}
