import FaultTable
import FerrySynchronization
import FerryTesting
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Row R73: shutting down an agent with running requests.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct ShutdownFaultTests {
    @Test("R73: runs that end within the grace get their result, the rest are told of the shutdown")
    func grace() async throws {
        let server = try LoopbackServer()
        server.script(path: "/held", [.expectHead, .mark("held"), .keepOpen])
        server.script(path: "/soon", [.expectHead, .mark("held"), .wait("go"), .send(answer("soon")), .serve])
        let agent = NetworkAgent()
        let plays = Play.allCases + Play.allCases
        let runs = try plays.map { play in
            (
                soon: try FaultRun(Get(server.baseURL + "/soon"), play, agent),
                held: try FaultRun(.probe(server.baseURL + "/held?" + Canary.query), play, agent)
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
                form: held.play.form.rawValue, outcome: "`shutdown` in waitingHead; response", took: .now - began)
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

    /// Not a case of the table: it is about time. Only the end of the grace ends the held run.
    @Test("A grace of a second is waited for, and no longer")
    func graceOfASecond() async throws {
        MachinePauses.beginWatch()
        var times: [Duration] = []
        for _ in 0..<3 {
            let server = try LoopbackServer()
            server.script(path: "/held", [.expectHead, .mark("held"), .keepOpen])
            let agent = NetworkAgent()
            let plays = (0..<4).flatMap { _ in Play.allCases }
            let runs = try plays.map { try FaultRun(Get(server.baseURL + "/held"), $0, agent) }
            try await server.waitForMark("held", count: 20)
            let began = ContinuousClock.now
            await agent.shutdown(grace: .seconds(1))
            let ended = ContinuousClock.now
            times.append(ended - began - MachinePauses.total(between: began, and: ended))
            #expect(ended - began >= .seconds(1))
            for run in runs { #expect(await run.outcome.error?.code == .shutdown) }
            try await server.waitForOpenConnections(atMost: 0)
            #expect(runs.allSatisfy { $0.callback.count == $0.expectedCallbacks })
        }
        #expect(times.sorted()[1] < .milliseconds(1700), "\(times)")
    }

    @Test("Without running requests the grace is not waited for")
    func graceWithoutNeed() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent()
        #expect(try await agent.send(Get(server.baseURL + "/hello")).text == "Hello, ferry")
        // It would be longer than the test may take.
        await agent.shutdown(grace: .seconds(3600))
        try await server.waitForOpenConnections(atMost: 0)
    }
}
