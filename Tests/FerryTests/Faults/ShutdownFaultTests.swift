import FerryTesting
import FerryTransport
import Synchronization
import Testing

@testable import Ferry

/// Row R73: the end of an agent with work in hand.
@Suite(.timeLimit(.minutes(2))) struct ShutdownFaultTests {
    @Test("R73: what ends within the grace is answered, the rest is told of the shutdown")
    func grace() async throws {
        let server = try LoopbackServer()
        server.script(path: "/held", [.expectHead, .mark("held"), .keepOpen])
        server.script(path: "/soon", [.expectHead, .mark("held"), .wait("go"), .send(answer("soon")), .serve])
        let agent = NetworkAgent()
        let outcomes = (0..<10).map { _ in (soon: Outcome<Response>(), held: Outcome<Response>()) }
        for (soon, held) in outcomes {
            agent.start(Get(server.baseURL + "/soon"), completion: soon.take)
            agent.start(Probe(path: server.baseURL + "/held?" + Canary.query), completion: held.take)
        }
        try await server.waitForMark("held", count: 20)
        let shutdown = Task { await agent.shutdown(grace: .seconds(1)) }
        #expect(await eventually { agent.core.state.withLock { $0.isClosed } })
        #expect(await code { () throws(RequestError) in try await agent.send(Get(server.baseURL)) } == .shutdown)
        server.signal("go")
        await shutdown.value
        for (soon, held) in outcomes {
            #expect(try await soon.result.get().text == "soon")
            guard case .failure(let error) = await held.result else {
                Issue.record("it was answered")
                continue
            }
            check(
                error, ExpectedFault(code: .shutdown, phases: [.waitingHead], processed: true, attempts: 1, received: 0),
                url: server.baseURL + "/held?token=***")
        }
        try await server.waitForOpenConnections(atMost: 0)
        let transport = agent.core.transport
        #expect(await eventually { transport.isAtRest }, "\(transport.statistics)")
        await agent.shutdown()
        #expect(outcomes.allSatisfy { $0.soon.count == 1 && $0.held.count == 1 })
        #expect(await code { () throws(RequestError) in try await agent.send(Get(server.baseURL)) } == .shutdown)
    }
}
