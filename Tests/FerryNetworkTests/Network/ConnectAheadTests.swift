import FerryTesting
import Testing

@testable import Ferry
@testable import FerryTestSupport

/// Connections that are opened before requests need them.
@Suite(.timeLimit(.minutes(1))) struct ConnectAheadTests {
    private func options(secure: Bool) throws -> LoopbackServer.Options {
        secure ? .init(certificate: try ServerCertificate()) : .init()
    }

    private func idle(of server: LoopbackServer, in agent: NetworkAgent) -> UInt64 {
        agent.statistics.origins[server.baseURL]?.idle ?? 0
    }

    @Test("The requested number of connections is opened, and the first request finds one", arguments: [false, true])
    func opened(secure: Bool) async throws {
        try await withServer(options(secure: secure), engine: .automatic) { server, agent in
            #expect(try await agent.connect(to: server.baseURL, count: 8) == 8)
            try await server.waitForConnections(8)
            #expect(server.connectionCount == 8 && server.requestCount == 0)
            if secure { try await server.waitForHandshakes(8) }
            #expect(await eventually { idle(of: server, in: agent) >= 8 })
            let reply = try await agent.send(Get("/hello"))
            #expect(reply.isReusedConnection && reply.metrics.connect == nil && reply.metrics.tls == nil)
            let replies = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<8 { group.addTask { try await agent.send(Get("/hello")).isReusedConnection } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(replies == [Bool](repeating: true, count: 8) && server.connectionCount == 8)
        }
    }

    @Test func thoseThatLieUnusedCount() async throws {
        try await withServer(engine: .automatic) { server, agent in
            try await agent.send(Get("/hello"))
            #expect(try await agent.connect(to: "/path/of/the/base") == 1)
            #expect(server.connectionCount == 1)
            #expect(try await agent.connect(to: server.baseURL, count: 3) == 3)
            #expect(try await agent.connect(to: server.baseURL, count: 2) == 2)
            #expect(try await agent.connect(to: server.baseURL, count: 0) == 0)
            #expect(agent.statistics.connectionsOpened == 3)
        }
    }

    @Test func severalLoopsShareThem() async throws {
        try await withServer(engine: .automatic) {
            $0.eventLoopCount = 2
        } _: { server, agent in
            let count = try await agent.connect(to: server.baseURL, count: 6)
            #expect(count == 6)
            #expect(agent.statistics.connectionsOpened == 6)
            for _ in 0..<4 {
                let reply = try await agent.send(Get("/hello"))
                #expect(reply.isReusedConnection)
            }
        }
    }

    @Test func whatCannotBeOpenedIsThrown() async throws {
        var options = LoopbackServer.Options()
        options.accepting = .refused
        try await withServer(options, engine: .automatic) { server, agent in
            await #expect { try await agent.connect(to: server.baseURL, count: 3) } throws: {
                ($0 as? RequestError)?.code == .connect(.refused)
            }
            await #expect { try await agent.connect(to: "http://") } throws: { $0 is RequestError }
        }
        try await withServer(.init(certificate: try ServerCertificate()), engine: .automatic) {
            $0.tls.authorityFile = nil
        } _: { server, agent in
            await #expect { try await agent.connect(to: server.baseURL) } throws: {
                ($0 as? RequestError)?.code == .tls(.untrusted)
            }
        }
        try await withServer(engine: .libcurl) {
            $0.limits.maxConcurrentTransfers = 1
        } _: { server, agent in
            // A handle that has failed before keeps its message.
            _ = await agent.result(Get("http://127.0.0.1:1/"))
            await #expect { try await agent.connect(to: server.baseURL) } throws: {
                ($0 as? RequestError)?.code == .invalidRequest && "\($0)".contains("ahead")
            }
            let reply = try await agent.send(Get("/hello"))
            #expect(reply.status == 200)
        }
    }

    @Test func aCancelEndsTheHandshakes() async throws {
        try await withServer(options(secure: true), engine: .automatic) { server, agent in
            server.script([.stallHandshake])
            let task = Task { try await agent.connect(to: server.baseURL, count: 4) }
            try await server.waitForConnections(4)
            task.cancel()
            await #expect { try await task.value } throws: { ($0 as? RequestError)?.code == .cancelled }
            try await server.waitForOpenConnections(atMost: 0)
        }
    }

    @Test func oneThatTheServerHasClosedIsNotUsed() async throws {
        try await withServer(engine: .automatic) { server, agent in
            server.script(connection: 1, [.close])
            #expect(try await agent.connect(to: server.baseURL) == 1)
            try await server.waitForOpenConnections(atMost: 0)
            #expect(try await agent.send(Get("/hello")).status == 200)
        }
    }

    @Test func requestsDoNotWaitForConnectionsOfOthers() async throws {
        try await withServer(options(secure: true), engine: .automatic) { server, agent in
            try await agent.send(Get("/hello"))
            server.script([.stallHandshake])
            let task = Task { try await agent.connect(to: server.baseURL, count: 2) }
            try await server.waitForConnections(2)
            for _ in 0..<10 { #expect(try await agent.send(Get("/hello")).isReusedConnection) }
            task.cancel()
            // One is idle, and counts.
            #expect(try await task.value == 1)
        }
    }

    /// They end before they are used, and others replace them.
    @Test func thoseThatAreTooOldAreNotReady() async throws {
        try await withServer(engine: .automatic) {
            $0.connectionLifetime = .milliseconds(200)
        } _: { server, agent in
            try await agent.connect(to: server.baseURL, count: 3)
            // Only the next request finds them too old, and there is none before.
            await elapse(.milliseconds(220))
            let count = try await agent.connect(to: server.baseURL, count: 3)
            #expect(count == 3)
            #expect(agent.statistics.connectionsOpened == 6)
            #expect(agent.statistics.origins[server.baseURL]?.closed[.lifetime] == 3)
        }
        try await withServer(engine: .automatic) {
            $0.limits.minimumIdlePerHost = 3
            $0.connectionLifetime = .milliseconds(200)
        } _: { server, agent in
            try await agent.send(Get("/hello"))
            #expect(await eventually { idle(of: server, in: agent) >= 3 })
            // Only a request would detect one that is too old.
            await elapse(.milliseconds(220))
            try await agent.send(Get("/hello"))
            #expect(
                await eventually { idle(of: server, in: agent) >= 3 && agent.statistics.connectionsOpened >= 7 })
            #expect(agent.statistics.origins[server.baseURL]?.closed[.lifetime] ?? 0 >= 3)
        }
    }

    @Test func theyAreSpreadOverTheAddresses() async throws {
        let backends = try AddressSelectionTests.Backends(3)
        try await withServer(engine: .automatic) {
            $0.baseURL = "http://a.test:\(backends.port)"
            $0.hostOverrides = ["a.test:\(backends.port)": AddressSelectionTests.Backends.addresses(1...3)]
            $0.addressSelection = .roundRobin
            $0.limits.minimumIdlePerHost = 3
        } _: { _, agent in
            try await agent.send(Get("/hello"))
            for address in AddressSelectionTests.Backends.addresses(1...3) {
                #expect(await eventually { backends.connections(at: address) > 0 })
            }
        }
    }

    /// A connection that was opened for a request which another one served is not a new one for the next.
    @Test func oneThatItsRequestDidNotNeedCountsAsThereBefore() async throws {
        let empty = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        try await withServer(options(secure: true), engine: .automatic) { server, agent in
            server.script(path: "/first", [.expectHead, .mark("first"), .wait("go"), .send(empty), .serve])
            server.script(connection: 2, [.plain, .wait("handshake"), .startTLS, .serve])
            let first = Task { try await agent.send(Get("/first")) }
            try await server.waitForMark("first", count: 1)
            let second = Task { try await agent.send(Get("/hello")) }
            try await server.waitForConnections(2)
            server.signal("go")
            _ = try await first.value
            #expect(try await second.value.isReusedConnection)
            server.signal("handshake")
            #expect(await eventually { idle(of: server, in: agent) >= 2 })
            let replies = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<2 { group.addTask { try await agent.send(Get("/hello")).isReusedConnection } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(replies == [true, true])
        }
    }

    @Test func aShutdownEndsTheHandshakes() async throws {
        try await withServer(options(secure: true), engine: .automatic) { server, agent in
            server.script([.stallHandshake])
            let task = Task { try await agent.connect(to: server.baseURL, count: 4) }
            try await server.waitForConnections(4)
            await agent.shutdown(grace: .zero)
            await #expect { try await task.value } throws: { $0 is RequestError }
            try await server.waitForOpenConnections(atMost: 0)
            await #expect { try await agent.connect(to: server.baseURL) } throws: {
                ($0 as? RequestError)?.code == .shutdown
            }
        }
    }

    /// At most the requested number is tried for each request.
    @Test func whereNobodyListensNoneIsTriedForEver() async throws {
        var options = LoopbackServer.Options()
        options.accepting = .refused
        try await withServer(options, engine: .automatic) {
            $0.limits.minimumIdlePerHost = 3
        } _: { server, agent in
            for _ in 0..<10 { #expect(await agent.result(Get("/hello")).error?.code == .connect(.refused)) }
            #expect(await eventually { agent.statistics.origins[server.baseURL]?.failed ?? 0 >= 40 })
            let turns = agent.statistics.turns
            while agent.statistics.turns < turns + 3 { _ = await agent.result(Get("http://127.0.0.1:1/")) }
            #expect(agent.statistics.origins[server.baseURL]?.failed == 40)
        }
    }

    @Test func noNumberIsTooLarge() async throws {
        try await withServer(engine: .automatic) {
            $0.limits.maxConcurrentTransfers = 4
            $0.limits.minimumIdlePerHost = .max
        } _: { server, agent in
            let count = try await agent.connect(to: server.baseURL, count: .max)
            #expect(count == 4)
            try await agent.send(Get("/hello"))
        }
    }

    @Test func someLieReadyAsLongAsTheHostIsInUse() async throws {
        try await withServer(engine: .automatic) {
            $0.limits.minimumIdlePerHost = 2
            $0.idleConnectionTime = .milliseconds(300)
        } _: { server, agent in
            server.script(path: "/held", [.expectHead, .mark("held"), .wait("go"), .close])
            try await agent.send(Get("/hello"))
            #expect(await eventually { idle(of: server, in: agent) >= 2 })
            let held = (0..<4).map { _ in Task { await agent.result(Get("/held")) } }
            try await server.waitForMark("held", count: 4)
            // Longer than the lifetime of an idle one.
            let end = ContinuousClock.now + .milliseconds(700)
            while ContinuousClock.now < end {
                #expect(try await agent.send(Get("/hello")).isReusedConnection)
            }
            #expect(await eventually { idle(of: server, in: agent) >= 2 })
            server.signal("go")
            for task in held { _ = await task.value }
            // Nobody uses it any more.
            #expect(await eventually { agent.statistics.sockets == 0 })
        }
    }
}
