import FaultTable
import FerryTesting
import FerryTransport
import Synchronization
import Testing

@testable import Ferry

/// Row R73: the end of an agent with work in hand.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct ShutdownFaultTests {
    @Test("R73: what ends within the grace is answered, the rest is told of the shutdown")
    func grace() async throws {
        let server = try LoopbackServer()
        server.script(path: "/held", [.expectHead, .mark("held"), .keepOpen])
        server.script(path: "/soon", [.expectHead, .mark("held"), .wait("go"), .send(answer("soon")), .serve])
        let agent = NetworkAgent()
        let plays = Play.allCases + Play.allCases
        let runs = try plays.map { play in
            (
                soon: try FaultRun(Get(server.baseURL + "/soon"), play, agent),
                held: try FaultRun(Probe(path: server.baseURL + "/held?" + Canary.query), play, agent)
            )
        }
        try await server.waitForMark("held", count: 20)
        let began = ContinuousClock.now
        let shutdown = Task { await agent.shutdown(grace: .seconds(5)) }
        #expect(await eventually { agent.core.state.withLock { $0.isClosed } })
        #expect(await code { () throws(RequestError) in try await agent.send(Get(server.baseURL)) } == .shutdown)
        server.signal("go")
        await shutdown.value
        for (soon, held) in runs {
            #expect(try await soon.outcome.get().text == "soon")
            check(
                try #require(await held.outcome.error),
                ExpectedFault(code: .shutdown, phases: [.waitingHead], processed: true, attempts: 1, received: 0),
                url: server.baseURL + "/held?token=***")
            FaultNote.add(
                form: held.play.form.rawValue, outcome: "answered; `shutdown` in waitingHead", took: .now - began)
        }
        try await server.waitForOpenConnections(atMost: 0)
        let transport = agent.core.transport
        #expect(await eventually { transport.isAtRest }, "\(transport.statistics)")
        await agent.shutdown()
        for (soon, held) in runs {
            #expect(soon.callback.count == soon.expectedCallbacks && held.callback.count == held.expectedCallbacks)
        }
        #expect(await code { () throws(RequestError) in try await agent.send(Get(server.baseURL)) } == .shutdown)
    }
}
