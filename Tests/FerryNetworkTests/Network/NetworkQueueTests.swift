import Ferry
import FerrySynchronization
import FerryTesting
import Testing

@testable import FerryTestSupport

/// Order, limits and figures, over the network.
@Suite(.timeLimit(.minutes(3))) struct NetworkQueueTests {
    @Test func priorityDecidesAmongThoseThatWait() async throws {
        let server = try LoopbackServer()
        server.script(path: "/hold", [.expectHead, .mark("held"), .wait("go"), .send(answer("held")), .serve])
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.limits.maxConcurrentTransfers = 1
        let agent = NetworkAgent(configuration: configuration)
        let outcomes = (0..<7).map { _ in Outcome<Response>() }
        agent.start(Get("/hold"), completion: outcomes[0].take)
        try await server.waitForMark("held")
        let priorities: [RequestPriority] = [.low, .normal, .high, .low, .normal, .high]
        var tasks: [RequestTask<Response>] = []
        for (index, priority) in priorities.enumerated() {
            tasks.append(
                agent.start(Get("/header?I=\(index)", priority: priority), completion: outcomes[index + 1].take))
        }
        // The first low one is moved to the end of the high queue.
        tasks[0].setPriority(.high)
        #expect(await eventually { agent.statistics.waiting == 6 })
        #expect(tasks.allSatisfy { $0.state == .waiting })
        server.signal("go")
        for outcome in outcomes { #expect(await outcome.code == nil) }
        #expect(server.requests.dropFirst().map(\.target) == [2, 5, 0, 1, 4, 3].map { "/header?I=\($0)" })
        #expect(server.connectionCount == 1)
        await agent.shutdown()
    }

    @Test("Limits of any size are respected", arguments: [Int.max, Int.max - 1, 1, 0, -1, Int.min])
    func extremes(value: Int) async throws {
        try await withLoopbackServer { server in
            for change in [
                { $0.queueLength = value }, { $0.maxConcurrentTransfers = value }, { $0.transfersPerHost = value },
                { ($0.maxConcurrentTransfers, $0.queueLength) = (value, value) },
                { ($0.maxConcurrentTransfers, $0.queueLength) = (value, 1) },
                { ($0.maxConcurrentTransfers, $0.queueLength) = (1, value) },
            ] as [(inout Limits) -> Void] {
                for loops in [1, 2] {
                    var configuration = NetworkConfiguration(baseURL: server.baseURL)
                    configuration.eventLoopCount = loops
                    change(&configuration.limits)
                    await withNetworkAgent(configuration: configuration) { agent in
                        let code = await code { () throws(RequestError) in try await agent.send(Get("/hello")) }
                        #expect(code == nil)
                    }
                }
            }
            for part in [\Limits.headerBytes, \.maxBodyBytes] {
                var configuration = NetworkConfiguration(baseURL: server.baseURL)
                configuration.limits[keyPath: part] = value
                await withNetworkAgent(configuration: configuration) { agent in
                    let code = await code { () throws(RequestError) in try await agent.send(Get("/hello")) }
                    #expect((code == nil) == (value > 1))
                }
            }
        }
    }

    @Test("A limit applies to all loops together", arguments: [(1, 4), (10, 4), (3, 2)])
    func limitOfSeveralLoops(most: Int, loops: Int) async throws {
        let server = try LoopbackServer()
        server.script(path: "/hold", [.expectHead, .mark("held"), .wait("go"), .send(answer("held")), .serve])
        var configuration = NetworkConfiguration(baseURL: server.baseURL, eventLoopCount: loops)
        configuration.limits.maxConcurrentTransfers = most
        let agent = NetworkAgent(configuration: configuration)
        let outcomes = (0..<most + 4).map { _ in Outcome<Response>() }
        for outcome in outcomes { agent.start(Get("/hold"), completion: outcome.take) }
        #expect(await eventually { agent.statistics.running == most && agent.statistics.waiting == 4 })
        server.signal("go")
        for outcome in outcomes { #expect(await outcome.code == nil) }
        await agent.shutdown()
    }

    @Test func queueLengthIsABound() async throws {
        let server = try LoopbackServer()
        server.script(path: "/hold", [.expectHead, .mark("held"), .wait("go"), .send(answer("held")), .serve])
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.limits.maxConcurrentTransfers = 2
        configuration.limits.queueLength = 3
        let agent = NetworkAgent(configuration: configuration)
        let outcomes = (0..<5).map { _ in Outcome<Response>() }
        for outcome in outcomes { agent.start(Get("/hold"), completion: outcome.take) }
        try await server.waitForMark("held", count: 2)
        let request = HTTPRequest.probe(server.baseURL + "/hold?" + Canary.query)
        let refused = Outcome<Response>()
        agent.start(request, completion: refused.take)
        #expect(await refused.code == .queueFull)
        let error = try #require(await fault { () throws(RequestError) in try await agent.send(request) })
        check(
            error, ExpectedFault(code: .queueFull, phases: [.preparing], processed: false, attempts: 0, received: 0),
            url: server.baseURL + "/hold?token=***")
        server.signal("go")
        for outcome in outcomes { #expect(try await outcome.result.get().text == "held") }
        #expect(try await agent.send(Get("/hello")).text == "Hello, ferry")
        #expect(server.requestCount == 6)
        await agent.shutdown()
    }

    @Test func limitsOfAHostAndInAllAreKept() async throws {
        let server = try LoopbackServer(), other = try LoopbackServer()
        for server in [server, other] {
            server.script(path: "/hold", [.expectHead, .mark("held"), .wait("go"), .send(answer("held")), .serve])
        }
        var configuration = NetworkConfiguration()
        configuration.limits.maxConcurrentTransfers = 5
        configuration.limits.transfersPerHost = 3
        let agent = NetworkAgent(configuration: configuration)
        let outcomes = (0..<20).map { _ in Outcome<Response>() }
        for (index, outcome) in outcomes.enumerated() {
            agent.start(Get((index < 10 ? server : other).baseURL + "/hold"), completion: outcome.take)
        }
        try await server.waitForMark("held", count: 3)
        try await other.waitForMark("held", count: 2)
        #expect(await eventually { agent.statistics.running == 5 && agent.statistics.waiting == 15 })
        #expect(server.requestCount == 3)
        #expect(other.requestCount == 2)
        server.signal("go")
        other.signal("go")
        for outcome in outcomes { #expect(await outcome.code == nil) }
        #expect(server.connectionCount <= 3)
        #expect(other.connectionCount <= 3)
        await agent.shutdown()
    }

    @Test func aThousandAtOnceByAwait() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        await withTaskGroup(of: Bool.self) { group in
            for index in 0..<1000 {
                group.addTask { (try? await agent.send(Get("/bytes/\(index)")))?.bodyLength == index }
            }
            for await isRight in group { #expect(isRight) }
        }
        #expect(server.requestCount == 1000)
        #expect(server.connectionCount <= 64)
        await agent.shutdown()
    }

    @Test func aThousandAtOnceByClosure() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        let outcomes = (0..<1000).map { _ in Outcome<Response>() }
        for (index, outcome) in outcomes.enumerated() {
            agent.start(Get("/bytes/\(index)"), completion: outcome.take)
        }
        for (index, outcome) in outcomes.enumerated() { #expect(try await outcome.result.get().bodyLength == index) }
        await agent.shutdown()
        #expect(outcomes.allSatisfy { $0.count == 1 })
        #expect(server.connectionCount <= 64)
        #expect(agent.statistics.finished == 1000)
    }

    @Test func oneAfterTheOtherTakesOneConnection() async throws {
        let server = try LoopbackServer()
        let agent = NetworkAgent(configuration: .init(baseURL: server.baseURL))
        for index in 0..<200 { #expect(try await agent.send(Get("/bytes/\(index)")).bodyLength == index) }
        #expect(try await agent.send(Full(path: "/upload", method: .post, body: .string("x"))).status == 200)
        #expect(try await agent.send(Full(path: "/hello", method: .head)).bodyLength == 0)
        #expect(try await agent.send(Full(path: "/status/204")).status == 204)
        #expect(try await agent.send(Full(path: "/status/500", statusValidation: .any)).status == 500)
        #expect(server.connectionCount == 1)
        #expect(agent.statistics.connectionsOpened == 1)
        await agent.shutdown()
        try await server.waitForOpenConnections(atMost: 0)
    }

    @Test(arguments: [TransferEngine.automatic, .libcurl])
    func idleConnectionsEndWithTheirTime(engine: TransferEngine) async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL, idleConnectionTime: .milliseconds(100))
        configuration.engine = engine
        let agent = NetworkAgent(configuration: configuration)
        try await agent.send(Get("/hello"))
        // No request follows that could detect its age.
        try await server.waitForOpenConnections(atMost: 0)
        #expect(try await agent.send(Get("/hello")).isReusedConnection == false)
        #expect(server.connectionCount == 2)
        await agent.shutdown()
    }

    /// libcurl's minimum is a second, and a tenth.
    @Test(arguments: [TransferEngine.automatic, .libcurl])
    func connectionsEndWithTheirLifetimeAndNoRequestFails(engine: TransferEngine) async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL)
        configuration.engine = engine
        configuration.connectionLifetime = .milliseconds(200)
        let mortal = NetworkAgent(configuration: configuration)
        configuration.connectionLifetime = nil
        let immortal = NetworkAgent(configuration: configuration)
        while mortal.statistics.connectionsOpened < 4 {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<2 { group.addTask { try await mortal.send(Get("/hello")).status } }
                group.addTask { try await immortal.send(Get("/hello")).status }
                for try await status in group { #expect(status == 200) }
            }
        }
        #expect(immortal.statistics.connectionsOpened == 1)
        await mortal.shutdown()
        await immortal.shutdown()
    }

    @Test func agentsSideBySideShareNothing() async throws {
        let server = try LoopbackServer()
        let first = NetworkAgent(configuration: .init(baseURL: server.baseURL, headers: ["A": "first"]))
        let second = NetworkAgent(configuration: .init(baseURL: server.baseURL, headers: ["A": "second"]))
        for _ in 0..<10 {
            async let one = first.send(Get("/headers"))
            async let two = second.send(Get("/headers"))
            #expect(try await one.text.contains("first"))
            #expect(try await two.text.contains("second"))
        }
        #expect(server.connectionCount == 2)
        await first.shutdown()
        try await server.waitForOpenConnections(atMost: 1)
        #expect(try await second.send(Get("/hello")).isReusedConnection)
        #expect(await code { () throws(RequestError) in try await first.send(Get("/hello")) } == .shutdown)
        await second.shutdown()
    }

    @Test func twoLoopsShareTheWork() async throws {
        let server = try LoopbackServer()
        var configuration = NetworkConfiguration(baseURL: server.baseURL, eventLoopCount: 2)
        configuration.limits.transfersPerHost = 4
        let agent = NetworkAgent(configuration: configuration)
        let outcomes = (0..<500).map { _ in Outcome<Response>() }
        var tasks: [RequestTask<Response>] = []
        for (index, outcome) in outcomes.enumerated() {
            tasks.append(agent.start(Get("/bytes/\(index)"), completion: outcome.take))
        }
        for (index, task) in tasks.enumerated() where index % 50 == 49 { task.cancel() }
        for (index, outcome) in outcomes.enumerated() {
            switch await outcome.result {
            case .success(let reply): #expect(reply.bodyLength == index)
            case .failure(let error): #expect(error.code == .cancelled && index % 50 == 49)
            }
        }
        // Four, and one more for each of the ten that were cancelled: an aborted exchange closes its connection.
        #expect((2...14).contains(server.connectionCount))
        await agent.shutdown()
        #expect(outcomes.allSatisfy { $0.count == 1 })
        try await server.waitForOpenConnections(atMost: 0)
    }
}
