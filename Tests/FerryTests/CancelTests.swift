import Dispatch
import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

@Suite struct CancelTests {
    @Test func cancelledTaskEndsItsRun() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let task = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForRequests(1)
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(stub.events == [.submitted(1), .cancelled(1)])
    }

    @Test func cancelBeforeStartNeverTouchesTheTransport() async {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let gate = AsyncStream<Void>.makeStream()
        let task = Task {
            for await _ in gate.stream { break }
            return await code { () throws(RequestError) in try await agent.send(Get()) }
        }
        task.cancel()
        gate.continuation.finish()
        #expect(await task.value == .cancelled)
        #expect(stub.requests.isEmpty)
    }

    @Test func cancelledClosureGetsOneCallback() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let outcome = Outcome<Response>()
        let task = agent.start(Get(), completion: outcome.take)
        task.cancel()
        task.cancel()
        #expect(task.state == .cancelled)
        #expect(await outcome.code == .cancelled)
        await agent.shutdown()
        #expect(outcome.count == 1)
        #expect(stub.events.filter { $0 == .cancelled(1) }.count == 1)
    }

    @Test func cancelAfterTheAnswerReplacesTheResult() async {
        let stub = StubTransport(always: .response())
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let queue = DispatchQueue(label: "test")
        let outcome = Outcome<Response>()
        queue.suspend()
        let task = agent.start(Get(), on: queue, completion: outcome.take)
        #expect(await eventually { task.state == .finishing })
        task.cancel()
        #expect(task.state == .cancelled)
        queue.resume()
        #expect(await outcome.code == .cancelled)
        await agent.shutdown()
        #expect(outcome.count == 1)
    }

    @Test func tagsAreCancelledTogether() async {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let outcomes = (0..<4).map { _ in Outcome<Response>() }
        for (index, outcome) in outcomes.enumerated() {
            agent.start(Get(tag: index < 2 ? "a" : "b"), completion: outcome.take)
        }
        let awaiting = Task { await code { () throws(RequestError) in try await agent.send(Get(tag: "a")) } }
        await stub.waitForRequests(5)
        agent.cancelAll(tagged: "a")
        #expect(await outcomes[0].code == .cancelled)
        #expect(await outcomes[1].code == .cancelled)
        #expect(await awaiting.value == .cancelled)
        #expect(outcomes[2].count == 0)
        agent.cancelAll()
        #expect(await outcomes[2].code == .cancelled)
        #expect(await outcomes[3].code == .cancelled)
    }

    @Test func racingCancelsGiveEveryRunOneResult() async {
        let stub = StubTransport(always: .response(body: "x"))
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let ended = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<1000 {
                group.addTask {
                    let run = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
                    if number % 3 > 0 { await Task.yield() }
                    run.cancel()
                    let ended = await run.value
                    return ended == nil || ended == .cancelled
                }
            }
            return await group.reduce(into: 0) { count, isGood in count += isGood ? 1 : 0 }
        }
        #expect(ended == 1000)
        await agent.shutdown()
    }

    @Test func racingCancelsOfClosuresGiveOneCallbackEach() async {
        let stub = StubTransport(always: .response(body: "x"))
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let outcomes = (0..<1000).map { _ in Outcome<Response>() }
        let tasks = outcomes.map { agent.start(Get(), completion: $0.take) }
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<8 {
                group.addTask { for index in stride(from: lane % 4, to: 1000, by: 4) { tasks[index].cancel() } }
            }
        }
        for outcome in outcomes {
            let code = await outcome.code
            #expect(code == nil || code == .cancelled)
        }
        await agent.shutdown()
        #expect(outcomes.allSatisfy { $0.count == 1 })
        for (task, outcome) in zip(tasks, outcomes) {
            let code = await outcome.code
            #expect(task.state == (code == nil ? .finished : .cancelled))
        }
    }
}
