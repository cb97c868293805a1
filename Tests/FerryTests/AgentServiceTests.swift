import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// An agent as a service: `run()`.
@Suite(.timeLimit(.minutes(1))) struct AgentServiceTests {
    @Test func cancellingTheTaskShutsTheAgentDownGracefully() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let service = Task { try await agent.run(grace: .seconds(3600)) }
        let run = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForHeld(1)
        service.cancel()
        #expect(await eventually { agent.core.isClosed })
        // A running request gets its grace.
        stub.releaseAll()
        #expect(await run.value == nil)
        try await service.value
        #expect(stub.events.last == .shutdown)
    }

    @Test func itReturnsWhenSomebodyElseShutsTheAgentDown() async throws {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        let service = Task { try await agent.run() }
        await agent.shutdown()
        try await service.value
        // It returns at once for an agent that is shut down.
        try await agent.run()
    }

    @Test func itDoesNotShortenTheGraceOfSomebodyElse() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let service = Task { try await agent.run(grace: .zero) }
        let run = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForHeld(1)
        let shutdown = Task { await agent.shutdown(grace: .seconds(3600)) }
        #expect(await eventually { agent.core.isClosed })
        // Time for a grace of zero to end.
        #expect(await !eventually(within: .milliseconds(50)) { stub.events.contains(.shutdown) })
        stub.releaseAll()
        #expect(await run.value == nil)
        await shutdown.value
        try await service.value
    }

    @Test func aCancelBeginsItsGraceBehindTheShutdownOfSomebodyElse() async throws {
        let stub = StubTransport(always: .hold)
        let agent = NetworkAgent(configuration: .test, stub: stub)
        let service = Task { try await agent.run(grace: .zero) }
        let run = Task { await code { () throws(RequestError) in try await agent.send(Get()) } }
        await stub.waitForHeld(1)
        let shutdown = Task { await agent.shutdown(grace: .seconds(3600)) }
        #expect(await eventually { agent.core.isClosed })
        service.cancel()
        #expect(await run.value == .shutdown)
        try await service.value
        await shutdown.value
    }

    @Test func aTaskThatIsCancelledBeforeItRunsShutsDownToo() async throws {
        let agent = NetworkAgent(configuration: .test, stub: StubTransport(always: .response()))
        let service = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await agent.run()
        }
        try await service.value
        #expect(agent.core.isClosed)
    }
}
