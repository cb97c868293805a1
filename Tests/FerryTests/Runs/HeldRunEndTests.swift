import Dispatch
import FerrySynchronization
import FerryTesting
import FoundationEssentials
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Runs that are ended while code of the application's holds them up.
@Suite struct HeldRunEndTests {
    /// An adapter, an interceptor or a provider that does not return until the test allows it, even if cancelled.
    private final class Stubborn: Sendable {
        private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))
        let entered = Logbook()
        let isCancelled = Mutex(false)

        func hold() async {
            await withTaskCancellationHandler {
                // From here on a cancel is reported at once.
                entered.note("in")
                await withCheckedContinuation { continuation in
                    let isOpen = state.withLock { state in
                        if !state.isOpen { state.waiting.append(continuation) }
                        return state.isOpen
                    }
                    if isOpen { continuation.resume() }
                }
            } onCancel: {
                isCancelled.withLock { $0 = true }
            }
        }

        func open() {
            let waiting = state.withLock { state in
                state.isOpen = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }
    }

    /// Where the run is held up.
    enum Place: CaseIterable, Sendable { case adapter, interceptor, second }

    private let stubborn = Stubborn()

    private func agent(_ place: Place = .adapter, stub: StubTransport? = nil) -> NetworkAgent {
        var configuration = NetworkConfiguration.test
        let stubborn = stubborn
        switch place {
        case .adapter: configuration.adapters = [Adapt { _, _ in await stubborn.hold() }]
        case .interceptor:
            configuration.interceptors = [
                Intercept { _, _ in
                    await stubborn.hold()
                    return nil
                }
            ]
        case .second:
            // After a redirect, which starts as a plain transfer.
            configuration.interceptors = [
                Intercept { request, _ in
                    if request.url.hasSuffix("/second") { await stubborn.hold() }
                    return nil
                }
            ]
        }
        let stub = stub ?? StubTransport(responses: place == .second ? [.redirect(to: "/second")] : [.response()])
        return NetworkAgent(configuration: configuration, stub: stub)
    }

    @Test(arguments: Place.allCases) func aCancelledTaskDoesNotWaitForIt(_ place: Place) async {
        let agent = agent(place)
        let task = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stubborn.entered.waitForEntries(1)
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(stubborn.isCancelled.withLock { $0 }, "it is told")
        await agent.shutdown(grace: .seconds(3600))
        stubborn.open()
    }

    @Test(arguments: Place.allCases) func aCancelledRunDoesNotWaitForIt(_ place: Place) async {
        let agent = agent(place)
        let outcome = Outcome<Response>()
        let task = agent.start(Get(), completion: outcome.take)
        await stubborn.entered.waitForEntries(1)
        task.cancel()
        task.cancel()
        #expect(task.state == .cancelled)
        #expect(await outcome.code == .cancelled)
        await agent.shutdown(grace: .seconds(3600))
        stubborn.open()
        #expect(outcome.count == 1 && task.state == .cancelled)
    }

    @Test(arguments: Place.allCases) func cancelAllReachesIt(_ place: Place) async {
        let agent = agent(place)
        let outcome = Outcome<Response>()
        agent.start(Get(tag: "t"), completion: outcome.take)
        let awaiting = Task { await code { () throws(RequestError) in try await agent.send(Get(tag: "t")) } }
        await stubborn.entered.waitForEntries(2)
        agent.cancelAll(tagged: "other")
        #expect(outcome.count == 0)
        agent.cancelAll(tagged: "t")
        #expect(await outcome.code == .cancelled)
        #expect(await awaiting.value == .cancelled)
        stubborn.open()
    }

    /// Between its start and the first step of its task a run is in progress as well.
    @Test func cancelAllReachesWhatHasJustBeenStarted() async {
        let agent = agent()
        let outcomes = (0..<200).map { _ in Outcome<Response>() }
        for outcome in outcomes { agent.start(Get(), completion: outcome.take) }
        agent.cancelAll()
        for outcome in outcomes { #expect(await outcome.code == .cancelled) }
        await agent.shutdown(grace: .seconds(3600))
        #expect(outcomes.allSatisfy { $0.count == 1 })
        stubborn.open()
    }

    @Test func aRunCancelledAtOnceNeverAsksIt() async {
        let stub = StubTransport(always: .response())
        let agent = agent(stub: stub)
        agent.core.processingQueue.suspend()
        let outcome = Outcome<Response>()
        let task = agent.start(Get(), completion: outcome.take)
        #expect(task.state == .waiting)
        task.cancel()
        agent.core.processingQueue.resume()
        #expect(await outcome.code == .cancelled)
        await agent.shutdown(grace: .seconds(3600))
        #expect(stubborn.entered.entries.isEmpty && stub.requests.isEmpty)
    }

    @Test(arguments: Place.allCases) func theEndOfTheGraceEndsIt(_ place: Place) async {
        let agent = agent(place)
        let outcome = Outcome<Response>()
        let task = agent.start(Get(), completion: outcome.take)
        let awaiting = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stubborn.entered.waitForEntries(2)
        await agent.shutdown(grace: .milliseconds(10))
        #expect(await awaiting.value == .shutdown)
        #expect(await outcome.code == .shutdown)
        #expect(task.state == .failed)
        stubborn.open()
    }

    @Test(arguments: Place.allCases) func shutdownWaitsForItWithinTheGrace(_ place: Place) async {
        let stub = StubTransport {
            $0.url.hasSuffix("/second") || place != .second ? .response() : .redirect(to: "/second")
        }
        let agent = agent(place, stub: stub)
        let outcome = Outcome<Response>()
        agent.start(Get(), completion: outcome.take)
        let awaiting = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stubborn.entered.waitForEntries(2)
        let shutdown = await begun { await agent.shutdown(grace: .seconds(3600)) }
        #expect(agent.core.state.withLock { $0.isClosed })
        #expect(await code { () throws(RequestError) in try await agent.send(Get()) } == .shutdown)
        stubborn.open()
        await shutdown.value
        #expect(outcome.count == 1)
        #expect(await outcome.code == nil)
        #expect(await awaiting.value == nil)
    }

    /// A run that was accepted before the shutdown is waited for, even if its task has not started.
    @Test func shutdownWaitsForWhatHasJustBeenStarted() async {
        stubborn.open()
        let agent = agent()
        let outcomes = (0..<100).map { _ in Outcome<Response>() }
        for outcome in outcomes { agent.start(Get(), completion: outcome.take) }
        await agent.shutdown(grace: .seconds(3600))
        #expect(outcomes.allSatisfy { $0.count == 1 })
        for outcome in outcomes { #expect(await outcome.code == nil) }
    }

    @Test(arguments: Place.allCases) func theDeadlineHoldsForItToo(_ place: Place) async {
        let agent = agent(place)
        do throws(RequestError) {
            try await agent.send(Full(deadline: .milliseconds(500)))
            Issue.record("it came through")
        } catch {
            #expect(error.code == .timeout(.deadline))
            #expect(error.attempts == (place == .second ? 1 : 0))
            #expect(error.mayHaveBeenProcessed == (place == .second))
        }
        await agent.shutdown(grace: .seconds(3600))
        stubborn.open()
    }

    @Test func aPauseBeforeARetryIsBrokenOff() async {
        var configuration = NetworkConfiguration.test
        configuration.retryPolicy = .exponential(
            maxAttempts: 3, baseDelay: .seconds(3600), maxDelay: .seconds(3600), jitter: .none)
        let stub = StubTransport(always: .response(status: 503))
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let outcome = Outcome<Response>()
        let task = agent.start(Get(), completion: outcome.take)
        let awaiting = Task { () -> RequestError? in
            do throws(RequestError) { try await agent.send(Get()) } catch { return error }
            return nil
        }
        await stub.waitForRequests(2)
        #expect(await eventually { agent.core.state.withLock { $0.controls.count } >= 2 })
        task.cancel()
        #expect(await outcome.code == .cancelled)
        awaiting.cancel()
        let error = await awaiting.value
        #expect(error?.code == .cancelled)
        #expect(error?.attempts == 1 && error?.mayHaveBeenProcessed == true, "it was sent once")
        await agent.shutdown(grace: .seconds(3600))
        #expect(stub.requests.count == 2)
    }

    @Test func aTransferOnTheWayIsCancelled() async {
        let stub = StubTransport(responses: [.redirect(to: "/second"), .hold])
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let task = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForHeld(1)
        task.cancel()
        #expect(await task.value == .cancelled)
        #expect(stub.events.last == .cancelled(2))
        #expect(agent.core.state.withLock { $0.controls.isEmpty && $0.table.count == 0 && $0.resting == 0 })
    }

    @Test func racingEndsGiveEveryRunOneResult() async {
        var configuration = NetworkConfiguration.test
        configuration.adapters = [Adapt { _, _ in await Task.yield() }]
        let stub = StubTransport { $0.url.hasSuffix("/y") ? .response() : .redirect(to: "/y") }
        let agent = NetworkAgent(configuration: configuration, stub: stub)
        let outcomes = (0..<500).map { _ in Outcome<Response>() }
        let tasks = outcomes.map { agent.start(Get(), completion: $0.take) }
        let awaited = (0..<500).map { number in
            Task {
                if number % 3 == 0 { await Task.yield() }
                return await code { () throws(RequestError) in try await agent.send(Get()) }
            }
        }
        for index in 0..<500 {
            if index % 2 == 0 { tasks[index].cancel() }
            if index % 3 == 0 { awaited[index].cancel() }
            if index == 250 { agent.cancelAll() }
        }
        for task in awaited {
            let code = await task.value
            #expect(code == nil || code == .cancelled)
        }
        for (task, outcome) in zip(tasks, outcomes) {
            let code = await outcome.code
            #expect(code == nil || code == .cancelled)
            _ = task
        }
        await agent.shutdown()
        #expect(outcomes.allSatisfy { $0.count == 1 })
        #expect(agent.core.state.withLock { $0.controls.isEmpty && $0.table.count == 0 && $0.resting == 0 })
    }
}
