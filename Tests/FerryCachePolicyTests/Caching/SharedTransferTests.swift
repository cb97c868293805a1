import Dispatch
import FerrySynchronization
import FerryTesting
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// What a run with a shared transfer does not share: its priority, its proxy, its cancel, and its information about the
/// server.
@Suite(.timeLimit(.minutes(1))) struct SharedTransferTests {
    private let stub = StubTransport { _ in .hold }

    private func request(_ change: (inout Kept) -> Void = { _ in }) -> Kept {
        var request = Kept(cachePolicy: .none, coalesces: true)
        change(&request)
        return request
    }

    /// Completes cancels only when the test says so.
    private final class SlowCancels: Transporting {
        let stub: StubTransport
        private let kept = Mutex<[TransferID]>([])

        init(_ stub: StubTransport) { self.stub = stub }

        func cancel(_ id: TransferID) { kept.withLock { $0.append(id) } }
        func answerCancels() { for id in kept.withLock({ $0 }) { stub.cancel(id) } }

        func attach(_ receiver: any TransferReceiver) { stub.attach(receiver) }
        func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) {
            try stub.submit(request, id: id)
        }
        func resumeSending(_ id: TransferID) { stub.resumeSending(id) }
        func setRing(_ ring: PriorityRing, of id: TransferID) { stub.setRing(ring, of: id) }
        func shutdown() { stub.shutdown() }
        func nextExecutor() -> (any TaskExecutor)? { nil }
        var statistics: TransportStatistics { stub.statistics }
    }

    /// Runs tasks on a queue that can be suspended.
    private final class Executor: TaskExecutor {
        let queue = DispatchQueue(label: "test.executor")

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    @Test func aRunThatIsStartedAfterACancelOfAllSharesNothingWithThem() async throws {
        let transport = SlowCancels(stub)
        let agent = NetworkAgent(configuration: .test, transport: transport)
        let request = request()
        let executor = Executor()
        let first = Task(executorPreference: executor) {
            await code { () throws(RequestError) in try await agent.send(request) }
        }
        await stub.waitForHeld(1)
        // No job of the task runs after this: it waits for its result.
        await withCheckedContinuation { continuation in executor.queue.async { continuation.resume() } }
        executor.queue.suspend()
        agent.cancelAll()
        let outcome = Outcome<String>()
        agent.start(request, completion: outcome.take)
        let isSent = await eventually(within: .seconds(10)) { stub.requests.count == 2 }
        executor.queue.resume()
        transport.answerCancels()
        #expect(await first.value == .cancelled)
        if isSent { await stub.waitForHeld(1) }
        stub.releaseAll(with: .response(body: "new"))
        #expect(isSent)
        #expect(await outcome.code == nil)
        await agent.shutdown()
    }

    @Test func theTransferHasTheHighestPriorityOfThoseWhoWait() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let outcome = Outcome<String>()
        let alone = agent.start(request(), completion: outcome.take)
        await stub.waitForHeld(1)
        alone.setPriority(.high)
        #expect(await eventually(within: .seconds(10)) { stub.held.first?.priority == .high })
        let batch = agent.start(BatchRequest([request { $0.path = "/y" }]).priority(.high)) { _ in }
        await stub.waitForHeld(2)
        #expect(stub.requests[1].priority == .high)
        batch.setPriority(.low)
        #expect(await eventually(within: .seconds(10)) { stub.held.last?.priority == .low })
        stub.releaseAll()
        #expect(await outcome.code == nil)
        await agent.shutdown()
    }

    @Test func theTransferLosesThePriorityOfARunThatHasLeft() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let outcomes = [Outcome<String>(), Outcome<String>()]
        let important = agent.start(request(), completion: outcomes[0].take)
        await stub.waitForHeld(1)
        let other = agent.start(request(), completion: outcomes[1].take)
        #expect(await eventually(within: .seconds(10)) { agent.core.sharedTransfers.waiting == 2 })
        other.setPriority(.low)
        important.setPriority(.high)
        #expect(await eventually(within: .seconds(10)) { stub.held.first?.priority == .high })
        important.cancel()
        #expect(await outcomes[0].code == .cancelled)
        #expect(await eventually(within: .seconds(10)) { stub.held.first?.priority == .low })
        stub.releaseAll()
        #expect(await outcomes[1].code == nil)
        await agent.shutdown()
    }

    @Test func runsWithDifferentProxyRulesDoNotShare() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let proxies: [ProxyConfiguration] = [.none, .http("proxy", port: 3128).except("h")]
        let outcomes = proxies.map { proxy in
            var request = HTTPRequest(.get, "/x")
            (request.coalesces, request.proxy) = (true, proxy)
            let outcome = Outcome<Response>()
            agent.start(request, completion: outcome.take)
            return outcome
        }
        let isApart = await eventually(within: .seconds(10)) { stub.requests.count == 2 }
        await stub.waitForHeld(isApart ? 2 : 1)
        stub.releaseAll(with: .response(body: "a"))
        for outcome in outcomes { #expect(await outcome.code == nil) }
        #expect(isApart)
        await agent.shutdown()
    }

    @Test func aTransferThatDidNotLeaveTheQueueSaysNothingOfTheServer() async throws {
        let agent = NetworkAgent(configuration: .test, stub: stub)
        stub.suspend()
        let outcome = Outcome<String>()
        agent.start(request { $0.deadline = .milliseconds(20) }, completion: outcome.take)
        let error = await outcome.error
        #expect(error?.code == .timeout(.deadline) && error?.mayHaveBeenProcessed == false)
        #expect(agent.health(of: "http://h/") == .unknown)
        stub.resume()
        await agent.shutdown()
    }
}
