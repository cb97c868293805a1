import CResolver
import FaultTable
import FerryTesting
import FerryTransport
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Row R71: a run cancelled in each of its phases.
@Suite(.timeLimit(.minutes(2)), .faultTable) struct CancelFaultTests {
    /// Starts a run in every form and way, cancels it when `isThere` returns, and checks the outcome.
    private func expectCancelled(
        _ script: LoopbackScript, _ phases: RequestPhase..., processed: Bool, attempts: Int,
        sourceLocation: SourceLocation = #_sourceLocation, setUp: (inout FaultSetup) throws -> Void = { _ in },
        when isThere: (LoopbackServer, NetworkAgent) async throws -> Void
    ) async throws {
        var setup = FaultSetup()
        try setUp(&setup)
        // One slot only: the next request shows that it was freed.
        setup.configuration.limits.maxConcurrentTransfers = 1
        setup.ends(within: .milliseconds(50))
        let expected = ExpectedFault(code: .cancelled, phases: Set(phases), processed: processed, attempts: attempts)
        try await forEachPlay(script, setup, uses: 1, sourceLocation) { run, stage, agent in
            try await isThere(stage.server, agent)
            run.callback.begin()
            run.cancel()
            run.cancel()
        } check: { _, outcome, stage in
            check(
                try #require(outcome.error, sourceLocation: sourceLocation), expected, url: stage.shownURL,
                sourceLocation)
            return expected.summary
        }
    }

    @Test("R71: before the start: nothing reaches the server")
    func beforeStart() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return await fault { () throws(RequestError) in try await agent.send(.probe(server.baseURL + "/hello")) }
        }
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        await agent.shutdown()
        #expect(server.connectionCount == 0)
    }

    @Test("R71: in the queue")
    func queued() async throws {
        let server = try LoopbackServer()
        server.script(path: "/hold", [.expectHead, .mark("held"), .wait("go"), .send(answer("held")), .serve])
        var configuration = NetworkConfiguration()
        configuration.limits.maxConcurrentTransfers = 1
        let agent = NetworkAgent(configuration: configuration)
        let holder = Outcome<Response>()
        agent.start(Get(server.baseURL + "/hold"), completion: holder.take)
        try await server.waitForMark("held")
        let probe = HTTPRequest.probe(server.baseURL + "/fault")
        let runs = try Play.allCases.map { try FaultRun(probe, $0, agent) }
        #expect(await eventually { agent.statistics.waiting == UInt64(runs.count) })
        let expected = ExpectedFault(code: .cancelled, phases: [.queued], processed: false, attempts: 0, received: 0)
        for run in runs {
            run.cancel()
            let outcome = await run.outcome
            check(try #require(outcome.error), expected, url: probe.path)
            run.place.expectNoPartOfAFile(outcome, isDownload: run.play.form == .download, #_sourceLocation)
        }
        #expect(await eventually { agent.statistics.waiting == 0 })
        #expect(server.connectionCount == 1)
        server.signal("go")
        #expect(try await holder.result.get().text == "held")
        await agent.shutdown()
        #expect(server.requestCount == 1)
        #expect(runs.allSatisfy { $0.callback.count == $0.expectedCallbacks })
    }

    @Test("R71: during a lookup by a resolver that hangs")
    func lookingUp() async throws {
        // Everything ends, including the agent, but not the lookup.
        defer { resolver_release() }
        try await expectCancelled([], .dns, processed: false, attempts: 0) {
            $0.host = "name.held.test"
            $0.next = .otherServer
        } when: { _, agent in
            #expect(await eventually { agent.core.transport.statistics.resolving == 1 && resolver_held() == 1 })
        }
        #expect(resolver_held() == 1)
    }

    @Test("R71: one of many that wait for a name ends alone; the rest end when the name is known")
    func oneOfManyLookingUp() async throws {
        let agent = NetworkAgent()
        let outcomes = (0..<10).map { _ in Outcome<Response>() }
        let tasks = outcomes.map { agent.start(.probe("http://many.held.test/"), completion: $0.take) }
        let awaited = Task { await agent.result(.probe("http://many.held.test/")) }
        #expect(await eventually { agent.core.transport.statistics.resolving == 11 && resolver_held() == 1 })
        // They were admitted, and are counted once.
        #expect(agent.statistics.waiting == 0 && agent.statistics.running == 11)
        tasks[4].cancel()
        awaited.cancel()
        #expect(await outcomes[4].code == .cancelled)
        #expect(await awaited.value.error?.code == .cancelled)
        #expect(agent.core.transport.statistics.resolving == 9 && outcomes.reduce(0) { $0 + $1.count } == 1)
        resolver_release()
        for (index, outcome) in outcomes.enumerated() where index != 4 {
            #expect(await outcome.code == .dns(.notFound))
        }
        await agent.shutdown()
        #expect(outcomes.allSatisfy { $0.count == 1 })
    }

    @Test("R71: while connecting")
    func connecting() async throws {
        try await expectCancelled([], .connect, processed: false, attempts: 0) {
            $0.server.accepting = .none
            $0.next = .otherServer
            $0.seesClose = false
        } when: { _, agent in
            #expect(await eventually { agent.statistics.running == 1 })
        }
    }

    @Test("R71: during the TLS handshake")
    func handshake() async throws {
        let certificate = try ServerCertificate()
        try await expectCancelled([.stallHandshake], .tls, processed: false, attempts: 0) {
            $0.server.certificate = certificate
            $0.configuration.tls.authorityFile = certificate.authorityFile
            $0.place = .everyConnection
            $0.next = .otherServer
        } when: { server, _ in
            try await server.waitForReceivedBytes(100)
        }
    }

    @Test("R71: while sending")
    func sending() async throws {
        try await expectCancelled(
            [.expectHead, .expectBytes(100_000), .mark("begun"), .stopReading], .send, processed: true, attempts: 1
        ) {
            $0.probe.method = .put
            $0.probe.body = .bytes([UInt8](repeating: 0x61, count: 50_000_000))
            $0.seesClose = false
        } when: { server, _ in
            try await server.waitForMark("begun")
        }
    }

    @Test("R71: while waiting for the head", arguments: [HTTPMethod.get, .post])
    func waiting(method: HTTPMethod) async throws {
        try await expectCancelled(
            [.expectHead, .expectBody, .mark("asked"), .keepOpen], .waitingHead, processed: true, attempts: 1
        ) {
            $0.probe.method = method
            $0.probe.body = method == .post ? .string(Canary.body) : nil
        } when: { server, _ in
            try await server.waitForMark("asked")
        }
    }

    @Test(
        "R71: within the head, and within the body",
        arguments: ["HTTP/1.1 200 OK\r\nX: y\r\n", head("200 OK", "Content-Length: 10\r\n") + "abc"])
    func reading(text: String) async throws {
        try await expectCancelled(
            [.expectHead, .send(text), .mark("begun"), .keepOpen], .waitingHead, .head, .body, processed: true,
            attempts: 1
        ) { _ in
        } when: { server, _ in
            try await server.waitForMark("begun")
        }
    }

    @Test("R71: within a body that keeps arriving")
    func streaming() async throws {
        try await expectCancelled(
            // More than the sockets hold before the mark, but not so much that it takes long to collect before a late
            // cancel.
            [
                .expectHead, .send(head()), .pattern(bytes: 14_000_000), .mark("begun"), .pattern(bytes: 6_000_000),
                .keepOpen,
            ],
            .body, processed: true, attempts: 1
        ) { _ in
        } when: { server, _ in
            try await server.waitForMark("begun")
        }
    }

    @Test("R71: a cancel after the end has no effect")
    func afterEnd() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent()
        let outcome = Outcome<Response>()
        let task = agent.start(Get(server.baseURL + "/hello"), completion: outcome.take)
        #expect(try await outcome.result.get().text == "Hello, ferry")
        await agent.shutdown()
        task.cancel()
        #expect(task.state == .finished)
        #expect(outcome.count == 1)
    }

    @Test("R71: cancelling a tag, and everything: one result for each run")
    func many() async throws {
        let server = try LoopbackServer()
        server.script(path: "/hold", [.expectHead, .mark("held"), .keepOpen])
        let agent = NetworkAgent()
        let outcomes = (0..<40).map { _ in Outcome<Response>() }
        for (index, outcome) in outcomes.enumerated() {
            agent.start(Get(server.baseURL + "/hold", tag: index % 2 == 0 ? "even" : "odd"), completion: outcome.take)
        }
        try await server.waitForMark("held", count: 40)
        agent.cancelAll(tagged: "even")
        for index in stride(from: 0, to: 40, by: 2) { #expect(await outcomes[index].code == .cancelled) }
        #expect(outcomes.reduce(0) { $0 + $1.count } == 20)
        agent.cancelAll()
        for outcome in outcomes { #expect(await outcome.code == .cancelled) }
        try await server.waitForOpenConnections(atMost: 0)
        await agent.shutdown()
        #expect(outcomes.allSatisfy { $0.count == 1 })
    }
}
