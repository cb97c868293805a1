import Dispatch
import FerrySynchronization
import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// The few tasks that carry a batch: none of its members waits for another.
@Suite(.timeLimit(.minutes(1))) struct BatchWorkersTests {
    @Test func redirectedMembersAreUnderWayAtOnce() async throws {
        let stub = StubTransport { request in
            request.url.contains("/there/") ? .hold : .redirect(to: "/there" + request.url.dropFirst("http://h".count))
        }
        let agent = NetworkAgent.with(stub)
        async let values = agent.send(batch: (0..<20).map { Count(number: $0) })
        await stub.waitForHeld(20)
        #expect(stub.requests.count == 40)
        for request in stub.held.reversed() { stub.respond(to: request, with: .response()) }
        #expect(try await values == Array(0..<20))
    }

    @Test func groupsInItAreUnderWayAtOnce() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        async let values = agent.send(
            batch: (0..<20).map { number in ChainRequest(Echo("first")).then { _ in Count(number: number) } })
        await stub.waitForHeld(20)
        stub.releaseAll()
        await stub.waitForRequests(40)
        await stub.waitForHeld(20)
        stub.releaseAll()
        #expect(try await values == Array(0..<20))
    }

    @Test func membersThatAskTheCacheAreUnderWayAtOnce() async throws {
        let stub = StubTransport(always: .hold)
        let bench = CacheBench()
        let agent = bench.agent(stub)
        async let values = agent.send(batch: (0..<20).map { Kept(path: "/\($0)") })
        await stub.waitForHeld(20)
        stub.releaseAll(with: .response(body: "kept"))
        #expect(try await values == Array(repeating: "kept", count: 20))
        await agent.shutdown()
    }

    @Test func theFirstFailureEndsWhateverIsUnderWay() async throws {
        let stub = StubTransport(["/moved": .redirect(to: "/there"), "/there": .hold, "/fails": .hold, "/plain": .hold])
        let agent = NetworkAgent.with(stub)
        async let failure = fault { () throws(RequestError) in
            try await agent.send(
                BatchRequest(mixed: [
                    Echo("moved"), ChainRequest(Echo("there")).then { _ in Echo("never") }, Echo("plain"),
                    Echo("fails"),
                ]))
        }
        await stub.waitForHeld(4)
        let fails = try #require(stub.held.first { $0.url.hasSuffix("/fails") })
        stub.respond(to: fails, with: .failure(.connectionReset))
        let error = await failure
        #expect(error?.code == .connectionReset)
        #expect(error?.failedIndex == 3)
        #expect(stub.held.isEmpty)
        #expect(!stub.paths.contains("/never"))
        await agent.shutdown()
    }

    @Test func aCancelEndsWhateverIsUnderWayAndBeginsNothing() async throws {
        let stub = StubTransport(["/moved": .redirect(to: "/there"), "/there": .hold, "/plain": .hold])
        let agent = NetworkAgent.with(stub)
        let task = Task {
            await fault { () throws(RequestError) in
                try await agent.send(
                    BatchRequest(
                        mixed: [Echo("moved"), ChainRequest(Echo("there")), Echo("plain"), Echo("later")], .collectAll,
                        atMost: 3))
            }
        }
        await stub.waitForHeld(3)
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        #expect(stub.held.isEmpty)
        #expect(!stub.paths.contains("/later"))
        await agent.shutdown()
    }

    @Test func aCancelledTaskBeginsNothing() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await fault { () throws(RequestError) in
                try await agent.send(batch: Echo("a"), ChainRequest(Echo("b")))
            }
        }
        #expect(await task.value?.code == .cancelled)
        #expect(stub.requests.isEmpty)
    }

    /// Blocks until two have arrived.
    private final class Meeting: Sendable {
        private let present = DispatchSemaphore(value: 0)
        private let count = Atomic<Int>(0)

        /// False if the other does not arrive.
        func wait() -> Bool {
            if count.add(1, ordering: .relaxed).newValue == 2 {
                present.signal()
                return true
            }
            return present.wait(timeout: .now() + 20) == .success
        }
    }

    private struct Meet: Request {
        typealias Value = Bool
        let path: String
        let meeting: Meeting
        func value(from response: Response) throws -> Bool { meeting.wait() }
    }

    @Test(.enabled(if: processorCount > 1)) func valuesAreMadeByAllProcessors() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        let meeting = Meeting()
        async let met = agent.send(batch: Meet(path: "/a", meeting: meeting), Meet(path: "/b", meeting: meeting))
        await stub.waitForHeld(2)
        stub.releaseAll()
        #expect(try await met == (true, true))
    }

    @Test func moreErrandsThanATaskGroupCarriesWell() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent.with(stub)
        async let values = agent.send(batch: (0..<700).map { ChainRequest(Count(number: $0)) })
        await stub.waitForHeld(700)
        for request in stub.held.shuffled() { stub.respond(to: request, with: .response()) }
        #expect(try await values == Array(0..<700))
    }

    @Test func groupsInOneAnotherNeedNoDeepStack() async throws {
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        var batch = BatchRequest(Echo("a"), Echo("b")).groupMember.map { $0 + $1 }
        for _ in 0..<300 {
            let inner = Group(groupMember: batch)
            batch = BatchRequest(inner, Echo("c")).groupMember.map { $0 + $1 }
        }
        let text = try await agent.send(Group(groupMember: batch))
        #expect(text == "ab" + String(repeating: "c", count: 300))
        var chain = ChainRequest(Echo("a")).tagged("0")
        for number in 1...300 { chain = ChainRequest(chain).then { Echo($0 + "b") }.tagged("\(number)") }
        #expect(try await agent.send(chain) == "a" + String(repeating: "b", count: 300))
    }

    private struct Group: RequestGroup { let groupMember: GroupMember<String> }

    private final class Executor: TaskExecutor {
        func enqueue(_ job: consuming ExecutorJob) {
            globalConcurrentExecutor.enqueue(ExecutorJob(UnownedJob(job)))
        }
    }

    @Test func groupsInItPreferTheExecutorOfItsTask() async throws {
        let executor = Executor()
        let agent = NetworkAgent.with(StubTransport(always: .response()))
        let prefers: @Sendable () -> Bool = {
            withUnsafeCurrentTask { $0?.unownedTaskExecutor } == executor.asUnownedTaskExecutor()
        }
        let task = Task(executorPreference: executor) {
            try await agent.send(
                batch: (0..<4).map { Count(number: $0) }.map { ChainRequest($0).map { _ in prefers() } })
        }
        #expect(try await task.value == [true, true, true, true])
        #expect(!prefers())
    }
}

@Suite struct BatchWorkQueueTests {
    private func index(_ work: BatchWorkQueue.Work?) -> Int? {
        if case .begin(let index) = work { index } else { nil }
    }

    private func isGiven(_ worker: BatchWorkQueue.Worker?) -> Bool { worker != nil }

    @Test func workIsDoneInTheOrderItCame() {
        var queue = BatchWorkQueue()
        for index in 0..<3 { #expect(!isGiven(queue.push(.begin(index)))) }
        #expect(index(queue.pop()) == 0)
        for index in 3..<5 { #expect(!isGiven(queue.push(.begin(index)))) }
        #expect((0..<5).map { _ in index(queue.pop()) } == [1, 2, 3, 4, nil])
    }

    @Test func aWorkerThatRestsIsGivenIt() async {
        let given = await withUnsafeContinuation { (worker: BatchWorkQueue.Worker) in
            var queue = BatchWorkQueue()
            queue.rest(worker)
            queue.push(.begin(7))?.resume(returning: .begin(7))
            #expect(index(queue.pop()) == nil, "it is given away")
        }
        #expect(index(given) == 7)
    }
}
