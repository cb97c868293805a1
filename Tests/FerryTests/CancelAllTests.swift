import Dispatch
import Ferry
import FerrySynchronization
import FerryTesting
import FerryTransport
import Testing

@testable import FerryTestSupport

/// A request that reports when its processing starts, and can be made to wait there.
struct Halting: Request {
    let entered: Gate
    var gate: DispatchSemaphore?
    var path = "/halting"
    var tag: String?

    func completionPreprocessor(_ reply: Reply<Response>) {
        entered.open()
        gate?.wait()
    }
}

/// `cancelAll` finds every run whose result has not been delivered.
@Suite(.timeLimit(.minutes(2))) struct CancelAllTests {
    /// How a run gets its response.
    enum Course: CaseIterable {
        /// With one plain transfer.
        case plain
        /// After a retry.
        case retried
        /// From code of the application.
        case adapted
        /// From the cache.
        case cached
    }

    @Test("A run that was processed but not yet delivered ends cancelled", arguments: Course.allCases)
    func processed(course: Course) async throws {
        var configuration = NetworkConfiguration.test
        var answers = [StubTransport.Response.response()]
        switch course {
        case .plain: break
        case .retried:
            configuration.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero)
            answers = [.response(status: 503), .response()]
        case .adapted: configuration.adapters = [Adapt { _, _ in }]
        case .cached: break
        }
        let agent = NetworkAgent(configuration: configuration, stub: StubTransport(responses: answers))
        let queue = DispatchQueue(label: "test")
        queue.suspend()
        let outcomes = [Outcome<Response>(), Outcome<Response>()]
        for (outcome, tag) in zip(outcomes, ["a", "b"]) {
            let entered = Gate()
            let run = Halting(entered: entered, tag: tag)
            if course == .cached {
                agent.start(run, cache: .reload, on: queue, completion: outcome.take)
            } else {
                agent.start(run, on: queue, completion: outcome.take)
            }
            await entered.pass()
        }
        agent.cancelAll(tagged: "a")
        queue.resume()
        #expect(await outcomes[0].code == .cancelled)
        #expect(await outcomes[1].code == nil)
        await agent.shutdown()
        #expect(outcomes.map(\.count) == [1, 1])
    }

    @Test("A run whose response waits for its processing is not sent again", arguments: [nil, "mine"])
    func notSentAgain(tag: String?) async throws {
        var configuration = NetworkConfiguration.test
        configuration.retryPolicy = .exponential(maxAttempts: 3, baseDelay: .zero)
        let stub = StubTransport { $0.url.hasSuffix("/halting") ? .response() : .response(status: 503) }
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let (entered, gate) = (Gate(), DispatchSemaphore(value: 0))
        let (blocker, outcome) = (Outcome<Response>(), Outcome<Response>())
        agent.start(Halting(entered: entered, gate: gate, tag: "other"), completion: blocker.take)
        await entered.pass()
        let run = agent.start(Get("/x", tag: tag), completion: outcome.take)
        #expect(await eventually { run.state == .finishing })
        if let tag { agent.cancelAll(tagged: tag) } else { agent.cancelAll() }
        #expect(run.state == .cancelled)
        gate.signal()
        #expect(await outcome.code == .cancelled)
        #expect(await blocker.code == (tag == nil ? .cancelled : nil))
        #expect(stub.requests.count == 2)
        await agent.shutdown()
    }

    /// Runs its jobs on a queue that can be suspended.
    private final class Holdup: TaskExecutor {
        let queue = DispatchQueue(label: "test.executor")
        private let jobs = Mutex(0)
        var count: Int { jobs.withLock { $0 } }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            jobs.withLock { $0 += 1 }
            queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    @Test("A task that is about to continue does not", arguments: [(nil, true), ("mine", true), ("other", false)])
    func awaited(tag: String?, isMeant: Bool) async throws {
        var configuration = NetworkConfiguration.test
        configuration.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero)
        let stub = StubTransport { $0.number == 1 ? .hold : .response() }
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let executor = Holdup()
        let task = Task(executorPreference: executor) {
            await code { () throws(RequestError) in try await agent.send(Get(tag: "mine")) }
        }
        await stub.waitForHeld(1)
        // No job of the task runs after this: it waits for its result.
        await withCheckedContinuation { continuation in executor.queue.async { continuation.resume() } }
        executor.queue.suspend()
        let before = executor.count
        stub.releaseAll(with: .response(status: 503))
        #expect(await eventually { executor.count > before })
        if let tag { agent.cancelAll(tagged: tag) } else { agent.cancelAll() }
        executor.queue.resume()
        #expect(await task.value == (isMeant ? .cancelled : nil))
        #expect(stub.requests.count == (isMeant ? 1 : 2))
        await agent.shutdown()
    }

    /// A stub that answers the requests it holds when it gets the first cancel.
    private final class Interrupted: Transporting, TransferReceiver {
        let stub: StubTransport
        private let status: Int
        private let receiver = Mutex<(any TransferReceiver)?>(nil)
        private let handedOver = DispatchSemaphore(value: 0)
        private let cancels = Atomic<Int>(0)

        init(_ stub: StubTransport, status: Int) { (self.stub, self.status) = (stub, status) }

        func attach(_ receiver: any TransferReceiver) {
            self.receiver.withLock { $0 = receiver }
            stub.attach(self)
        }

        func transfersFinished(_ results: [TransferResult]) {
            receiver.withLock { $0 }?.transfersFinished(results)
            handedOver.signal()
        }

        func cancel(_ id: TransferID) {
            if cancels.add(1, ordering: .relaxed).newValue == 1 {
                for request in stub.held.dropFirst() {
                    stub.respond(to: request, with: .redirect(to: "/there", status: status))
                }
                handedOver.wait()
            }
            stub.cancel(id)
        }

        func submit(_ request: borrowing TransferRequest, id: TransferID) throws(TransferFailure) {
            try stub.submit(request, id: id)
        }

        func resumeSending(_ id: TransferID) { stub.resumeSending(id) }
        func setRing(_ ring: PriorityRing, of id: TransferID) { stub.setRing(ring, of: id) }
        func shutdown() {
            stub.shutdown()
            receiver.withLock { $0 = nil }
        }
        func nextExecutor() -> (any TaskExecutor)? { nil }
        var statistics: TransportStatistics { stub.statistics }
    }

    @Test(
        "A run whose response comes while the others are cancelled does not continue", arguments: [nil, "mine"],
        [503, 302])
    func answeredMeanwhile(tag: String?, status: Int) async throws {
        var configuration = NetworkConfiguration.test
        configuration.retryPolicy = .exponential(maxAttempts: 2, baseDelay: .zero)
        let stub = StubTransport { $0.number <= 2 ? .hold : .response() }
        let transport = Interrupted(stub, status: status)
        let agent = NetworkAgent(configuration: configuration, transport: transport)
        var tasks: [Task<RequestError.Code?, Never>] = []
        for count in 1...2 {
            tasks.append(Task { await code { () throws(RequestError) in try await agent.send(Get(tag: "mine")) } })
            await stub.waitForHeld(count)
        }
        if let tag { agent.cancelAll(tagged: tag) } else { agent.cancelAll() }
        for task in tasks { #expect(await task.value == .cancelled) }
        #expect(stub.requests.count == 2)
        // A cancel does not concern later runs.
        #expect(await code { () throws(RequestError) in try await agent.send(Get(tag: "mine")) } == nil)
        await agent.shutdown()
    }

    @Test("Delivered results stay unchanged, and nothing of them is retained")
    func delivered() async throws {
        let token = AsyncStream<Void>.makeStream()
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        for _ in 0..<2 {
            let outcome = Outcome<Response>()
            let task = agent.start(Get(), completion: outcome.take)
            #expect(await outcome.code == nil)
            agent.cancelAll()
            #expect(task.state == .finished && outcome.count == 1)
        }
        do {
            let held = Token(token.continuation)
            let outcome = Outcome<Response>()
            agent.start(Get()) { result in
                withExtendedLifetime(held) {}
                outcome.take(result)
            }
            #expect(await outcome.code == nil)
        }
        await token.stream.finished()
    }
}
